#!/bin/sh
# Tests how `holdfast run` waits for a server that cannot be used yet, or that
# is lost later. Usage: wait.sh HOLDFAST
# shellcheck disable=SC2016 # what is in single quotes is for other shells
set -u
. "$(dirname "$0")/lib.sh"

waits_for_a_redis_that_refuses() { # case
    front refuse "$base/redis.sock"
    waits_then_runs "redis: 127.0.0.1:$port: Connection refused" -b "redis://$at"
}

waits_for_a_redis_that_closes() { # case
    front close "$base/redis.sock"
    waits_then_runs "redis: 127.0.0.1:$port: " -b "redis://$at"
}

waits_for_a_redis_that_resets() { # case
    front reset "$base/redis.sock"
    waits_then_runs "redis: 127.0.0.1:$port: " -b "redis://$at"
}

waits_for_a_redis_that_does_not_answer() { # case
    front silent "$base/redis.sock"
    waits_then_runs ' 200 ms' -b "redis://$at?connect_timeout=200ms"
}

waits_for_a_redis_that_is_loading() { # case
    front loading "$base/redis.sock"
    waits_then_runs LOADING -b "redis://$at"
}

with_w_it_waits_too() { # case
    front loading "$base/redis.sock"
    waits_then_runs LOADING -w 5m -b "redis://$at"
}

waits_for_a_redis_that_is_started() { # case
    start "$hf" run -b "redis+unix://$PWD/sock" a -- touch ran 2>err
    waiter=$pid
    until_true contains err 'waiting for the server: .*No such file or directory'
    own_redis
    ends "$waiter" 0 'exit status'
    equal "$(wc -l <err)" 1 'lines said'
    [ -e ran ] || die 'the command did not run'
}

quiet_it_says_nothing() { # case
    front close "$base/redis.sock"
    start "$hf" run -q -b "redis://$at" a -- touch ran 2>err
    until_true met 3
    touch open
    ends "$pid" 0 'exit status'
    [ -e ran ] || die 'the command did not run'
    equal "$(wc -c <err)" 0 'bytes said'
}

# holdfast pauses between attempts, for at least half of 100, 200, 400, 800, 1600
# ms. There may be more connections than attempts, because in each attempt the
# client may reconnect by itself before it is closed.
with_w_the_whole_time_is_used() { # case
    front close "$base/redis.sock"
    took=$(milliseconds_of "$hf" run -w 2 -b "redis://$at" a -- touch ran)
    equal "$(cat "$base/took")" 69 'exit status'
    [ "$took" -ge 1900 ] || die "took $took ms"
    not met 50 || die "tried $(wc -l <met) times"
    [ "$(wc -l <err)" -le 2 ] || die 'said more than what it waits for, and the end'
    says err ": 127.0.0.1:$port: "
    tail -n 1 err | grep -q 'cannot open .*: \|not acquired within 2 s: ' ||
        die "the last line: $(tail -n 1 err)"
    [ ! -e ran ] || die 'the command ran'
}

# fails_at_once STATUS URL OPTION...: holdfast must end with STATUS without
# waiting.
fails_at_once() {
    wanted=$1
    url=$2
    shift 2
    equal "$(status_of "$hf" run "$@" -b "$url" a -- touch ran)" "$wanted" "$url"
    equal "$(wc -l <err)" 1 'lines said'
    lacks err waiting
    [ ! -e ran ] || die "$url: the command ran"
}

with_n_it_does_not_wait() { # case
    front close "$base/redis.sock"
    fails_at_once 69 "redis://$at" -n
    fails_at_once 69 "redis://$at" -w 0
    fails_at_once 69 "redis+unix://$PWD/nothing" -n
}

what_does_not_pass_is_not_waited_for() { # case
    for w in '' '-w 10m'; do
        # shellcheck disable=SC2086 # '' must give no argument
        fails_at_once 69 redis://a..b $w # cannot be a host name
        # shellcheck disable=SC2086
        fails_at_once 64 redis://host/x $w
        # shellcheck disable=SC2086
        fails_at_once 64 "redis://host/1?db=2" $w
        # shellcheck disable=SC2086
        fails_at_once 69 "redis+unix://$base/redis.log/sock" $w # no directory
    done
}

what_is_no_redis_is_not_waited_for() { # case
    front foreign "$base/redis.sock"
    fails_at_once 69 "redis://$at"
    says err 'do not understand'
}

a_redis_that_is_of_no_use_is_not_waited_for() { # case
    front useless "$base/redis.sock"
    fails_at_once 69 "redis://$at"
    says err "ERR unknown command 'EVAL'; a sentinel has no such command: if this is one, use the address of its master"
}

# The reason for the wait is reported once.
a_server_that_stays_down_is_said_once() { # case
    for verb in run hold; do
        set -- "$hf" "$verb" -w 0.5 -b redis://127.0.0.1:1 a
        [ "$verb" = hold ] || set -- "$@" -- true
        equal "$(status_of "$@")" 69 "$verb"
        equal "$(grep -c 'Connection refused' err)" 1 'lines that say why'
        equal "$(tail -n 1 err)" "holdfast $verb: a: not acquired within 500 ms: the server cannot be used" \
            'the last line'
    done
    equal "$(status_of "$hf" run -q -w 0.5 -b redis://127.0.0.1:1 a -- true)" 69 '-q'
    equal "$(cat err)" "holdfast run: cannot open the backend: redis: 127.0.0.1:1: Connection refused" '-q'
}

# Starts a server for this case only: $own is its URL.
own_redis() {
    start redis-server --port 0 --unixsocket "$PWD/sock" --dir "$PWD" \
        --save '' --appendonly no >redis.log 2>&1
    server=$pid
    own="redis+unix://$PWD/sock?op_timeout=300ms"
    until_true own_cli ping >/dev/null 2>&1
}

own_cli() {
    redis-cli -s sock "$@"
}

# Replaces the function of lib.sh, which asks the shared server.
is_waited_for() {
    [ -n "$(own_cli pubsub channels 'redisson_lock__channel*')" ]
}

# waits_for_its_turn OPTION...: starts a waiter while another program holds the
# lock.
waits_for_its_turn() {
    own_redis
    own_cli hset a another:1 1 >/dev/null
    start "$hf" run "$@" -b "$own" a -- touch ran 2>err
    waiter=$pid
    until_true is_waited_for
    lacks err 'the server'
}

a_wait_survives_a_restart_of_the_server() { # case
    waits_for_its_turn
    kill -9 "$server"
    until_true contains err 'a: waiting for the server: redis: '
    own_redis
    ends "$waiter" 0 'exit status'
    [ -e ran ] || die 'the command did not run'
    equal "$(grep -c 'waiting for the server' err)" 1 'lines said of the server'
}

a_wait_survives_a_server_that_hangs() { # case
    waits_for_its_turn
    kill -STOP "$server"
    until_true contains err 'a: waiting for the server: redis: '
    kill -CONT "$server"
    until_true is_waited_for
    [ ! -e ran ] || die 'the command ran'
    own_cli del a >/dev/null
    ends "$waiter" 0 'exit status'
    [ -e ran ] || die 'the command did not run'
}

waits_or_is_gone() {
    is_waited_for || gone "$waiter"
}

# On a busy machine a short wait may end before the server is killed; then a
# longer wait is tried.
with_w_a_lost_server_is_69_when_the_time_is_over() { # case
    own_redis
    own_cli hset a another:1 1 >/dev/null
    for seconds in 3 10 60; do
        begin=$(uptime_ms)
        start "$hf" run -w "$seconds" -b "$own" a -- touch ran 2>err
        waiter=$pid
        until_true waits_or_is_gone
        gone "$waiter" || break
    done
    kill -9 "$server"
    wait_for "$waiter"
    took=$(($(uptime_ms) - begin))
    equal "$status" 69 'exit status'
    [ "$took" -ge $((seconds * 1000 - 100)) ] || die "took $took ms"
    [ ! -e ran ] || die 'the command ran'
}

# A replica accepts connections, but refuses the writes that a lock needs.
a_replica_is_waited_for_until_it_is_the_master() { # case
    own_redis
    own_cli replicaof 127.0.0.1 1 >/dev/null
    start "$hf" run -b "$own" a -- touch ran 2>err
    until_true contains err 'a: waiting for the server: redis: READONLY'
    own_cli replicaof no one >/dev/null
    ends "$pid" 0 'exit status'
    [ -e ran ] || die 'the command did not run'
    equal "$(wc -l <err)" 1 'lines said'
}

holds_or_is_gone() {
    [ -e holds ] || gone "$pid"
}

# -w limits only the first connection, which is made before the command starts;
# connect_timeout limits later ones. On a busy machine the time of -w may pass
# before the command starts; therefore there are five tries.
with_w_a_reconnect_has_the_time_of_the_url() { # case
    front silent "$base/redis.sock"
    for _ in 1 2 3 4 5; do
        touch open
        start "$hf" run -w 1 -b "redis://$at?connect_timeout=10m" a -- \
            sh -c 'touch holds; until [ -e done ]; do sleep 0.01; done' 2>err
        until_true holds_or_is_gone
        [ ! -e holds ] || break
    done
    [ -e holds ] || die 'never got it'
    rm met open
    until_true met 1
    begin=$(uptime_ms)
    while [ $(($(uptime_ms) - begin)) -lt 3000 ]; do
        # Commands use one connection and notifications another. A third
        # connection would be a second attempt.
        not met 3 || die 'has not waited for connect_timeout'
        sleep 0.05
    done
    touch open done
    ends "$pid" 0 'exit status'
}

# The release is tried once, within op_timeout, and does not change the exit
# status of the command.
a_server_that_is_gone_at_the_end_is_asked_once() { # case
    own_redis
    took=$(milliseconds_of "$hf" run -b "redis+unix://$PWD/sock?op_timeout=8s" a -- \
        sh -c 'redis-cli -s sock shutdown nosave; exit 3')
    equal "$(cat "$base/took")" 3 'exit status'
    says err 'the lock is free when its ttl has passed'
    [ "$took" -lt 15500 ] || die "took $took ms"
}

a_signal_while_it_lets_go_does_not_change_the_status() { # case
    own_redis
    start_until ended "$hf" run -b "redis+unix://$PWD/sock?op_timeout=2s" a -- \
        sh -c 'redis-cli -s sock shutdown nosave; echo $$ >ended; exit 3' 2>err
    until_true gone "$(cat ended)"
    kill -TERM "$pid"
    ends "$pid" 3 'exit status'
    says err 'the lock is free when its ttl has passed'
}

a_wait_ends_with_77_if_the_password_is_wrong() { # case
    own_redis
    own_cli config set requirepass s3cret >/dev/null
    front loading "$PWD/sock"
    start "$hf" run -b "redis://$at" a -- touch ran 2>err
    until_true contains err waiting
    touch open
    ends "$pid" 77 'exit status'
    says err 'wants a password'
    [ ! -e ran ] || die 'the command ran'
}

# On a busy machine the time of -w may pass before the server answers; then a
# longer time is tried.
with_w_a_lock_that_is_held_is_75_when_the_time_is_over() { # case
    own_redis
    own_cli hset a another:1 1 >/dev/null
    front loading "$PWD/sock"
    for seconds in 3 10 60; do
        rm -f open
        start "$hf" run -w "$seconds" -b "redis://$at" a -- touch ran 2>err
        until_true waiting_or_gone
        touch open
        wait_for "$pid"
        [ "$status" -eq 69 ] || break
    done
    equal "$status" 75 'exit status'
    says err 'a: not acquired within .* it is held by another:1$'
    [ ! -e ran ] || die 'the command ran'
}

waiting_or_gone() {
    contains err waiting || gone "$pid"
}

# a_signal_ends NAME STATUS: the signal must end the process $pid with STATUS.
a_signal_ends() {
    kill -"$1" "$pid"
    ends "$pid" "$2" "$1"
    [ ! -e ran ] || die 'the command ran'
}

a_signal_ends_the_wait_for_a_server() { # case
    front refuse "$base/redis.sock"
    for signal in 'TERM 143' 'INT 130' 'HUP 129'; do
        start "$hf" run -b "redis://$at" a -- touch ran 2>err
        until_true contains err waiting
        # shellcheck disable=SC2086 # two words
        a_signal_ends $signal
    done
}

a_signal_ends_connecting() { # case
    front silent "$base/redis.sock"
    start "$hf" run -b "redis://$at?connect_timeout=10m" a -- touch ran
    until_true met 1
    a_signal_ends TERM 143
}

a_signal_ends_the_wait_for_a_lost_server() { # case
    waits_for_its_turn
    kill -9 "$server"
    until_true contains err waiting
    pid=$waiter
    a_signal_ends TERM 143
}

# ends_at_once: TERM must end a wait at once. One of five tries is enough,
# because the machine may be busy. $begin_wait names the function that starts
# the wait and sets $pid.
ends_at_once() {
    for _ in 1 2 3 4 5; do
        "$begin_wait"
        begin=$(uptime_ms)
        a_signal_ends TERM 143
        took=$(($(uptime_ms) - begin))
        [ "$took" -ge 500 ] || return 0
    done
    die "took $took ms"
}

waits_for_a_replica() {
    start "$hf" run -b "redis+unix://$PWD/sock" a -- touch ran 2>err
    until_true contains err 'waiting for the server: redis: READONLY'
}

a_signal_ends_the_wait_for_a_server_that_refuses() { # case
    own_redis
    own_cli replicaof 127.0.0.1 1 >/dev/null
    begin_wait=waits_for_a_replica
    ends_at_once
}

# Starts a waiter, and makes the server a replica once the waiter is in the
# queue. The server then refuses to remove the waiter.
waits_in_the_queue_of_a_replica() {
    own_cli replicaof no one >/dev/null
    start "$hf" run -b "redis+unix://$PWD/sock" a -- touch ran 2>err
    until_true is_waited_for
    own_cli replicaof 127.0.0.1 1 >/dev/null
    until_true contains err 'waiting for the server: redis: READONLY'
}

a_signal_ends_the_wait_for_a_server_that_refuses_by_now() { # case
    own_redis
    own_cli hset a another:1 1 >/dev/null
    begin_wait=waits_in_the_queue_of_a_replica
    ends_at_once
}

an_ignored_signal_does_not_end_it() { # case
    front refuse "$base/redis.sock"
    start sh -c 'trap "" HUP; exec "$@"' sh "$hf" run -b "redis://$at" a -- \
        touch ran 2>err
    until_true contains err waiting
    kill -HUP "$pid"
    touch open
    ends "$pid" 0 'exit status'
    [ -e ran ] || die 'the command did not run'
}

start_redis
run_cases
