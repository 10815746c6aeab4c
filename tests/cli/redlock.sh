#!/bin/sh
# Tests how the command behaves on the five servers of Redlock, as far as this is
# particular to Redlock. Usage: with_redlock redlock.sh HOLDFAST
# shellcheck disable=SC2016 # what is in single quotes is for other shells
set -u
. "$(dirname "$0")/lib.sh"
. "$here/diagnosis.sh"

HOLDFAST_URL=$REDLOCK_URL
hosts=${REDLOCK_URL#*//}
hosts=${hosts%%\?*}
ports=$(echo "$hosts" | tr ',' '\n' | sed 's/.*://')

# on_each COMMAND...: sends the command to each server by redis-cli.
on_each() {
    for port in $ports; do
        redis-cli -p "$port" "$@" || die "port $port: $*"
    done
}

a_wrong_url_is_explained() { # case
    refused redlock://a 'the number of servers is 1: it must be odd, and at least 3'
    refused redlock://a,b,c,d 'the number of servers is 4'
    refused redlock://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p 'at most 15'
    refused redlock://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q 'over 16 hosts.*redlock: 15'
    refused redlock://:s3cret@a,b,a:6379 'the server a:6379 is listed twice'
    refused 'redlock://a,b,c?max_lease=1s' 'must not be less than the ttl'
    refused 'redlock://a,b,c?server_timeout=0' 'must be from 1 to 60000 ms'
    refused 'redlock://a,b,c?tls=maybe' 'must be yes or no'
    refused 'redlock://a,b,c?cacert=/dev/null' 'tls=yes'
    refused 'redlock://a,b,c?dialect=string' 'unknown option "dialect"'
}

other_kinds_are_elsewhere() { # case
    reports 64 'no read-write lock, only: mutex; other backends have one' run -s a true
}

# A hold or release succeeds once a majority has executed it; the other servers
# follow.
is_everywhere() {
    [ "$(on_each get a | sort -u | wc -l)" = 1 ] &&
        [ "$(on_each get 'holdfast:reserve:{a}' | grep -c '^[0-9]* 500000$')" = 5 ]
}

is_nowhere() {
    [ "$(on_each exists a | sort -u)" = 0 ]
}

the_key_is_at_every_server() { # case
    hold -t 1h a
    until_true is_everywhere
    equal "$(status_of "$hf" run -n a -- true)" 75 'held'
    let_go
    until_true is_nowhere
}

# A server that is listed with two addresses has one vote.
a_server_votes_once() { # case
    first=${hosts%%,*}
    reports 69 'the same server as' \
        run -n -b "redlock://$first,localhost:${first#*:},127.0.0.1:1?max_lease=0" b -- true
}

a_majority_is_enough() { # case
    # Two of the five servers cannot be reached, then three.
    exits 0 run -b "redlock://127.0.0.1:1,127.0.0.1:2,${hosts#*,*,}?max_lease=0" b -- true
    exits 69 run -n -b "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3,${hosts#*,*,*,}?max_lease=0" b -- true
    for port in 1 2 3; do
        says err "127.0.0.1:$port"
    done
    says err 'Connection refused'
}

young_servers_stay_out() { # case
    equal "$(status_of "$hf" run -n -b "redlock://$hosts?ttl=1d&op_timeout=1s" c -- true)" \
        69 'they are younger than a day'
    says err 'started recently, votes in 8[0-9]* s'
}

# Redlock servers do not store who holds a lock.
what_is_not_known_is_not_said() { # case
    hold a
    equal "$(status_of "$hf" run -n a -- true)" 75 -n
    equal "$(cat err)" 'holdfast run: a: not acquired; the servers cannot say who holds it' -n
    equal "$(status_of "$hf" run -w 0.5 a -- true)" 75 '-w 0.5'
    equal "$(tail -n 1 err)" 'holdfast run: a: not acquired within 500 ms; the servers cannot say who holds it' \
        '-w 0.5'
    equal "$(status_of "$hf" run -q -w 0.5 a -- true)" 75 '-q -w 0.5'
    equal "$(cat err)" '' '-q -w 0.5'
    start_until err "$hf" run a -- true 2>err
    touch end
    wait_for "$holder"
    ends "$pid" 0 'the waiter'
    equal "$(cat err)" 'holdfast run: a: waiting; the servers cannot say who holds it' \
        'what the waiter said'
}

locks_of_run() { # case
    reports 64 'y: process [0-9]*, which runs this command, holds it' run -l y -l x -- "$hf" run -n y -- true
    reports 64 'no semaphore' run --of 3 s -- true
    equal "$(status_of "$hf" hold -n -q x)" 0 hold
    grep -q -x '[1-9][0-9]*' out || die "$(cat out)"
}

# Prints the ACL command that holdfast-url(7) gives for Redlock.
rules_of_the_manual() {
    sed -n '/^\.Ss Options of redlock/,/^\.Ss Options of zk/p' \
        "$here/../../docs/man/holdfast-url.7" |
        sed -n '/^ACL SETUSER locks/,/^\.Ed/p' | grep -v '^\.Ed'
}

the_rights_of_the_manual_are_enough() { # case
    set -f
    # shellcheck disable=SC2046 # words
    on_each $(rules_of_the_manual) '>s3cret' >/dev/null
    set +f
    shop="redlock://locks:s3cret@$hosts?max_lease=0&server_timeout=2s"
    equal "$(status_of "$hf" run -b "$shop&prefix=lk:&ttl=3s" a -- sleep 4)" 0 'shop'
    reports 77 'NOPERM' run -b "$shop" a -- true
    lacks err s3cret
}

# follow FILE: runs the command that the message in FILE advises, on each
# server.
follow() {
    rules=$(sed -n 's/.*Run in redis-cli: ACL SETUSER shop //p' "$1")
    [ -n "$rules" ] || die "no advice: $(cat "$1")"
    set -f
    # shellcheck disable=SC2086 # words
    on_each acl setuser shop $rules >/dev/null
    set +f
}

the_doctor_leads_to_the_rights_of_the_manual() { # case
    on_each acl setuser shop on '>s3cret' resetchannels >/dev/null
    shop="redlock://shop:s3cret@$hosts?max_lease=0&server_timeout=2s&prefix=lk:"
    prints 2 "NOPERM.*'info'" doctor -b "$shop"
    follow out
    equal "$(status_of "$hf" doctor -b "$shop")" 2 'no keys'
    has error locking NOPERM
    follow out
    equal "$(status_of "$hf" doctor -b "$shop")" 1 'all rights'
    has ok locking 'can be acquired'
    given=$(on_each acl list | sed -n 's/^user shop //p' | tr ' ' '\n' | grep '^[~+]' | sort -u)
    wanted=$(rules_of_the_manual | tr -s ' ' '\n' | grep '^[~+]' | sort -u)
    equal "$given" "$wanted" 'rules'
}

the_doctor_counts_the_servers() { # case
    lines_are_findings "$(status_of "$hf" doctor -b "redlock://$hosts?max_lease=0&op_timeout=1m")"
    has ok servers '5 servers answer, of which 2 may be down'
    has warning persistence 'appendonly is off at 5 of 5'
    status_of "$hf" doctor --json -b "redlock://$hosts?max_lease=0&op_timeout=1m" >said
    is_json "redlock://$hosts"
    exits 1 doctor -b "redlock://127.0.0.1:1,${hosts#*,}?max_lease=0&op_timeout=1m"
    has warning servers '4 of 5 servers can be asked'
}

# No single server knows what a majority has granted.
what_it_cannot_do_is_said() { # case
    for verb in ls 'ls -l' 'show a' 'show --json a' 'break -y a' 'break --token 1 a' \
        'watch a' 'watch -p' 'ask a'; do
        # shellcheck disable=SC2086 # several words
        equal "$(status_of "$hf" $verb)" 64 "$verb"
        [ ! -s out ] || die "$verb: $(cat out)"
        equal "$(wc -l <err)" 1 "lines of $verb"
        says err "Redlock cannot tell who holds a lock.*: redis-cli -h HOST get "
        lacks err '`holdfast'
    done
    reports 64 'the redlock backend has' latch set a 1
}

run_cases
