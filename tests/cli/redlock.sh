#!/bin/sh
# The command on the five servers of Redlock, where it differs.
# Usage: with_redlock redlock.sh HOLDFAST
# shellcheck disable=SC2016 # what is in single quotes is for other shells
set -u
. "$(dirname "$0")/lib.sh"

HOLDFAST_URL=$REDLOCK_URL
hosts=${REDLOCK_URL#*//}
hosts=${hosts%%\?*}
ports=$(echo "$hosts" | tr ',' '\n' | sed 's/.*://')

# on_each COMMAND...: by redis-cli, on each server
on_each() {
    for port in $ports; do
        redis-cli -p "$port" "$@" || die "port $port: $*"
    done
}

# refused URL TEXT
refused() {
    equal "$(status_of "$hf" run -b "$1" a -- true)" 64 "$1"
    contains err "$2" || die "$1: $(cat err)"
    not contains err s3cret || die "$(cat err)"
}

a_wrong_url_is_explained() {
    refused redlock://a 'the number of servers is 1: it must be odd, and at least 3'
    refused redlock://a,b,c,d 'the number of servers is 4'
    refused redlock://:s3cret@a,b,a:6379 'the server a:6379 is there twice'
    refused 'redlock://a,b,c?max_lease=1s' 'must not be less than the ttl'
    refused 'redlock://a,b,c?server_timeout=0' 'must be from 1 to 60000 ms'
    refused 'redlock://a,b,c?tls=maybe' 'must be yes or no'
    refused 'redlock://a,b,c?cacert=/dev/null' 'tls=yes'
    refused 'redlock://a,b,c?dialect=string' 'unknown option "dialect"'
}

# A majority grants and releases; the others follow.
is_everywhere() {
    [ "$(on_each get a | sort -u | wc -l)" = 1 ] &&
        [ "$(on_each get 'holdfast:reserve:{a}' | grep -c '^[0-9]* 500000$')" = 5 ]
}

is_nowhere() {
    [ "$(on_each exists a | sort -u)" = 0 ]
}

the_key_is_at_every_server() {
    start "$hf" run -t 1h a -- sh -c 'echo >held; until [ -e end ]; do sleep 0.01; done'
    until_true test -s held
    until_true is_everywhere
    equal "$(status_of "$hf" run -n a -- true)" 75 'held'
    touch end
    wait_for "$pid"
    equal "$status" 0 'the holder'
    until_true is_nowhere
}

# At two addresses it has one vote.
a_server_votes_once() {
    first=${hosts%%,*}
    equal "$(status_of "$hf" run -n -b "redlock://$first,localhost:${first#*:},127.0.0.1:1?max_lease=0" \
        b -- true)" 69 'one server, and one that is not there'
    contains err 'the same server as' || die "$(cat err)"
}

a_majority_is_enough() {
    equal "$(status_of "$hf" run -b "redlock://127.0.0.1:1,127.0.0.1:2,${hosts#*,*,}?max_lease=0" \
        b -- true)" 0 'two of five are not there'
    equal "$(status_of "$hf" run -n -b "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3,${hosts#*,*,*,}?max_lease=0" \
        b -- true)" 69 'three are not'
    for port in 1 2 3; do
        contains err "127.0.0.1:$port" || die "$(cat err)"
    done
    contains err 'Connection refused' || die "$(cat err)"
}

young_servers_stay_out() {
    equal "$(status_of "$hf" run -n -b "redlock://$hosts?ttl=1d&op_timeout=1s" c -- true)" \
        69 'they are younger than a day'
    contains err 'started lately, votes in 8[0-9]* s' || die "$(cat err)"
}

# As holdfast-url(7) lists them.
the_rights_of_the_manual_are_enough() {
    on_each acl setuser shop on '>s3cret' -@all '~lk:*' '~holdfast:reserve:{lk:*' \
        +eval +evalsha +get +set +psetex +del +pexpire +time +info >/dev/null
    shop="redlock://shop:s3cret@$hosts?max_lease=0&server_timeout=2s"
    equal "$(status_of "$hf" run -b "$shop&prefix=lk:&ttl=3s" a -- sleep 4)" 0 'shop'
    equal "$(status_of "$hf" run -b "$shop" a -- true)" 77 'another prefix'
    contains err 'NOPERM' || die "$(cat err)"
    not contains err s3cret || die "$(cat err)"
}

run_cases a_wrong_url_is_explained the_key_is_at_every_server \
    a_server_votes_once a_majority_is_enough young_servers_stay_out \
    the_rights_of_the_manual_are_enough
