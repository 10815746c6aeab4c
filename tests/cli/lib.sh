# Functions for the tests of the command: TAP, a directory for each case, polling.
# shellcheck shell=sh
#
# A case is a function marked by "# case", or by "# case on both" to run on shared
# memory and then on Redis. A case runs in a subshell, in its own directory. It
# fails by calling `die`, and at its end all processes that it began with `start`
# are killed. Words after HOLDFAST select the cases to run.

hf=$(realpath "$1")
shift
only=$*
here=$(realpath "$(dirname "$0")")
base=$(mktemp -d "${TMPDIR:-/tmp}/holdfast-cli.XXXXXX")
redis_pid=
HOLDFAST_URL="shm://$base/shm"
export HOLDFAST_URL

finish() {
    status=$?
    if [ -n "$redis_pid" ]; then
        kill -9 "$redis_pid"
    fi
    rm -rf "$base"
    exit "$status"
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

# The part of a waiter's message that says how long the holder has held a lock.
# shellcheck disable=SC2034 # for the tests that include this file
held_since='has \(just acquired it\|held it for [1-9][0-9]*s\)'

die() {
    printf '%s\n' "$*" >&2
    exit 1
}

# equal GOT WANTED WHAT: fails the case unless the first two are equal.
equal() {
    [ "$1" = "$2" ] || die "$3: got '$1', wanted '$2'"
}

# until_true CONDITION...: polls a command until it succeeds, for up to half a
# minute.
until_true() {
    tries=3000
    while ! "$@"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || die "never came true: $*"
        sleep 0.01
    done
}

not() {
    ! "$@"
}

# gone PID: the process has ended. A zombie counts as ended, because the process
# that adopted it may reap it late.
gone() {
    ! grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status" 2>/dev/null
}

stopped() {
    grep -q '^State:[[:space:]]*T' "/proc/$1/status" 2>/dev/null
}

# Prints the pid of the guardian of a `holdfast run`.
guardian_of() {
    pgrep -P "$1" hf-guardian
}

has_guardian() {
    guardian_of "$1" >/dev/null
}

contains() {
    grep -q -e "$2" "$1" 2>/dev/null
}

# says FILE PATTERN: fails the case unless the file contains the pattern.
says() {
    contains "$1" "$2" || die "$1 is without '$2': $(cat "$1")"
}

# lacks FILE PATTERN: fails the case if the file contains the pattern.
lacks() {
    ! contains "$1" "$2" || die "$1 has '$2': $(cat "$1")"
}

# start COMMAND...: starts COMMAND in the background, with default signal
# dispositions (a shell makes background commands ignore INT and QUIT), and sets
# $pid.
start() {
    env --default-signal "$@" &
    pid=$!
    started="$started $pid"
}

# start_until FILE COMMAND...: starts the command, and waits until FILE is not
# empty.
start_until() {
    awaited=$1
    shift
    start "$@"
    until_true test -s "$awaited"
}

# wait_for PID: waits for a started process, and sets $status to its exit
# status.
wait_for() {
    status=0
    wait "$1" || status=$?
}

# ends PID STATUS WHAT: waits for the process, which must end with that exit
# status.
ends() {
    wait_for "$1"
    equal "$status" "$2" "$3"
}

# hold OPTION...: starts a `holdfast run', $holder, that holds the lock until
# let_go.
hold() {
    rm -f held end
    start_until held "$hf" run "$@" -- sh -c 'echo >held
        until [ -e end ]; do sleep 0.01; done'
    holder=$pid
}

let_go() {
    touch end
    ends "$holder" 0 'the holder'
}

# holds OPTION...: starts a `holdfast hold', $holder, that holds the lock until
# `gate' (descriptor 9) is closed. Its output is in `token', its messages in
# `said'.
holds() {
    rm -f gate token
    mkfifo gate
    start sh -c 'exec "$@" <gate >token 2>said' sh "$hf" hold "$@"
    holder=$pid
    exec 9>gate
    until_true test -s token
}

# lets_go STATUS: closes the input of the hold that `holds' started, which must
# end with STATUS.
lets_go() {
    exec 9>&-
    ends "$holder" "$1" 'exit status'
}

# status_of COMMAND...: runs COMMAND and prints its exit status.
status_of() {
    status=0
    "$@" >out 2>err </dev/null || status=$?
    echo "$status"
}

# exits STATUS ARGUMENT...: holdfast with these arguments must end with STATUS.
exits() {
    wanted_status=$1
    shift
    equal "$(status_of "$hf" "$@")" "$wanted_status" "holdfast $*"
}

# reports STATUS PATTERN ARGUMENT...: as `exits', and PATTERN must be on
# standard error.
reports() {
    exit_status=$1
    pattern=$2
    shift 2
    exits "$exit_status" "$@"
    says err "$pattern"
}

# prints STATUS PATTERN ARGUMENT...: as `exits', and PATTERN must be on standard
# output.
prints() {
    exit_status=$1
    pattern=$2
    shift 2
    exits "$exit_status" "$@"
    says out "$pattern"
}

# is_misuse PATTERN ARGUMENT...: holdfast must end with 64 and print nothing but
# one line on standard error. The line must contain PATTERN and refer to the
# help, and must not show the password. `touch ran' must not have run.
is_misuse() {
    reports 64 "$@"
    equal "$(wc -l <err)" 1 "lines of $*"
    says err 'holdfast help'
    lacks err s3cret
    [ ! -s out ] || die "$*: printed $(cat out)"
    [ ! -e ran ] || die "$*: the command ran"
}

# refused URL PATTERN: the URL must be refused with 64 and PATTERN, and the
# message must not show the password, $secret.
refused() {
    reports 64 "$2" run -b "$1" a -- true
    lacks err "${secret:-s3cret}"
}

# on_both FUNCTION...: runs the function on shared memory and on Redis.
on_both() {
    "$@"
    HOLDFAST_URL=$redis "$@"
}

# Prints the milliseconds since boot, including those in which the machine was
# suspended.
uptime_ms() {
    awk '{ printf "%d", $1 * 1000 }' "${1:-/proc/uptime}"
}

# milliseconds_of COMMAND...: prints how long the command ran; its exit status
# is in the file $base/took.
milliseconds_of() {
    begin=$(uptime_ms)
    status_of "$@" >"$base/took"
    echo $(($(uptime_ms) - begin))
}

end_case() {
    status=$?
    trap - EXIT
    for one in $started; do
        kill -9 "$one" 2>/dev/null
    done
    exit "$status"
}

run_case() {
    mkdir "$base/$1"
    cd "$base/$1" || exit 1
    started=
    trap end_case EXIT
    # On a busy machine a server may stall for longer than op_timeout.
    case " $(echo ${patient_cases-}) $HOLDFAST_URL" in
    *' shm:'* | *\?*) ;;
    *" $1 "*) HOLDFAST_URL="$HOLDFAST_URL?op_timeout=1m&connect_timeout=1m" ;;
    esac
    if grep -q "^$1() { # case on both\$" "$here/${0##*/}"; then
        on_both "$1"
    else
        "$1"
    fi
}

# cases_in FILE: prints the functions that are marked as cases.
cases_in() {
    sed -n 's/^\([a-z0-9_]*\)() { # case\( on both\)*$/\1/p' "$1"
}

# run_cases NAME...: runs these cases and those of this program; prints TAP.
run_cases() {
    # shellcheck disable=SC2086 # words
    set -- ${only:-$* $(cases_in "$here/${0##*/}")}
    number=0
    failures=0
    echo "1..$#"
    for case; do
        number=$((number + 1))
        name=$(echo "$case" | tr _ ' ')
        if (run_case "$case") >"$base/log" 2>&1; then
            echo "ok $number - $name"
        else
            failures=$((failures + 1))
            echo "not ok $number - $name"
            sed 's/^/# /' "$base/log"
            sed 's/^/# err: /' "$base/$case/err" 2>/dev/null
        fi
    done
    [ "$failures" -eq 0 ]
}

# start_redis OPTION...: starts a server with the URL $redis; redis_cli sends it
# commands.
start_redis() {
    rm -f "$base/redis.sock"
    redis-server --port 0 --unixsocket "$base/redis.sock" --dir "$base" \
        --save '' --appendonly no "$@" >"$base/redis.log" 2>&1 &
    redis_pid=$!
    until_true redis_answers
    redis="redis+unix://$base/redis.sock"
}

# Returns whether the server answers. Its socket file appears earlier.
redis_answers() {
    redis_cli ping >/dev/null 2>&1
}

redis_cli() {
    redis-cli -s "$base/redis.sock" "$@"
}

# Returns whether a client waits for a lock on that server.
is_waited_for() {
    [ -n "$(redis_cli pubsub channels 'redisson_lock__channel*')" ]
}

# front MODE SERVER: starts front.py, which misbehaves in front of a server
# until there is a file called `open'. $port is its port, $at its host and port.
front() {
    rm -f port met open
    start python3 "$here/front.py" "$@"
    until_true test -e port
    port=$(cat port)
    at=127.0.0.1:$port
}

# met TIMES: returns whether front.py has seen at least that many connections.
met() {
    [ -e met ] && [ "$(wc -l <met)" -ge "$1" ]
}

# waits_then_runs TEXT OPTION...: holdfast must report once that it waits for
# the server, and why (TEXT); then the server answers, and the command must run.
waits_then_runs() {
    text=$1
    shift
    start "$hf" run "$@" a -- touch ran 2>err
    until_true contains err 'a: waiting for the server: '
    contains err "$text" || die "does not say '$text'"
    [ ! -e ran ] || die 'the command ran'
    touch open
    ends "$pid" 0 'exit status'
    [ -e ran ] || die 'the command did not run'
    equal "$(wc -l <err)" 1 'lines said'
}
