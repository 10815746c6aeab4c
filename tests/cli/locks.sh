#!/bin/sh
# Tests holdfast run: semaphores, several locks, nested runs, messages about the
# holder, names of all bytes, many processes. Usage: locks.sh HOLDFAST
# shellcheck disable=SC2016 # what is in single quotes is for other shells
set -u
. "$(dirname "$0")/lib.sh"

a_semaphore_counts_permits() { # case on both
    hold --permits 2 --of 3 s
    equal "$(status_of "$hf" run -n --of 3 s -- true)" 0 'the third one'
    reports 75 "s: held by process $holder on " run -n --permits 2 --of 3 s -- true
    equal "$(status_of "$hf" run -w 0.1 --permits 3 --of 3 s -- true)" 75 'all'
    equal "$(status_of "$hf" run -n --of 4 s -- true)" 64 'another size'
    equal "$(status_of "$hf" run -n s -- true)" 64 'a mutex'
    let_go
    equal "$(status_of "$hf" run -n --permits 3 --of 3 s -- true)" 0 'afterwards'
}

a_semaphore_is_checked() { # case
    is_misuse 'Give --of N' run --permits 2 s -- touch ran
    is_misuse '--permits 3 is more than --of 2' run --permits 3 --of 2 s -- touch ran
    is_misuse 'for semaphores' run --of 2 -s s -- touch ran
    is_misuse 'for semaphores' run --of 2 -x s -- touch ran
    for bad in 0 -1 x '' 4294967296; do
        is_misuse 'takes 1 to 4294967295 permits' run --of "$bad" s -- touch ran
        is_misuse 'takes 1 to 4294967295 permits' run --permits "$bad" --of 2 s -- touch ran
    done
}

several_locks_are_all_or_none() { # case on both
    hold -l b -l a
    for name in a b; do
        equal "$(status_of "$hf" run -n "$name" -- true)" 75 "$name"
    done
    reports 75 "b: held by process $holder on " run -n -l c -l b -- touch ran
    [ ! -e ran ] || die 'the command ran'
    equal "$(status_of "$hf" run -n c -- true)" 0 'the other one is free again'
    let_go
    equal "$(status_of "$hf" run -n -l a -l b -l c -- true)" 0 'afterwards'
}

# Two loops of runs name the same locks in opposite orders; they must not
# deadlock.
several_locks_are_taken_in_one_order() { # case on both
    echo 0 >count
    for order in '-l a -l b' '-l b -l a'; do
        # shellcheck disable=SC2086 # words
        start sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do
            "$@" || exit; done' sh "$hf" run -q $order -- sh -c 'read -r n <count
                echo $((n + 1)) >new.$$; mv new.$$ count'
    done
    for one in $started; do
        ends "$one" 0 "the loop $one"
    done
    equal "$(cat count)" 20 'the counter'
    started=
}

several_names_and_tokens_are_in_the_environment() { # case on both
    "$hf" run -l 'z z' -l a -- sh -c 'printf "%s\n" "$HOLDFAST_NAME" \
        "$HOLDFAST_TOKEN"; echo "$HOLDFAST_NAMES"; echo "$HOLDFAST_TOKENS"' >got
    equal "$(sed -n 1p got)" 'z z' HOLDFAST_NAME
    equal "$(sed -n 3,4p got)" "$(printf 'z z\na')" HOLDFAST_NAMES
    equal "$(sed -n 2p got)" "$(sed -n 5p got)" 'the token of the first'
    for line in 5 6; do
        sed -n ${line}p got | grep -q -x '[1-9][0-9]*' || die "$(cat got)"
    done
    equal "$(wc -l <got)" 6 lines
    token=$(sed -n 6p got)
    "$hf" run a -- sh -c 'echo "$HOLDFAST_TOKENS $HOLDFAST_NAMES"' >got
    equal "$(sed 's/.* //' got)" a 'the names of one'
    [ "$(sed 's/ .*//' got)" -gt "$token" ] || die "no rising token: $(cat got)"
}

a_loss_of_one_ends_the_command() { # case
    for name in a b; do
        rm -f ready
        start_until ready "$hf" run -b "$redis" -t 3s -l a -l b -- \
            sh -c 'echo >ready; exec sleep 1000' 2>err
        redis_cli del "$name" >/dev/null
        ends "$pid" 79 "without $name"
        says err "lost the lock \"$name\": it is no longer "
    done
    equal "$(status_of "$hf" run -w 1m -b "$redis" -l a -l b -- true)" 0 'afterwards'
}

several_locks_are_checked() { # case
    is_misuse 'given twice' run -l a -l b -l a -- touch ran
    is_misuse 'A COMMAND is missing' run -l a -l b
    is_misuse 'is a -b missing' run -l a -l redis://:s3cret@h -- touch ran
    # shellcheck disable=SC2046 # words
    is_misuse 'more than 64 locks' run $(seq -f '-l %g' 65) -- touch ran
    # shellcheck disable=SC2046
    equal "$(status_of "$hf" run $(seq -f '-l %g' 64) -- true)" 0 '64 locks'
    equal "$(status_of "$hf" run -l shm: -b "$HOLDFAST_URL" -- true)" 0 'a -b after it'
    equal "$("$hf" run -l a -l b -c 'echo $((1 + 2))')" 3 '-c STRING'
    equal "$("$hf" run -l a echo -n -l x)" '-l x' 'without --'
}

verbose_tells_as_flock_does() { # case
    equal "$(status_of "$hf" run --verbose a -- echo hello)" 0 status
    equal "$(cat out)" hello output
    sed -n 1p err | grep -q -x 'holdfast run: getting lock took [0-9]*\.[0-9]\{6\} seconds' ||
        die "$(cat err)"
    equal "$(sed -n 2p err)" 'holdfast run: executing echo' 'the second line'
    is_misuse 'one of them' run -q --verbose a -- touch ran
}

options_of_flock_are_known() { # case
    equal "$(status_of "$hf" run -o a -- true)" 0 -o
    equal "$(status_of "$hf" run --close a -- true)" 0 --close
    equal "$(cat err)" '' 'what -o says'
    for option in -F --no-fork; do
        is_misuse 'renew the lock while the command runs' run "$option" a -- touch ran
    done
    for option in -u --unlock; do
        is_misuse 'holdfast hold' run "$option" a -- touch ran
    done
}

# nested STATUS OUTER... -- INNER...: a run with the words INNER, inside a run
# with the words OUTER, must end with STATUS.
nested() {
    wanted=$1
    shift
    outer=
    while [ "$1" != -- ]; do
        outer="$outer $1"
        shift
    done
    shift
    # shellcheck disable=SC2086 # words
    exits "$wanted" run $outer -- "$hf" run "$@" echo in
}

a_run_within_itself_is_64() { # case on both
    nested 64 a -- a
    says err 'a: process [0-9]*, which runs this command, holds it'
    equal "$(wc -l <err)" 1 lines
    nested 64 a -- -n a
    nested 64 a -- -w 1m -q a
    nested 64 -l x -l a -- -l y -l a
    nested 64 -x a -- -x a
    nested 64 -x a -- -s a
    nested 64 -s a -- -x a
    nested 0 -s a -- -s a
    nested 0 a -- b
    nested 0 --permits 2 --of 3 s -- --of 3 s
    nested 64 --permits 2 --of 3 s -- --permits 2 --of 3 s
    equal "$(status_of "$hf" run a -- "$hf" run b -- sh -c '"$0" run -n a true' "$hf")" \
        64 'two levels, by a shell'
    exits 64 run --of 3 s -- "$hf" run --of 3 s -- "$hf" run --permits 2 --of 3 s true
    equal "$(status_of "$hf" run a -- "$hf" hold a)" 64 'hold'
}

# The URLs differ only in the case of the scheme, or in options that do not
# change the place.
a_url_is_recognised() { # case
    other=REDIS${redis#redis}
    exits 64 run -b "$redis" a -- "$hf" run -b "$other?ttl=20s" -n a true
    # A different prefix or a different backend is a different place.
    exits 0 run -b "$redis" a -- "$hf" run -b "$redis?prefix=x:" -n a true
    exits 0 run -b "$redis" a -- "$hf" run -b "shm://$PWD/s" -n a true
}

no_password_is_in_the_environment() { # case
    redis_cli config set requirepass s3cret >/dev/null
    url="redis+unix://:s3cret@${redis#*//}"
    "$hf" run -b "$url" a -- env >got 2>&1
    "$hf" run -b "$url" a -- "$hf" run -n -b "$url" a true 2>err
    status=$?
    redis_cli -a s3cret --no-auth-warning config set requirepass '' >/dev/null
    says got '^HOLDFAST_HELD='
    lacks got s3cret
    equal "$status" 64 'nested, with a password'
}

# A daemon outlives the run that started it. When that run has ended, its lock
# is free or held by another process, so the daemon may wait for the lock.
what_outlives_its_parent_may_have_the_lock() { # case
    start_until ready "$hf" run a -- sh -c 'sh -c "echo >ready
        until [ -e go ]; do sleep 0.01; done
        \"\$0\" run -n a -- true 2>why; echo \$? >busy
        \"\$0\" run -w 1m a -- true 2>why; echo \$? >status" "$0" &' "$hf"
    ends "$pid" 0 'the parent'
    hold a
    touch go
    until_true test -s busy
    equal "$(cat busy)" 75 "while another holds it: $(cat why)"
    let_go
    until_true test -s status
    equal "$(cat status)" 0 "the daemon: $(cat why)"
}

# The parent still runs, but has lost the lock; another process holds it now.
a_lost_lock_of_the_parent_may_be_waited_for() { # case
    start_until ready "$hf" run -b "$redis" -t 3s --on-lost warn a -- sh -c 'echo >ready
        until [ -e go ]; do sleep 0.01; done
        "$0" run -b "$1" -n a -- true 2>why; echo $? >status' "$hf" "$redis" 2>err
    redis_cli del a >/dev/null
    until_true contains err 'continues without it'
    hold -b "$redis" a
    touch go
    until_true test -s status
    equal "$(cat status)" 75 "the command: $(cat why)"
    let_go
}

# HOLDFAST_HELD names a process that is dead, or a process that is not an
# ancestor, or is no list of entries.
a_forged_environment_has_no_effect() { # case
    "$hf" run a -- sh -c 'echo "$HOLDFAST_HELD"' >held
    equal "$(HOLDFAST_HELD=$(cat held) status_of "$hf" run -n a -- true)" 0 'of a dead one'
    for text in '' ' ' x 1:2 "$(head -c 5000 /dev/zero | tr '\0' ' ')" \
        "1:0:1:0:0:1 2:0:1:0:0:2 $(cat held) ::::: -1:1:1:1:1:1"; do
        equal "$(HOLDFAST_HELD=$text status_of "$hf" run a -- true)" 0 "'$text'"
    done
}

# If the inner reader waited, it would wait for a writer, which waits for the
# outer reader.
a_reader_behind_a_writer_is_64() { # case
    start_until held "$hf" run -s a -- sh -c 'echo >held; until [ -e writer ]; do sleep 0.01; done
        "$0" run -n -s a -- true 2>n; echo $? >>n
        "$0" run -s a -- true 2>err; echo $? >status' "$hf"
    holder=$pid
    start "$hf" run -x a -- true 2>waits
    until_true contains waits "process $holder on .* $held_since"
    touch writer
    until_true test -s status
    equal "$(cat status)" 64 'exit status'
    says err 'a writer waits for it'
    equal "$(tail -n 1 n)" 75 -n
}

says_who() {
    hold --label 'the holder' a
    start_until err "$hf" run "$@" a -- touch got 2>err
    line="holdfast run: a: waiting; process $holder on $(uname -n) (the holder) $held_since"
    says err "^$line"
    let_go
    ends "$pid" 0 'the waiter'
    equal "$(wc -l <err)" 1 'lines'
    lacks err "$(printf '\033')"
    [ -e got ] || die 'the command did not run'
}

who_holds_it_is_said_while_it_waits() { # case
    on_both says_who
    on_both says_who -w 10m
}

# A waiter with -q prints nothing. The test looks only after another waiter,
# which began later, has reported its wait.
quiet_says_nothing() { # case
    hold -b "$redis" a
    start "$hf" run -q -b "$redis" a -- touch got 2>err
    quiet=$pid
    start "$hf" run -b "$redis" a -- true 2>loud
    until_true contains loud 'waiting; '
    until_true is_waited_for
    let_go
    ends "$quiet" 0 'the quiet one'
    equal "$(cat err)" '' 'what it said'
}

the_lock_of_several_that_is_waited_for_is_named() { # case
    hold b
    start_until err "$hf" run -l c -l b -l a -- touch got 2>err
    says err "^holdfast run: b: waiting; process $holder on "
    let_go
    ends "$pid" 0 'the waiter'
}

readers_are_counted() { # case
    hold -s a
    start_until second "$hf" run -s a -- sh -c 'echo >second; until [ -e end ]; do sleep 0.01; done'
    second=$pid
    start_until err "$hf" run -x a -- true 2>err
    says err " $held_since; 1 other holds it, too\$"
    let_go
    wait_for "$second"
    ends "$pid" 0 'the writer'
}

# A command that ignores TERM gets KILL afterwards.
a_command_that_ignores_term_is_ended() { # case
    start_until ready "$hf" run -b "$redis" -t 3s -l a -l b -- \
        sh -c 'trap "" TERM; echo $$ >ready; while :; do sleep 0.01; done' 2>err
    redis_cli del b >/dev/null
    ends "$pid" 79 'exit status'
    until_true gone "$(cat ready)"
}

grandchildren_are_ended() { # case
    start_until deep "$hf" run --of 2 s -- sh -c 'sh -c "sleep 1000 & echo \$! >deep; wait" & wait'
    kill -9 "$pid"
    until_true gone "$(cat deep)"
    equal "$(status_of "$hf" run -w 1m --permits 2 --of 2 s -- true)" 0 'all permits'
}

stdin_goes_to_the_command() { # case
    seq 1000 | "$hf" run -l a -l b -- cat >got
    seq 1000 | cmp - got || die 'not what was written'
}

# The two URLs look different, but the server reports that an ancestor holds the
# lock.
a_nested_run_by_another_url_is_refused() { # case
    for url in "$HOLDFAST_URL" "$redis"; do
        other=$url/
        [ "$url" != "$redis" ] || other="$url?db=0"
        reports 64 'a wait would never end' run -b "$url" a -- "$hf" run -b "$other" a -- touch ran
        [ ! -e ran ] || die 'the command ran'
        equal "$(status_of "$hf" run -b "$url" a -- "$hf" run -b "$other" b -- true)" 0 'another name'
        equal "$(status_of "$hf" run -b "$url" -s r -- "$hf" run -b "$other" -s r -- true)" 0 'two readers'
        equal "$(status_of "$hf" run -b "$url" --of 2 s -- "$hf" run -b "$other" --of 2 s -- true)" 0 'permits'
    done
}

# sample NAME LABELS VALUE: the file of metrics must contain this sample.
sample() {
    grep -q -x -F "holdfast_$1{lock=\"$2\"$3} $4" m.prom || die "$1$3: $(cat m.prom)"
}

metrics_are_written() {
    rm -f m.prom
    "$hf" run --metrics m.prom 'a b' -- sh -c 'cp m.prom inside; ls -A >files; exit 3'
    equal $? 3 'exit status'
    grep -q -x 'holdfast_held{lock="a b"} 1' inside || die "$(cat inside)"
    lacks files 'm.prom.'
    sample acquires_total 'a b' ',result="granted"' 1
    sample releases_total 'a b' '' 1
    sample held 'a b' '' 0
    sample wait_seconds_count 'a b' '' 1
    equal "$(echo m.prom*)" m.prom 'files'
    equal "$(stat -c %a m.prom)" 644 'its mode'
}

the_metrics_are_written() { # case
    umask 022
    on_both metrics_are_written
    "$hf" run --metrics m.prom -l a -l '"' -- true || die '-l'
    grep -q -x -F 'holdfast_held{lock="a\n\""} 0' m.prom || die "$(cat m.prom)"
}

# With this ttl, renewals are due more often than the file is written.
metrics_are_written_while_the_command_runs() { # case
    start_until m.prom "$hf" run --metrics m.prom -b "$redis" -t 1s a -- sleep 1000
    rm m.prom
    until_true test -s m.prom
    kill "$pid"
    wait_for "$pid"
}

metrics_tell_of_a_lock_that_is_not_acquired() { # case
    start_until ready "$hf" run a -- sh -c 'echo >ready; exec sleep 1000'
    equal "$(status_of "$hf" run -n --metrics m.prom a -- true)" 75 '-n'
    sample acquires_total a ',result="busy"' 1
    equal "$(status_of "$hf" run -w 0.1 --metrics m.prom a -- true)" 75 '-w'
    sample acquires_total a ',result="timed_out"' 1
}

metrics_replace_no_device() { # case
    mkfifo pipe
    ln -s m.prom link
    for file in pipe link /dev/null; do
        is_misuse 'another kind of file' run --metrics "$file" a -- touch ran
    done
    [ -p pipe ] && [ -h link ] && [ -c /dev/null ] || die 'replaced'
}

metrics_tell_of_a_loss() { # case
    start_until ready "$hf" run --metrics m.prom -b "$redis" -t 3s a -- \
        sh -c 'echo >ready; exec sleep 1000' 2>err
    redis_cli del a >/dev/null
    ends "$pid" 79 'exit status'
    sample holds_lost_total a '' 1
}

# unwritable TEXT COMMAND...: TEXT must be reported once, and the command must
# still run.
unwritable() {
    text=$1
    shift
    equal "$(status_of "$@")" 5 "$text"
    equal "$(cat out)" in "$text: the command"
    says err "^holdfast run: cannot write the metrics to .*: $text"
    equal "$(wc -l <err)" 1 "$text: lines"
}

# A limit on the size of files takes the place of a full disk.
metrics_that_cannot_be_written_change_nothing() { # case
    mkdir full readonly
    echo old >full/m.prom
    unwritable 'No such file or directory' "$hf" run --metrics none/m.prom a -- \
        sh -c 'echo in; exit 5'
    unwritable 'File too large' sh -c 'ulimit -f 1; exec "$@"' sh \
        "$hf" run -b "$redis" --metrics full/m.prom a -- sh -c 'echo in; exit 5'
    equal "$(cat full/m.prom)" old 'what was there before'
    equal "$(ls -A full)" m.prom 'what is left'
    unwritable 'Is a directory' "$hf" run --metrics full a -- sh -c 'echo in; exit 5'
    unwritable 'File name too long' "$hf" run --metrics \
        "$(head -c 5000 /dev/zero | tr '\0' x)" a -- sh -c 'echo in; exit 5'
    [ "$(id -u)" = 0 ] || unwritable_directory
    is_misuse 'the name of a file' run --metrics '' a -- touch ran
    is_misuse 'the name of a file' run --metrics - a -- touch ran
}

unwritable_directory() {
    chmod 500 readonly
    unwritable 'Permission denied' "$hf" run --metrics readonly/m.prom a -- \
        sh -c 'echo in; exit 5'
}

# name_works NAME: the name can be locked, and the command gets it unchanged.
name_works() {
    equal "$(status_of "$hf" run -n -- "$1" sh -c 'printf %s "$HOLDFAST_NAME" >name')" 0 "$1"
    printf %s "$1" | cmp - name || die "HOLDFAST_NAME is not $1"
    hold -- "$1"
    equal "$(status_of "$hf" run -n -- "$1" true)" 75 "'$1' held"
    equal "$(wc -l <err)" 1 "lines of '$1'"
    equal "$(status_of "$hf" run -n -l "x" -l "$1" -- true)" 75 "-l '$1' held"
    let_go
}

names_of_every_kind() { # case on both
    name_works -dash
    name_works --lock
    name_works ' '
    name_works "$(printf 'two\nlines')"
    name_works "$(printf 'z\303\274rich \344\270\255 \360\237\224\222')"
    name_works "$(printf '\377\200\303')"
    name_works '%s%n{}*?[]"\\'
    name_works "$(head -c 512 /dev/zero | tr '\0' n)"
}

# A shell variable can hold every byte but NUL. The name ends with an x, because
# $(...) drops a newline at the end.
a_name_of_every_byte() { # case on both
    name=$(printf "$(printf '\\%03o' $(seq 1 255))x")
    equal "$(printf %s "$name" | wc -c)" 256 'bytes of the name'
    name_works "$name"
}

# Of 200 runs at once, each reads a counter, adds one and writes it.
two_hundred_at_once() { # case on both
    echo 0 >count
    : >done
    started=
    for one in $(seq 200); do
        start "$hf" run -q crowd -- sh -c 'read -r n <count
            echo $((n + 1)) >new.$$; mv new.$$ count; echo $0 >>done' "$one"
    done
    for one in $started; do
        ends "$one" 0 "run $one"
    done
    started=
    equal "$(cat count)" 200 'the counter'
    equal "$(sort -u done | wc -l)" 200 'those that ran'
    equal "$(wc -l <done)" 200 'how often'
}

start_redis
run_cases
