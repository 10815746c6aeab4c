#!/bin/sh
# Tests the verbs for operators, on shared memory or on Redis.
# Usage: operator.sh HOLDFAST shm|redis
# shellcheck disable=SC2016 # what is in single quotes is for other shells
set -u
place=$2
set -- "$1"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/operator_cases.sh"

misuse_is_explained() {
    for verb in show break ask watch 'latch down' 'latch wait' 'latch show'; do
        # shellcheck disable=SC2086 # one word or two
        is_misuse 'which lock? A NAME is missing' $verb
        # shellcheck disable=SC2086
        is_misuse "\`b' after the NAME: .* takes one NAME" $verb a b
        # shellcheck disable=SC2086
        is_misuse 'the NAME is a URL; is a -b missing?' $verb redis://:s3cret@h
    done
    is_misuse "\`b' after the PREFIX: ls takes one PREFIX" ls a b
    is_misuse 'the PREFIX is a URL; is a -b missing?' ls redis://:s3cret@h
    is_misuse 'the PREFIX is a URL' watch -p redis://:s3cret@h
    is_misuse '-0 prints only names; omit -l' ls -0 -l
    is_misuse '-0 prints only names; omit --json' ls -0 --json
    is_misuse 'did you mean --long?' ls --lnog
    is_misuse 'did you mean --token?' break --tokn 3 a
    is_misuse "--token takes a number, as \`holdfast show' prints it, not \`x'" break --token x a
    is_misuse '--token takes a number' break --token 0 a
    is_misuse "-n takes a number of at least 1, not \`0'" watch -n 0 a
    is_misuse '-w takes a duration' watch -w soon a
    is_misuse '-i takes a duration of at least 10ms' watch -i 0 a
    is_misuse 'give set, down, wait or show' latch
    is_misuse 'did you mean latch wait?' latch wiat a
    is_misuse 'a NAME is missing: latch set NAME N' latch set
    is_misuse 'the N is missing: latch set NAME N' latch set a
    is_misuse "\`b' after the NAME" latch set a 3 b
    for n in 0 -1 x 2147483648; do
        is_misuse "N must be 1 to 2147483647, not \`$n'" latch set -- a "$n"
    done
    is_misuse '-w takes a duration' latch wait -w soon a
    is_misuse '-w is for wait, not for down' latch down -w 1 a
    reports 64 'at most 512 are allowed' show "$(printf '%0513d' 0)"
    equal "$(wc -l <err)" 1 'lines of a long name'
}

the_largest_latch() {
    equal "$(status_of "$hf" latch set big 2147483647)" 0 'set'
    equal "$("$hf" latch down big)" 2147483646 'down'
}

help_is_one_screen() {
    for verb in ls show break ask watch latch; do
        "$hf" $verb --help >text || die "$verb --help"
        [ "$(wc -l <text)" -le 24 ] || die "$verb --help has $(wc -l <text) lines"
        [ "$(awk 'length > 80' text | wc -l)" = 0 ] || die "$verb --help is too wide"
        says text "^  holdfast $verb "
        equal "$("$hf" $verb -V)" "$("$hf" --version)" "$verb -V"
    done
}

a_backend_that_is_not_there_is_69() {
    for verb in ls 'show a' 'break -y a' 'ask a' 'watch a' 'latch show a'; do
        # shellcheck disable=SC2086 # several words
        equal "$(status_of "$hf" $verb -b redis://127.0.0.1:1)" 69 "$verb"
        equal "$(wc -l <err)" 1 "lines of $verb"
        says err 'cannot open the backend: .*127.0.0.1:1'
    done
}

a_stranger_is_not_asked() {
    redis_cli HSET theirs 11111111-2222-3333-4444-555555555555:7 1 >/dev/null
    reports 64 'held by another program, which cannot be asked' ask theirs
    says err "\`holdfast break'"
    redis_cli DEL theirs >/dev/null
}

polling_is_said() {
    reports 0 '; polling every 500 ms$' watch -w 0 a
    reports 0 '; polling every 2000 ms$' watch -w 0 -i 2s a
    equal "$(status_of "$hf" watch -q -w 0 a)" 0 'watch -q'
    [ ! -s err ] || die "says $(cat err)"
}

looking_makes_no_memory() {
    none=shm://$PWD/none
    for verb in ls 'ls -l' 'ls --json' 'latch show a'; do
        # shellcheck disable=SC2086 # verb and operand
        equal "$(status_of "$hf" $verb -b "$none")" 0 "$verb"
    done
    for verb in 'show a' 'show --json a' 'break -y a' 'break a' 'ask a'; do
        # shellcheck disable=SC2086
        equal "$(status_of "$hf" $verb -b "$none")" 1 "$verb"
    done
    [ ! -e none ] || die 'it was made'
    for verb in ls 'latch show a' 'show a' 'break -y a' 'ask a'; do
        # shellcheck disable=SC2086
        reports 69 "$PWD/none/below: its parent does not exist" $verb -b "$none/below"
    done
    prints 0 '^Holder: *process' run -b "$none" a -- "$hf" show -b "$none" a
}

full_is_said() {
    equal "$(status_of sh -c '"$0" ls -l --json >/dev/full' "$hf")" 0 'nothing to print'
    hold_as 1 full/a
    equal "$(status_of sh -c '"$0" ls >/dev/full' "$hf")" 1 'ls'
    says err 'No space left'
}

watch_is_told_by_the_server() {
    redis_cli config set notify-keyspace-events KA >/dev/null
    watch_prints_changes_in_order
    [ ! -s said ] || die "says $(cat said)"
}

watch_of_a_prefix_is_told_by_the_server() {
    redis_cli config set notify-keyspace-events KA >/dev/null
    watch_of_a_prefix
    equal "$(status_of "$hf" watch -w 0 -p)" 0 'all names'
    [ ! -s err ] || die "says $(cat err)"
}

# The server sends no notification of a flush, so the watch must notice it by
# polling.
watch_sees_a_flush() {
    redis_cli config set notify-keyspace-events KA >/dev/null
    redis_cli -n 3 set flush/a there px 600000 >/dev/null
    start "$hf" watch -b "$redis?dialect=string&db=3" --json flush/a >changes
    until_true lines changes 1
    has changes "d[0]['holders'][0]['owner'] == 'there'" || die "$(cat changes)"
    redis_cli -n 3 flushdb >/dev/null
    until_true last changes '"event":"released"'
}

a_stranger_is_shown_and_broken() {
    redis_cli set foreign/a 'not ours' px 600000 >/dev/null
    string="$redis?dialect=string"
    prints 0 '^Holder:   not ours$' show -b "$string" foreign/a
    says out '^ .*9m[0-9]*s left$'
    equal "$("$hf" show -b "$string" --json foreign/a |
        json 'd[0]["holders"][0]["pid"], d[0]["holders"][0]["owner"]')" "(None, 'not ours')" --json
    equal "$(status_of "$hf" break -b "$string" --owner 'a stranger' foreign/a)" 1 'another owner'
    prints 0 '^broken: foreign/a: held by not ours' break -b "$string" --owner 'not ours' foreign/a
    redis_cli set foreign/a 'not ours' >/dev/null
    prints 0 'no time limit$' show -b "$string" foreign/a
    python3 "$here/operator.py" answer y "$hf" break -b "$string" foreign/a >typed ||
        die "$(cat typed)"
    equal "$(redis_cli exists foreign/a)" 0 'the key'
    redis_cli rpush foreign/list 1 >/dev/null
    equal "$(status_of "$hf" show foreign/list)" 64 'a list'
    equal "$(status_of "$hf" break -y foreign/list)" 64 'a list'
    equal "$(redis_cli exists foreign/list)" 1 'the list'
}

# A step of ls scans about a hundred keys; op_timeout limits one step, not all
# of ls.
ls_walks_in_small_steps() {
    i=0
    while [ $i -lt 5000 ]; do
        echo "HSET {crowd}$i a 1 b 2"
        i=$((i + 1))
    done | redis_cli -n 2 >/dev/null
    hold_as 1 steps/a -b "$redis?db=2"
    redis_cli config resetstat >/dev/null
    equal "$("$hf" ls -b "$redis?db=2")" steps/a 'the list'
    calls=$(redis_cli info commandstats | sed -n 's/^cmdstat_scan:calls=\([0-9]*\),.*/\1/p')
    [ "$calls" -ge 25 ] || die "5000 keys in $calls steps"
    front slow "$base/redis.sock"
    took=$(milliseconds_of "$hf" ls -b "redis://$at/2?op_timeout=700ms")
    equal "$(cat "$base/took")" 0 'a slow server'
    [ "$took" -ge 700 ] || die "took $took ms: proves nothing"
}

# own_redis OPTION...: starts a server for this case only.
own_redis() {
    base=$PWD
    start_redis "$@"
    started="$started $redis_pid"
    HOLDFAST_URL=$redis
}

# survives EVENTS: a watch must survive a restart of the server, whose option
# notify-keyspace-events is EVENTS.
survives() {
    own_redis --notify-keyspace-events "$1"
    start "$hf" watch --json restart/a >changes 2>said
    watcher=$pid
    until_true lines changes 1
    kill -9 "$redis_pid"
    until_true contains said 'changes are not seen until the server answers again'
    own_redis --notify-keyspace-events "$1"
    until_true contains said 'the server answers again'
    hold_as "x$1" restart/a
    until_true last changes '"event":"acquired"' "\"pid\":$pid,"
    let_one_go "x$1"
    until_true last changes '"event":"released"'
    equal "$(grep -c 'not seen until' said)" 1 'said once'
    kill "$watcher"
    ends "$watcher" 143 'the watcher'
    kill -9 "$redis_pid"
}

watch_survives_a_restart() {
    survives KA
    survives ''
}

# Prints how often clients have asked the server who subscribes to their
# channel. A client asks this once, when its two connections are up.
proofs() {
    redis_cli info commandstats |
        sed -n 's/^cmdstat_pubsub|numsub:calls=\([0-9]*\).*/\1/p'
}

count_proofs() {
    proofs_before=$(proofs)
}

is_proved() {
    [ "0$(proofs)" -gt "${proofs_before:-0}" ]
}

if [ "$place" = redis ]; then
    before_it_listens=count_proofs
    until_it_listens='until_true is_proved'
    start_redis
    HOLDFAST_URL=$redis
    # shellcheck disable=SC2086 # a list
    run_cases $operator_cases a_broken_holder_hears_it_at_once \
        a_stranger_is_not_asked polling_is_said \
        a_stranger_is_shown_and_broken ls_walks_in_small_steps \
        watch_is_told_by_the_server watch_of_a_prefix_is_told_by_the_server \
        watch_sees_a_flush watch_survives_a_restart
else
    # shellcheck disable=SC2086 # a list
    run_cases $operator_cases a_broken_holder_hears_it_at_once polling_is_said \
        full_is_said looking_makes_no_memory misuse_is_explained \
        the_largest_latch help_is_one_screen a_backend_that_is_not_there_is_69
fi
