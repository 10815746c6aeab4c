#!/bin/sh
# holdfast hold. Usage: hold.sh HOLDFAST
# shellcheck disable=SC2016 # what is in single quotes is for other shells
set -u
. "$(dirname "$0")/lib.sh"

is_held() {
    reports 75 "held by process $holder on " run -n "$@" -- true
}

is_free() {
    equal "$(status_of "$hf" run -w 1m "$@" -- true)" 0 "$* afterwards"
}

it_holds_until_stdin_closes() { # case on both
    holds a
    is_held a
    grep -q -x '[1-9][0-9]*' token || die "$(cat token)"
    equal "$(wc -l <token)" 1 lines
    # What arrives on standard input has no effect.
    seq 20000 >&9
    is_held a
    before=$(cat token)
    lets_go 0
    equal "$(cat said)" '' 'what it said'
    is_free a
    [ "$("$hf" run a -- sh -c 'echo $HOLDFAST_TOKEN')" -gt "$before" ] ||
        die 'the token does not rise'
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

# When a script dies, the kernel closes the script's end of the pipe, which ends
# the hold.
it_ends_with_its_script() { # case
    start_until token bash -c 'coproc "$0" hold a; read -r token <&"${COPROC[0]}"
        echo "$token" >token; read -r end <&"${COPROC[0]}"' "$hf"
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
    reports 0 '/dev/null' hold a
    grep -q -x '[1-9][0-9]*' out || die "$(cat out)"
    equal "$(status_of "$hf" hold -q a)" 0 '-q'
    equal "$(cat err)" '' 'what -q says'
    status=0
    "$hf" hold a <&- >out || status=$?
    equal "$status" 0 'closed'
    is_free a
}

several_locks_at_once() { # case on both
    holds -l z -l a
    equal "$(wc -l <token)" 2 'tokens'
    is_held z
    is_held a
    lets_go 0
    is_free -l a -l z
}

the_kinds_of_run() { # case on both
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

json_is_an_object() { # case
    holds --json -l 'a "b"' -l "$(printf '\377')" --label me
    python3 -c 'import json, sys
o = json.loads(sys.stdin.readline())
assert o["name"] == "a \"b\"" and o["token"] == o["locks"][0]["token"] > 0, o
assert [l["name"] for l in o["locks"]] == ["a \"b\"", "\ufffd"], o
assert o["locks"][1]["name_hex"] == "ff", o
assert not sys.stdin.read()' <token || die "$(cat token)"
    reports 75 '(me)' run -n 'a "b"' -- true
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

# When the lock is lost, hold ends although its input is still open.
lost_is_79() { # case
    holds -b "$redis" -t 3s a
    redis_cli del a >/dev/null
    ends "$holder" 79 'exit status'
    says said '^holdfast hold: lost the lock "a": it is no longer '
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
    says said 'lost the lock "a": '
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
    says said 'standard output'
    is_free a
}

misuse_is_64() { # case
    is_misuse 'A NAME is missing' hold
    is_misuse 'takes one NAME' hold a b
    is_misuse 'one of them' hold -l a b
    is_misuse 'given twice' hold -l a -l a
    is_misuse 'is a -b missing' hold redis://:s3cret@h
    is_misuse 'Give --of' hold --permits 2 a
    is_misuse 'did you mean --json' hold --jsn a
    is_misuse 'one of them' hold -n -w 5 a
    is_misuse 'option is called' hold -c true a
    equal "$(status_of "$hf" hold -n -b redis://127.0.0.1:1 a)" 69 'unreachable'
}

start_redis
run_cases
