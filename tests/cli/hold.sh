#!/bin/sh
# holdfast hold. Usage: hold.sh HOLDFAST
# shellcheck disable=SC2016 # what is in single quotes is for other shells
set -u
. "$(dirname "$0")/lib.sh"

# holds OPTION...: starts a hold, $holder, that lasts until `gate' (descriptor
# 9) is closed; its output is in `token', its messages in `said'.
holds() {
    rm -f gate token
    mkfifo gate
    start sh -c 'exec "$@" <gate >token 2>said' sh "$hf" hold "$@"
    holder=$pid
    exec 9>gate
    until_true test -s token
}

# lets_go STATUS: closes the input of the hold.
lets_go() {
    exec 9>&-
    ends "$holder" "$1" 'exit status'
}

is_held() {
    equal "$(status_of "$hf" run -n "$@" -- true)" 75 "$*"
    contains err "held by process $holder on " || die "$*: $(cat err)"
}

is_free() {
    equal "$(status_of "$hf" run -w 1m "$@" -- true)" 0 "$* afterwards"
}

on_both() {
    "$@"
    HOLDFAST_URL=$redis "$@"
}

until_stdin_closes() {
    holds a
    is_held a
    grep -q -x '[1-9][0-9]*' token || die "$(cat token)"
    equal "$(wc -l <token)" 1 lines
    # Input has no effect.
    seq 20000 >&9
    is_held a
    before=$(cat token)
    lets_go 0
    equal "$(cat said)" '' 'what it said'
    is_free a
    [ "$("$hf" run a -- sh -c 'echo $HOLDFAST_TOKEN')" -gt "$before" ] ||
        die 'the token does not rise'
}

it_holds_until_stdin_closes() { # case
    on_both until_stdin_closes
}

a_signal_ends_it_with_0() { # case
    for signal in TERM INT HUP QUIT USR1 USR2; do
        holds a
        kill -"$signal" "$holder"
        wait_for "$holder"
        exec 9>&-
        equal "$status" 0 "$signal"
        equal "$(status_of "$hf" run -n a -- true)" 0 "the lock after $signal"
    done
}

# A shell makes background commands ignore INT and QUIT, and nohup HUP.
an_ignored_signal_has_no_effect() { # case
    mkfifo gate
    (trap '' HUP; exec "$hf" hold a <gate >token) &
    holder=$!
    started=$holder
    exec 9>gate
    until_true test -s token
    for signal in HUP WINCH TSTP CONT; do
        kill -"$signal" "$holder"
    done
    is_held a
    lets_go 0
}

# When a script dies, the kernel closes the script's end of the pipe.
it_ends_with_its_script() { # case
    start bash -c 'coproc "$0" hold a; read -r token <&"${COPROC[0]}"
        echo "$token" >token; read -r end <&"${COPROC[0]}"' "$hf"
    until_true test -s token
    equal "$(status_of "$hf" run -n a -- true)" 75 'held'
    kill -9 "$pid"
    is_free a
}

the_idiom_of_the_manual() { # case
    "$hf" help hold | sed -n '/^  mkfifo gate/,/^  exec 9>&-/p' |
        sed 's/^  //; s/  .*//' >script
    equal "$(wc -l <script)" 6 'lines of the script'
    sed -i "s|^holdfast|'$hf'|; s|^\.\.\.\$|'$hf' run -n nightly -- true \|\| echo \$? >inside|" script
    equal "$(status_of sh -eu script)" 0 "$(cat script)"
    equal "$(cat inside)" 75 'inside'
    equal "$(status_of "$hf" run -w 1m nightly -- true)" 0 'afterwards'
}

without_input_it_ends_at_once() { # case
    equal "$(status_of "$hf" hold a)" 0 '/dev/null'
    contains err '/dev/null' || die "$(cat err)"
    grep -q -x '[1-9][0-9]*' out || die "$(cat out)"
    equal "$(status_of "$hf" hold -q a)" 0 '-q'
    equal "$(cat err)" '' 'what -q says'
    status=0
    "$hf" hold a <&- >out || status=$?
    equal "$status" 0 'closed'
    is_free a
}

several() {
    holds -l z -l a
    equal "$(wc -l <token)" 2 'tokens'
    is_held z
    is_held a
    lets_go 0
    is_free -l a -l z
}

several_locks_at_once() { # case
    on_both several
}

permits_and_modes() {
    holds --permits 2 --of 3 s
    is_held --permits 2 --of 3 s
    equal "$(status_of "$hf" run -n --of 3 s -- true)" 0 'the third'
    lets_go 0
    holds -s r
    equal "$(status_of "$hf" run -n -s r -- true)" 0 'another reader'
    is_held -x r
    lets_go 0
    holds -x r
    is_held -s r
    lets_go 0
}

the_kinds_of_run() { # case
    on_both permits_and_modes
}

json_is_an_object() { # case
    holds --json -l 'a "b"' -l "$(printf '\377')" --label me
    python3 -c 'import json, sys
o = json.loads(sys.stdin.readline())
assert o["name"] == "a \"b\"" and o["token"] == o["locks"][0]["token"] > 0, o
assert [l["name"] for l in o["locks"]] == ["a \"b\"", "\ufffd"], o
assert o["locks"][1]["name_hex"] == "ff", o
assert not sys.stdin.read()' <token || die "$(cat token)"
    equal "$(status_of "$hf" run -n 'a "b"' -- true)" 75 'held'
    contains err '(me)' || die "$(cat err)"
    lets_go 0
}

not_acquired_is_75() { # case
    holds --label 'the holder' a
    for how in -n '-w 0.1' '-n -E 9' '-n -q'; do
        # shellcheck disable=SC2086 # words
        equal "$(status_of "$hf" hold $how a)" "$(case $how in *9) echo 9 ;; *) echo 75 ;; esac)" "$how"
        equal "$(cat out)" '' "what '$how' prints"
        case $how in
        *-q) equal "$(cat err)" '' 'what -q says' ;;
        *) contains err 'a: .*held by process .* (the holder)' || die "$how: $(cat err)" ;;
        esac
    done
    lets_go 0
}

it_says_who_holds_it_while_it_waits() { # case
    holds a
    start "$hf" hold a </dev/null >second 2>waits 9>&-
    until_true contains waits "^holdfast hold: a: waiting; process $holder on "
    [ ! -s second ] || die 'printed a token'
    lets_go 0
    ends "$pid" 0 'the second'
    [ -s second ] || die 'printed no token'
}

a_signal_ends_the_wait() { # case
    holds a
    start "$hf" hold a </dev/null >second 2>waits 9>&-
    until_true contains waits waiting
    kill -TERM "$pid"
    ends "$pid" 143 'exit status'
    [ ! -s second ] || die 'printed a token'
    lets_go 0
}

# When the lock is lost, hold ends although its input is open.
lost_is_79() { # case
    holds -b "$redis" -t 3s a
    redis_cli del a >/dev/null
    ends "$holder" 79 'exit status'
    contains said '^holdfast hold: lost the lock "a": it is no longer ' || die "$(cat said)"
    equal "$(wc -l <said)" 1 lines
    exec 9>&-
    holds -b "$redis" -t 3s -l a -l b
    redis_cli del b >/dev/null
    ends "$holder" 79 'one of two'
    exec 9>&-
    is_free -b "$redis" -l a -l b
}

stopped_past_its_deadline_is_79() { # case
    holds -b "$redis" -t 1s a
    kill -STOP "$holder"
    equal "$(status_of "$hf" run -w 1m -b "$redis" a -- true)" 0 'the next one'
    kill -CONT "$holder"
    ends "$holder" 79 'exit status'
    contains said 'lost the lock "a": ' || die "$(cat said)"
    exec 9>&-
}

killed_with_9_it_is_free() { # case
    holds a
    kill -9 "$holder"
    is_free a
    exec 9>&-
    holds -b "$redis" -t 1s a
    kill -9 "$holder"
    is_free -b "$redis" a
    exec 9>&-
}

# hold cannot print the token, so it releases the lock.
output_that_fails_is_1() { # case
    mkfifo gate
    start sh -c 'exec "$@" <gate >/dev/full 2>said' sh "$hf" hold a
    exec 9>gate
    wait_for "$pid"
    exec 9>&-
    equal "$status" 1 'exit status'
    contains said 'standard output' || die "$(cat said)"
    is_free a
}

# is_misuse TEXT OPTION...
is_misuse() {
    text=$1
    shift
    equal "$(status_of "$hf" hold "$@")" 64 "$*"
    contains err "$text" || die "$*: $(cat err)"
    equal "$(cat out)" '' "what $* prints"
}

misuse_is_64() { # case
    is_misuse 'A NAME is missing'
    is_misuse 'takes one NAME' a b
    is_misuse 'one of them' -l a b
    is_misuse 'given twice' -l a -l a
    is_misuse 'is a -b missing' redis://:s3cret@h
    not contains err s3cret || die "$(cat err)"
    is_misuse 'Give --of' --permits 2 a
    is_misuse 'did you mean --json' --jsn a
    is_misuse 'one of them' -n -w 5 a
    is_misuse 'option is called' -c true a
    equal "$(status_of "$hf" hold -n -b redis://127.0.0.1:1 a)" 69 'unreachable'
}

start_redis
run_cases
