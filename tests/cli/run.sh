#!/bin/sh
# Tests holdfast run, sentence by sentence of its manual. Usage: run.sh HOLDFAST
# shellcheck disable=SC2016 # what is in single quotes is for other shells
set -u
. "$(dirname "$0")/lib.sh"

stdin_goes_to_the_command() { # case
    equal "$(echo hello | "$hf" run a -- cat)" hello 'what cat read'
}

the_exit_status_is_the_commands() { # case
    equal "$(status_of "$hf" run a -- sh -c 'exit 7')" 7 'exit 7'
    equal "$(status_of "$hf" run a true)" 0 'without --'
}

a_signal_that_ended_it_is_128_more() { # case
    equal "$(status_of "$hf" run a -- sh -c 'kill -USR1 $$')" 138 USR1
    equal "$(status_of "$hf" run a -- sh -c 'kill -KILL $$')" 137 KILL
}

not_found_is_127_and_not_runnable_is_126() { # case
    reports 127 no-such-command run a -- no-such-command
    equal "$(status_of "$hf" run a -- /)" 126 'a directory'
    equal "$(status_of "$hf" run -n a -- true)" 0 'the lock afterwards'
}

name_and_token_are_in_its_environment() { # case
    show='echo "$HOLDFAST_NAME $HOLDFAST_TOKEN"'
    first=$("$hf" run 'a name' -- sh -c "$show")
    second=$("$hf" run 'a name' -- sh -c "$show")
    equal "${first% *}" 'a name' HOLDFAST_NAME
    [ "${second##* }" -gt "${first##* }" ] ||
        die "tokens do not rise: $first, $second"
}

it_inherits_none_of_our_descriptors() { # case
    # Descriptor 9 comes from the caller, not from holdfast.
    ls /proc/self/fd 9</dev/null >wanted
    "$hf" run a -- ls /proc/self/fd 9</dev/null >got
    "$hf" run -b "$redis" a -- ls /proc/self/fd 9</dev/null >got-redis
    cmp wanted got || die "$(cat got)"
    cmp wanted got-redis || die "$(cat got-redis)"
}

a_string_is_run_by_the_shell() { # case
    equal "$("$hf" run a -c 'echo $((1 + 2))')" 3 'NAME -c STRING'
    equal "$("$hf" run -c 'echo $((1 + 2))' a)" 3 '-c STRING NAME'
    equal "$(SHELL=/bin/echo "$hf" run a -c word)" '-c word' SHELL
}

signals_go_to_the_command() { # case
    start_until ready "$hf" run a -- sh -c '
        for s in TERM INT HUP QUIT USR1 USR2 WINCH; do
            trap "echo $s >>got" $s
        done
        echo >ready; until [ -e end ]; do sleep 0.01; done'
    for s in TERM INT HUP QUIT USR1 USR2 WINCH; do
        kill -s "$s" "$pid"
        until_true contains got "$s"
    done
    touch end
    ends "$pid" 0 'exit status'
}

an_ignored_signal_stays_ignored() { # case
    trap '' HUP
    "$hf" run a -- sh -c 'trap "echo USR1 >>got; exit 3" USR1
        echo >ready; while :; do sleep 0.01; done' &
    pid=$!
    started=$pid
    until_true test -s ready
    kill -HUP "$pid"
    kill -USR1 "$pid"
    ends "$pid" 3 'exit status'
}

a_signal_reaches_the_whole_group() { # case
    start_until ready "$hf" run a -- sh -c 'sh -c "trap \"echo child >got; exit\" TERM
        echo >ready; while :; do sleep 0.01; done" & wait'
    kill "$pid"
    ends "$pid" 143 'exit status'
    until_true contains got child
}

# The command must not be one that forks: a shell that is stopped while it forks
# hangs in the kernel, and does not count as stopped.
it_stops_and_continues() { # case
    start_until ready "$hf" run a -- sh -c 'echo $$ >ready; exec sleep 1000'
    command=$(cat ready)
    until_true contains "/proc/$command/comm" sleep
    kill -TSTP "$pid"
    until_true stopped "$command"
    kill -CONT "$pid"
    until_true not stopped "$command"
    kill "$pid"
    ends "$pid" 143 'exit status'
}

# on_a_terminal COMMAND: runs COMMAND on a terminal; the output is in
# `typescript'. `script` creates the terminal, and types its own standard input
# there.
on_a_terminal() {
    script -qec "$1" /dev/null | tr -d '\r' >typescript
}

a_job_of_its_own_gets_the_terminal() { # case
    echo typed | on_a_terminal "exec '$hf' run a -- sh -c '
        ps -o stat= -p \$\$; read -r x; echo read \$x'"
    says typescript '+'
    says typescript 'read typed'
}

in_a_script_it_gets_the_terminal_when_it_asks() { # case
    printf 'one\ntwo\n' | on_a_terminal "
        '$hf' run a -- sh -c 'read -r x; echo first \$x'
        read -r y; echo then \$y"
    says typescript 'first one'
    says typescript 'then two'
}

# Starts an interactive shell on a terminal; the function `types` types there.
at_a_shell() {
    mkfifo keys
    exec 8<>keys
    start sh -c 'exec script -qec "sh -i" /dev/null <keys >typescript 8>&-'
}

types() {
    # shellcheck disable=SC2059 # it has escapes
    printf "$1" >&8
}

# types_a_job HOW: writes the script `job', and makes the shell of at_a_shell
# run it by the line `HOW ./job', where HOW is `.' or `sh'. $ours is then the pid
# of holdfast, and $command the pid of the command that holdfast runs.
types_a_job() {
    echo "'$hf' run a -- sh -c 'echo \$PPID \$\$ >ready; exec sleep 1000'
        echo \$? >status" >job
    types "$1 ./job\n"
    until_true test -s ready
    read -r ours command <ready
    until_true contains "/proc/$command/comm" sleep
}

both_are() {
    "$@" "$ours" && "$@" "$command"
}

neither_is() {
    not "$@" "$ours" && not "$@" "$command"
}

ctrl_c_goes_to_the_command() { # case
    echo "'$hf' run a -- sh -c 'trap \"echo INT >>got; exit 3\" INT
        echo >ready; while :; do sleep 0.01; done'; echo \$? >status" >job
    at_a_shell
    types '. ./job\n'
    until_true test -s ready
    types '\003'
    until_true test -s status
    equal "$(cat status)" 3 'exit status'
    equal "$(cat got)" INT 'what it got'
}

# ctrl_z HOW: starts a job as types_a_job does, and types ^Z. The shell must
# print its prompt again, and `fg' must continue the job.
ctrl_z() {
    at_a_shell
    types_a_job "$1"
    types '\032'
    until_true both_are stopped
    types 'echo >back\n'
    until_true test -s back
    equal "$(status_of "$hf" run -n a -- true)" 75 'the lock meanwhile'
    types 'fg\n'
    until_true neither_is stopped
}

ctrl_z_stops_a_job() { # case
    ctrl_z .
    types '\003'
    until_true both_are gone
    types 'echo >again\n'
    until_true test -s again
}

ctrl_z_stops_a_script() { # case
    ctrl_z sh
    kill "$ours"
    until_true test -s status
    equal "$(cat status)" 143 'exit status'
}

a_try_that_fails_is_75() { # case
    hold a
    reports 75 'a: held by process' run -n a -- true
    equal "$(status_of "$hf" run -w 0 a -- true)" 75 '-w 0'
    equal "$(status_of "$hf" run -n -q a -- true)" 75 '-q'
    equal "$(cat err)" '' 'what -q says'
    equal "$(status_of "$hf" run -n b -- true)" 0 'another name'
    let_go
    equal "$(status_of "$hf" run -n a -- true)" 0 'afterwards'
}

a_wait_that_ends_is_75() { # case
    hold a
    for duration in 50ms 0.05 0.05s 0.001m 0.00001h; do
        equal "$(status_of "$hf" run -w "$duration" a -- true)" 75 "$duration"
    done
    let_go
}

who_holds_it_is_said() { # case
    hold --label 'the holder' a
    for how in -n '-w 0.1'; do
        # shellcheck disable=SC2086 # one word or two
        reports 75 "process $holder on $(uname -n) (the holder)" run $how a -- true
    done
    let_go
    hold -b "$redis" --label 'at redis' b
    reports 75 "process $holder on $(uname -n) (at redis)" run -n -b "$redis" b -- true
    let_go
    redis_cli hset c another:1 1 >/dev/null # another program holds c
    reports 75 'c: held by another:1$' run -n -b "$redis" c -- true
    redis_cli del c >/dev/null
}

a_lock_of_the_other_dialect_is_said() { # case
    redis_cli set c 0123456789abcdef >/dev/null # as redis-py holds it
    reports 64 'dialect=string' run -n -b "$redis" c -- true
    lacks err '--fair'
    exits 75 run -n -b "$redis?dialect=string" c -- true
    redis_cli del c >/dev/null
}

a_key_that_is_no_lock_is_said() { # case
    redis_cli rpush c x >/dev/null
    reports 64 'the key is a list' run -n -b "$redis" c -- true
    lacks err 'dialect='
    lacks err '--fair'
    redis_cli del c >/dev/null
}

a_long_name_is_cut_in_messages() { # case
    long=$(head -c 512 /dev/zero | tr '\0' x)
    hold "$long"
    reports 75 'xxx\.\.\.: held by' run -n "$long" -- true
    [ "$(wc -c <err)" -lt 200 ] || die "$(cat err)"
    let_go
}

# The server accepts connections but does not answer. Without a limit, holdfast
# would wait for five seconds.
the_wait_includes_connecting() { # case
    kill -STOP "$redis_pid"
    took=$(milliseconds_of "$hf" run -w 0.1 -b "$redis" a -- true)
    other=$(milliseconds_of "$hf" run -n -b "$redis?connect_timeout=0.1" a \
        -- true)
    kill -CONT "$redis_pid"
    [ "$took" -lt 4000 ] || die "-w 0.1 took $took ms"
    [ "$other" -lt 4000 ] || die "connect_timeout=0.1 took $other ms"
    equal "$(cat "$base/took")" 69 'exit status'
}

# silent_waiter OPTION...: starts $waiter with these options. Once it waits,
# stops the server, and sets $begin to the time. With its op_timeout the waiter
# would wait a minute for an answer; an option or a signal must end it sooner.
silent_waiter() {
    until_true not is_waited_for
    start "$hf" run -b "$redis?op_timeout=60s" "$@" a -- true 2>err
    waiter=$pid
    until_true is_waited_for
    kill -STOP "$redis_pid"
    begin=$(uptime_ms)
}

# leaves_with STATUS: the waiter must end soon, with STATUS.
leaves_with() {
    wait_for "$waiter"
    took=$(($(uptime_ms) - begin))
    kill -CONT "$redis_pid"
    equal "$status" "$1" 'exit status'
    [ "$took" -lt 20000 ] || die "took $took ms"
}

times_out_in_silence() {
    silent_waiter -w 1 -q -E 0
    leaves_with 69
    says err '"a" was not granted within .* does not say who'
}

# There are three tries, because on a busy machine the wait may end before the
# test has stopped the server.
a_wait_that_ends_in_silence_is_69() { # case
    hold -b "$redis" a
    (times_out_in_silence) || (times_out_in_silence) || times_out_in_silence
    let_go
}

a_signal_ends_a_wait_in_silence() { # case
    hold -b "$redis" a
    silent_waiter
    kill -TERM "$waiter"
    leaves_with 143
    let_go
}

the_exit_code_for_it_can_be_chosen() { # case
    hold a
    equal "$(status_of "$hf" run -n -E 9 a -- true)" 9 '-E 9'
    equal "$(status_of "$hf" run -n -E 0 a -- true)" 0 '-E 0'
    let_go
}

a_waiter_gets_it_when_the_holder_is_done() { # case
    hold a
    start "$hf" run -w 1m a -- touch got
    waiter=$pid
    let_go
    ends "$waiter" 0 'the waiter'
    [ -e got ] || die 'the command did not run'
}

a_signal_ends_the_wait() { # case
    hold a
    start "$hf" run a -- touch got
    until_true has_guardian "$pid"
    kill -TERM "$pid"
    ends "$pid" 143 'the waiter'
    let_go
    equal "$(status_of "$hf" run -n a -- true)" 0 'afterwards'
    [ ! -e got ] || die 'the command ran'
}

# Each run reads a counter, and writes back its value plus one. If two runs held
# the lock at once, a count would be lost.
only_one_is_inside_at_a_time() {
    echo 0 >count
    while [ "$(echo "$started" | wc -w)" -lt 10 ]; do
        start "$hf" run "$@" a -- sh -c 'read -r n <count
            echo $((n + 1)) >new.$$; mv new.$$ count'
    done
    for one in $started; do
        ends "$one" 0 "run $one"
    done
    equal "$(cat count)" 10 'the counter'
}

only_one_is_inside_fair() { # case
    only_one_is_inside_at_a_time --fair
}

only_one_is_inside_unfair() { # case
    only_one_is_inside_at_a_time --unfair
}

only_one_is_inside_redis() { # case
    only_one_is_inside_at_a_time -b "$redis"
}

misuse_is_64() { # case
    long=$(head -c 513 /dev/zero | tr '\0' x)
    equal "$(status_of "$hf")" 64 'no verb'
    equal "$(status_of "$hf" nonsense)" 64 'no such verb'
    equal "$(status_of "$hf" run)" 64 'no name'
    equal "$(status_of "$hf" run a)" 64 'no command'
    equal "$(status_of "$hf" run a --)" 64 'no command after --'
    equal "$(status_of "$hf" run --nonsense a -- true)" 64 'no such option'
    equal "$(status_of "$hf" run -c true a -- true)" 64 'two commands'
    equal "$(status_of "$hf" run '' -- true)" 64 'an empty name'
    equal "$(status_of "$hf" run "$long" -- true)" 64 'a long name'
    equal "$(status_of "$hf" run -b nonsense: a -- true)" 64 'a scheme'
    equal "$(status_of "$hf" run -b 'shm:?nonsense=1' a -- true)" 64 'an option'
    equal "$(status_of "$hf" run a -c)" 64 '-c without a string'
    equal "$(status_of "$hf" run a -c true true)" 64 '-c with two'
    equal "$(status_of "$hf" run a -n true)" 64 'an option after the name'
    equal "$(status_of "$hf" run -n -w 5 a -- true)" 64 '-n -w 5'
    equal "$(status_of "$hf" run -s -x a -- true)" 64 '-s -x'
    equal "$(status_of "$hf" run --fair --unfair a -- true)" 64 '--fair --unfair'
    equal "$(status_of "$hf" run -n -w 0 a -- true)" 0 '-n -w 0: the same twice'
    for bad in -1 1x '' inf 0x10 ' 1' 1e9 . 99999999999h; do
        equal "$(status_of "$hf" run -w "$bad" a -- true)" 64 "-w '$bad'"
    done
    equal "$(status_of "$hf" run -t 0 a -- true)" 64 '-t 0'
    equal "$(status_of "$hf" run -t 9ms a -- true)" 64 '-t 9ms'
    for bad in 256 -1 x ''; do
        equal "$(status_of "$hf" run -E "$bad" a -- true)" 64 "-E '$bad'"
    done
    equal "$(status_of "$hf" run --on-lost maybe a -- true)" 64 --on-lost
}

what_is_not_supported_is_64_and_says_so() { # case
    reports 64 'no read-write lock .*; it has: mutex$' run -b "$redis?dialect=string" -s a -- true
    reports 64 'no unfair read-write lock .* only a fair one' run --unfair -x a -- true
}

readers_share_and_a_writer_does_not() { # case
    hold -s a
    equal "$(status_of "$hf" run -s -n a -- true)" 0 'another reader'
    reports 75 'a: held by process' run -x -n a -- true
    reports 64 'in use as a read-write lock' run -n a -- true
    let_go
    hold -x a
    equal "$(status_of "$hf" run -s -n a -- true)" 75 'a reader'
    let_go
}

a_forgotten_b_is_seen() { # case
    for url in redis://:s3cret@h shm: SHM:///tmp zk://a,b/root; do
        reports 64 '-b missing' run "$url" -- touch ran
        lacks err s3cret
    done
    [ ! -e ran ] || die 'the command ran'
    equal "$(status_of "$hf" run http://host/page -- true)" 0 'what may be guarded'
    equal "$(status_of "$hf" run -b "$HOLDFAST_URL" shm: -- true)" 0 'with a -b'
}

a_misplaced_url_shows_no_password() { # case
    url="redis://me:it's-s3cret@h"
    is_misuse "\`redis:'" "$url"
    is_misuse "\`redis:'" help "$url"
    is_misuse "\`redis:'" bench "$url"
    is_misuse "\`redis:'" lab "$url"
    is_misuse "\`redis:'" lab oversell "$url"
    is_misuse "\`redis:'" lab oversell --stock "$url"
    is_misuse "\`redis:'" run -w "$url" a -- true
    is_misuse "\`redis:'" run -c true a "$url"
    is_misuse "\`--backend=redis:' after" run a "--backend=$url" -- true
    is_misuse "\`-bredis:' after" run a "-b$url" -- true
    is_misuse "called \`--backnd'; did you mean --backend?" run "--backnd=$url" a -- true
    is_misuse "called \`--backnd'; did you mean --backend?" bench "--backnd=$url"
    is_misuse "called \`--qzx'" bench "--qzx=$url"
    is_misuse 'quiet takes no value' run "--quiet=$url" a -- true
    is_misuse "called \`-Z'" run "-qZ$url" a -- true
    is_misuse "\`--backend' needs" run --backend
    is_misuse "\`-qb' needs" run -qb
}

# opening URL WORD...: the URL must be refused with 64, and the message must
# contain each word.
opening() {
    url=$1
    shift
    equal "$(status_of "$hf" run -b "$url" a -- true)" 64 "$url"
    for word; do
        says err "$word"
    done
}

what_is_wrong_with_a_url_is_said() { # case
    for scheme in consul gopher; do
        opening "$scheme://h" "$scheme" shm: redis:// redis+unix:// rediss:// zk://
    done
    opening "$redis?cacert=/etc/ca.pem" cacert rediss://
    opening 'shm:?ttl=9ms' 'ttl=9ms' 10ms
    opening "$redis?dialect=string&fair=yes" 'fair=yes' 'dialect=string'
    equal "$(status_of "$hf" run -b "SHM://$base/shm" a -- true)" 0 'SHM:'
}

a_missing_password_is_said() { # case
    redis_cli config set requirepass s3cret >/dev/null
    equal "$(status_of "$hf" run -b "$redis" a -- true)" 77 'without'
    cp err without
    equal "$(HOLDFAST_PASSWORD=wr0ng status_of "$hf" run -b "$redis" a true)" 77 \
        'a wrong one'
    cp err wrong
    equal "$(HOLDFAST_PASSWORD=s3cret status_of "$hf" run -b "$redis" a true)" 0 \
        HOLDFAST_PASSWORD
    redis_cli -a s3cret --no-auth-warning config set requirepass '' >/dev/null
    says without HOLDFAST_PASSWORD
    says wrong password
    lacks wrong wr0ng
}

an_unreachable_backend_is_69() { # case
    reports 69 'redis: 127.0.0.1:1: ' run -n -b redis://127.0.0.1:1 a -- true
    equal "$(HOLDFAST_URL=redis://127.0.0.1:1 status_of "$hf" run -n a true)" 69 \
        HOLDFAST_URL
}

# A command that has a child. The child ignores TERM, and writes the current
# time repeatedly until it is killed.
beating='trap "echo TERM >term" TERM
    sh -c "trap \"\" TERM HUP; echo \$\$ >child; : >beats
        while read -r now _ </proc/uptime; do
            echo \$now >>beats; echo \$now >new; mv new beat
        done" &
    until [ -s beat ]; do :; done; echo $$ >ready; wait; wait'

start_beating() {
    start_until ready "$hf" run "$@" -- sh -c "$beating" 2>err
    command=$(cat ready)
    child=$(cat child)
}

both_are_gone() {
    gone "$command" && gone "$child"
}

# stood_ms SINCE: prints for how many milliseconds after SINCE the machine
# stalled, as the gaps between the times in `beats' show.
stood_ms() {
    awk -v since="$1" '
        $1 * 1000 > since && last && $1 - last > 0.1 { stood += $1 - last }
        { last = $1 } END { printf "%d", stood * 1000 }' beats
}

# gets_term_because TEXT FUNCTION: FUNCTION must make the command get TERM, with
# a message that contains TEXT. FUNCTION is called up to five times, because KILL
# follows TERM soon: on a busy machine the shell may be killed before it reports
# TERM, or the message may name the delay as the reason.
gets_term_because() {
    for _ in 1 2 3 4 5; do
        rm -f ready beat
        "$2"
        ! contains term TERM || ! contains err "$1" || return 0
    done
    says term TERM
    die "does not say '$1': $(cat err)"
}

is_not_renewed() {
    start_beating -b "$redis" -t 3s a
    kill -STOP "$redis_pid"
    halted=$(uptime_ms)
    wait_for "$pid"
    kill -CONT "$redis_pid"
    equal "$status" 79 'exit status'
    until_true both_are_gone
    says err ' the lock "a"'
    ran=$(($(uptime_ms beat) - halted - $(stood_ms "$halted")))
    [ "$ran" -lt 3000 ] || die "still ran $ran ms after the last renewal"
}

without_renewal_the_group_gets_term_then_kill_and_we_exit_79() { # case
    gets_term_because 'the server could not be used since 2' is_not_renewed
    says err "redis.sock: "
}

is_taken_away() {
    start_beating -b "$redis" -t 3s b
    redis_cli del b >/dev/null
    ends "$pid" 79 'exit status'
    until_true both_are_gone
}

a_hold_that_was_taken_away_ends_the_group_with_79() { # case
    gets_term_because 'lost the lock "b": it is no longer on the server (broken, deleted, evicted, ' is_taken_away
}

# logind deletes the file when the user's last session ends.
the_lock_file_is_deleted_and_we_exit_79() { # case
    start_beating -b "shm://$base/deleted" a
    rm -r "$base/deleted"
    ends "$pid" 79 'exit status'
    says err 'deleted/locks was deleted'
    until_true both_are_gone
}

on_lost_warn_only_warns() { # case
    start_until ready "$hf" run -b "$redis" -t 3s --on-lost warn c -- \
        sh -c 'echo >ready
            until [ -e end ]; do sleep 0.01; done; exit 5' 2>err
    redis_cli del c >/dev/null
    until_true contains err 'the command continues without it'
    says err 'lost the lock '
    touch end
    ends "$pid" 5 'exit status'
}

# The command ends just before the deadline that the grant set. A renewal has
# moved that deadline by then, so holdfast must not warn. If the machine stalls,
# the lock may really be lost; therefore there are five tries.
on_lost_warn_does_not_warn_of_a_lock_that_is_held() { # case
    for _ in 1 2 3 4 5; do
        exits 0 run -b "$redis" -t 1s --on-lost warn h -- sleep 0.95
        [ -s err ] || return 0
    done
    die "$(cat err)"
}

# holdfast is stopped until its deadline has passed. If a renewal was in flight,
# the message says that the renewal was not answered, and not that holdfast was
# stopped; therefore there are three tries.
stopped_past_its_deadline_the_group_is_ended_too() { # case
    for _ in 1 2 3; do
        rm -f ready beat
        start_beating -b "$redis" -t 3s d
        kill -STOP "$pid"
        until_true both_are_gone
        kill -CONT "$pid"
        ends "$pid" 79 'exit status'
        ! contains err 'stopped' || return 0
    done
    die "does not say why: $(cat err)"
}

# holdfast is stopped for nearly the whole lease, so that no time is left to
# renew it. holdfast must end the command and say why. There are five tries,
# because the lease runs out before that if the machine stalls, too.
stopped_until_its_deadline_is_near() { # case
    for _ in 1 2 3 4 5; do
        rm -f ready beat
        start_beating -b "$redis" -t 6s d
        begin_beats=$(uptime_ms)
        kill -STOP "$pid"
        sleep 5.3
        kill -CONT "$pid"
        wait_within_beats || continue
        equal "$status" 79 'exit status'
        until_true both_are_gone
        ! contains err 'cannot renew the lock "d" in time: holdfast was stopped .*; ending' ||
            return 0
    done
    die "does not say why: $(cat err)"
}

# Returns false if holdfast renewed the lock in time, so that the command
# continued.
wait_within_beats() {
    until_true gone_or_beats
    gone "$pid" || kill -KILL "$pid"
    wait_for "$pid"
    [ "$status" -ne 137 ]
}

gone_or_beats() {
    gone "$pid" || beaten_past $((begin_beats + 9000))
}

renewals_keep_it() { # case
    start_beating -b "$redis" -t 6s e
    begin=$(uptime_ms)
    # 9 seconds are one and a half leases.
    until_true beaten_past $((begin + 9000))
    kill -0 "$pid" || die 'did not live that long'
    equal "$(status_of "$hf" run -n -b "$redis" e -- true)" 75 'another'
    kill -KILL "$pid"
}

beaten_past() {
    [ "$(uptime_ms beat)" -gt "$1" ]
}

# Standard error is a pipe that no process reads. Nothing but the messages may
# be lost: the command must run, and its exit status must be returned.
a_message_that_is_not_read_ends_nothing() { # case
    (
        set +e
        "$hf" run --verbose a -- sh -c 'echo ran >ran; exit 3' 2>&1 >/dev/null
        echo "$?" >status
    ) | :
    until_true test -s status
    equal "$(cat status)" 3 'exit status'
    [ -s ran ] || die 'the command did not run'
    "$hf" run a -- sh -c 'kill -PIPE $$; exit 5' && die 'no signal'
    equal "$?" 141 'SIGPIPE of the command'
}

killed_with_9_the_group_ends_with_it() { # case
    start_beating a
    kill -9 "$pid"
    until_true both_are_gone
    equal "$(status_of "$hf" run -w 10s a -- true)" 0 'the next one'
}

killed_with_9_as_soon_as_it_started() { # case
    times=20
    while [ "$times" -gt 0 ]; do
        rm -f ready beat
        start_beating a
        kill -9 "$pid"
        until_true both_are_gone
        times=$((times - 1))
    done
}

killed_with_9_while_it_waits_nothing_is_left() { # case
    hold a
    start "$hf" run a -- touch got
    until_true has_guardian "$pid"
    guardian=$(guardian_of "$pid")
    kill -9 "$pid"
    until_true gone "$guardian"
    let_go
    equal "$(status_of "$hf" run -w 10s a -- true)" 0 'the next one'
    [ ! -e got ] || die 'the command ran'
}

a_killed_guardian_is_replaced() { # case
    start_beating a
    guardian=$(guardian_of "$pid")
    kill -9 "$guardian"
    until_true gone "$guardian"
    until_true another_in_group "$command" "$guardian"
    kill -9 "$pid"
    until_true both_are_gone
}

# The command leaves its group, so that it survives KILL, like a process that
# hangs in the kernel or belongs to another user. The guardian kills the group,
# including itself, but not the command. holdfast must not replace the guardian
# for ever.
a_command_that_cannot_be_ended_is_waited_for() { # case
    start_until ready "$hf" run -b "$redis" -t 3s f -- perl -e '
        setpgrp(0, getpgrp(getppid())); $SIG{TERM} = "IGNORE";
        open my $f, ">", "ready"; print $f "$$\n"; close $f;
        select(undef, undef, undef, 0.01) until -e "end"' 2>err
    guardian=$(guardian_of "$pid")
    redis_cli del f >/dev/null
    until_true gone "$guardian"
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        until_true not has_guardian "$pid"
    done
    kill -0 "$pid" || die 'does not wait for the command'
    touch end
    ends "$pid" 79 'exit status'
    equal "$(wc -l <err)" 1 'lines said'
}

# another_in_group GROUP GUARDIAN: returns whether the group contains a guardian
# other than GUARDIAN, which may still be a zombie.
another_in_group() {
    pgrep -g "$1" hf-guardian | grep -q -v -x "$2"
}

# The reply to the release takes longer than the lease. In the meantime a
# process that the command left running must not be ended.
what_it_left_running_goes_on_while_we_let_go() { # case
    start_until ready "$hf" run -b "$redis?op_timeout=6s" -t 4s g -- sh -c '
        (until [ -e end ]; do sleep 0.01; done; echo >ended) &
        echo >ready; until [ -e leave ]; do sleep 0.01; done' 2>err
    kill -STOP "$redis_pid"
    touch leave
    wait_for "$pid"
    kill -CONT "$redis_pid"
    equal "$status" 0 'exit status'
    touch end
    until_true test -s ended
}

# holdfast has a child that it did not start, like process 1 of a container, which
# adopts orphans.
children_that_are_not_its_own_are_waited_for() { # case
    start_until ready sh -c '(until [ -e go ]; do sleep 0.01; done) & echo $! >adopted
        exec "$0" run a -- sh -c "echo >ready
            until [ -e end ]; do sleep 0.01; done"' "$hf"
    touch go
    until_true test ! -e "/proc/$(cat adopted)"
    touch end
    ends "$pid" 0 'exit status'
}

nothing_is_left_when_all_went_well() { # case
    start "$hf" run a -- sh -c 'until pgrep -g $$ hf-guardian; do :; done >guardian'
    ends "$pid" 0 'exit status'
    gone "$(cat guardian)" || die 'the guardian is still there'
}

start_redis
run_cases
