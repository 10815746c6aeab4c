# Cases of ls, show, break, ask, watch and latch that every backend but Redlock
# must pass: used by operator.sh, and through session.sh by zk.sh, etcd.sh and
# mysql.sh. HOLDFAST_URL is the URL of the backend.
# shellcheck shell=sh disable=SC2016,SC2154 # for other shells; $hf of lib.sh

# hold_as TAG NAME OPTION...: starts a holder, $pid, that holds NAME until
# `let_one_go TAG'. Its token is in the file held.TAG.
hold_as() {
    tag=$1
    name=$2
    shift 2
    wait_in_line "$tag" "$name" "$@"
    until_true test -s "held.$tag"
}

# wait_in_line TAG NAME OPTION...: does what hold_as does, but returns before
# the lock is held.
wait_in_line() {
    tag=$1
    name=$2
    shift 2
    start "$hf" run "$@" "$name" -- sh -c 'echo "$HOLDFAST_TOKEN" >"held.$0"
        until [ -e "end.$0" ]; do sleep 0.01; done' "$tag"
}

let_one_go() {
    touch "end.$1"
}

# json EXPRESSION: prints the value of a Python expression of d, the list of the
# JSON objects on standard input.
json() {
    python3 -c 'import json, sys
d = [json.loads(line) for line in sys.stdin.buffer]
print(eval(sys.argv[1]))' "$1"
}

# queue_of NAME: prints the pids of the waiters, in order.
queue_of() {
    "$hf" show --json "$1" | json '" ".join(str(w["pid"]) for w in d[0]["waiters"])'
}

queue_is() {
    [ "$(queue_of "$1")" = "$2" ]
}

# has FILE EXPRESSION: returns whether the expression is true of the objects in
# the file.
has() {
    [ "$(json "$2" <"$1")" = True ]
}

# last FILE TEXT...: returns whether the last line has each TEXT. This is
# cheaper than `has' if until_true calls it repeatedly.
last() {
    tail -n 1 "$1" >last
    shift
    for text; do
        contains last "$text" || return 1
    done
}

lines() {
    [ "$(wc -l <"$1")" -ge "$2" ]
}

ls_prints_the_names() { # case
    hold_as 1 ls/a
    first=$pid
    hold_as 2 ls/b -s
    hold_as 3 'ls/c d'
    hold_as 4 other/a
    equal "$("$hf" ls ls/)" "$(printf 'ls/a\nls/b\nls/c d')" 'ls ls/'
    equal "$("$hf" ls -0 ls/ | tr '\000' '+')" 'ls/a+ls/b+ls/c d+' 'ls -0'
    equal "$("$hf" ls --null ls/a | tr '\000' '+')" 'ls/a+' 'ls --null'
    equal "$("$hf" ls --json ls/)" "$(printf '{"name":"ls/%s"}\n' a b 'c d')" --json
    "$hf" ls >all || die 'ls'
    says all '^other/a$'
    equal "$("$hf" ls -l ls/a | head -n 1 | tr -s ' ')" \
        'NAME KIND HOLDER SINCE TOKEN WAITING' 'the headers'
    "$hf" ls -l --no-headers ls/ >long || die 'ls -l'
    equal "$(wc -l <long)" 3 'rows'
    says long "^ls/a  *mutex  *$first@$(uname -n)  *[0-9a-z]*  *$(cat held.1)  *[0?]$"
    says long '^ls/b  *rwlock '
    equal "$("$hf" ls -l --json ls/ | json '[o["kind"] for o in d], d[0]["holders"][0]["pid"]')" \
        "(['mutex', 'rwlock', 'mutex'], $first)" '-l --json'
    equal "$(status_of "$hf" ls ls/nothing)" 0 'nothing'
    [ ! -s out ] && [ ! -s err ] || die "says $(cat out err)"
    equal "$(status_of "$hf" ls -l ls/nothing)" 0 'nothing, -l'
    [ ! -s out ] || die "says $(cat out)"
}

show_tells_of_holder_and_queue() { # case
    prints 1 '^show/a: no client holds it or waits for it$' show show/a
    equal "$(status_of "$hf" show --json show/a)" 1 'no holder, --json'
    equal "$(json 'd[0]["kind"], d[0]["holders"]' <out)" '(None, [])' 'no holder, --json'

    hold_as 1 show/a --fair --label 'the first'
    holder=$pid
    wait_in_line 2 show/a --fair --label 'a second'
    waiters=$pid
    until_true queue_is show/a "$waiters"
    wait_in_line 3 show/a --fair
    waiters="$waiters $pid"
    until_true queue_is show/a "$waiters"

    prints 0 '^Name:     show/a$' show show/a
    says out '^Kind:     fair mutex$'
    says out "^Holder:   process $holder on $(uname -n) (the first)$"
    says out "since 20[-0-9]* [:0-9]* ([0-9ms]*), token $(cat held.1), "
    says out '\( left\|no time limit\)$'
    says out '^Waiting:  2$'
    says out "^       1\. process ${waiters% *} on $(uname -n) (a second)"
    says out "^       2\. process ${waiters#* } on "

    "$hf" show --json show/a >object || die 'show --json'
    equal "$(wc -l <object)" 1 'lines of JSON'
    has object "d[0]['name'] == 'show/a' and d[0]['kind'] == 'mutex' and d[0]['fair']" ||
        die "$(cat object)"
    has object "[h['token'] for h in d[0]['holders']] == [$(cat held.1)]" || die "$(cat object)"
    has object "d[0]['holders'][0]['label'] == 'the first'" || die "$(cat object)"
    has object "abs(d[0]['holders'][0]['since_unix_ms'] / 1000 - $(date +%s)) < 600" ||
        die "$(cat object)"
    has object "not d[0]['waiters_unknown']" || die "$(cat object)"
}

show_tells_of_readers_and_latches() { # case
    hold_as 1 show/rw -s
    hold_as 2 show/rw -s
    equal "$("$hf" show show/rw | grep -c '^Holder: .*, read$')" 2 'readers'
    equal "$("$hf" show --json show/rw | json '[h["mode"] for h in d[0]["holders"]]')" \
        "['read', 'read']" 'modes'
    "$hf" latch set show/l 3 || die 'latch set'
    prints 0 '^Kind:     latch$' show show/l
    says out '^Count:    3 left$'
    says out '^Waiting:  \(0\|not known, the backend cannot tell\)$'
    equal "$("$hf" show --json show/l | json 'd[0]["kind"], d[0]["count"]')" "('latch', 3)" latch
    equal "$("$hf" ls -l --no-headers show/l | awk '{ print $2, $3 }')" 'latch left=3' 'ls -l'
    prints 0 'broken: show/l: latch, 3 left' break --yes show/l
    equal "$("$hf" latch show show/l)" 0 'after break'
}

break_takes_the_lock_away() { # case
    reports 1 '"break/a" is not held' break --yes break/a
    stale=$("$hf" run break/a -- sh -c 'echo "$HOLDFAST_TOKEN"')
    hold_as 1 break/a -t 6s --label mine
    holder=$pid
    reports 64 'no terminal to ask on: give --yes' break break/a
    reports 1 "no hold of \"break/a\" has the token $stale; it is held with the token $(cat held.1) now$" \
        break --token "$stale" break/a
    reports 1 'no hold of "break/a" has the owner stranger; it is held with the token ' \
        break --owner stranger break/a
    reports 1 ', by another owner$' break --owner stranger --token "$(cat held.1)" break/a
    prints 0 "process $holder on " show break/a

    prints 0 "^broken: break/a: held by process $holder on $(uname -n) (mine), token $(cat held.1)$" \
        break --token "$(cat held.1)" break/a
    ends "$holder" 79 'the holder'

    # A holder that does not listen notices the loss when it releases.
    hold_as 2 break/a
    holder=$pid
    owner=$("$hf" show --json break/a | json 'd[0]["holders"][0]["owner"]')
    equal "$(status_of "$hf" break --owner "$owner" break/a)" 0 'its owner'
    let_one_go 2
    ends "$holder" 79 'the holder'

    hold_as 3 break/a
    holder=$pid
    equal "$(status_of "$hf" break -y break/a)" 0 '-y'
    let_one_go 3
    ends "$holder" 79 'the holder'
}

# Some backends notify a holder of a request only at its next renewal. Their
# tests set $asked_ttl, so that the holder renews sooner.
run_and_hold_say_that_they_are_asked() { # case
    reports 1 '"asked/a" is not held' ask asked/a
    hold_as 1 asked/a -t "${asked_ttl:-30s}" 2>said
    equal "$(status_of "$hf" ask asked/a)" 0 'ask'
    [ ! -s out ] && [ ! -s err ] || die "says $(cat out err)"
    until_true contains said '^holdfast run: asked/a: another client asks for the lock'
    let_one_go 1
    ends "$pid" 0 'run'
    mkfifo gate
    start sh -c 'exec "$0" hold -s -t "$1" asked/b <gate' "$hf" "${asked_ttl:-30s}" >token 2>heard
    exec 8>gate
    until_true test -s token
    equal "$(status_of "$hf" ask asked/b)" 0 'ask a reader'
    until_true contains heard '^holdfast hold: asked/b: another client asks for the lock'
    exec 8>&-
    ends "$pid" 0 'hold'
}

# Where the backend can do this, a holder is notified of a break long before its
# next renewal. $until_it_listens waits until the holder listens.
a_broken_holder_hears_it_at_once() {
    ${before_it_listens:-true}
    hold_as 1 break/heard -t 1h
    ${until_it_listens:-true}
    equal "$(status_of "$hf" break -y break/heard)" 0 'break'
    until_true gone "$pid"
    ends "$pid" 79 'the holder'
}

break_asks_first() { # case
    hold_as 1 break/b
    holder=$pid
    python3 "$here/operator.py" answer n "$hf" break break/b >typed
    equal "$?" 1 'no'
    says typed "break/b: held by process $holder on .*, token $(cat held.1)"
    says typed 'nothing was broken'
    "$hf" show break/b >out || die 'it was broken'
    python3 "$here/operator.py" answer y "$hf" break break/b >typed
    equal "$?" 0 'yes'
    says typed 'broken: break/b: held by process'
    let_one_go 1
    ends "$holder" 79 'the holder'
}

break_ends_all_readers() { # case
    reports 1 '"break/rw" is not held' break break/rw
    hold_as 1 break/rw -s
    one=$pid
    hold_as 2 break/rw -s
    python3 "$here/operator.py" answer y "$hf" break break/rw >typed
    equal "$?" 0 'yes'
    says typed 'read by process [0-9]* on .* and 1 more'
    equal "$(status_of "$hf" show break/rw)" 1 'afterwards'
    let_one_go 1
    let_one_go 2
    for reader in "$one" "$pid"; do
        ends "$reader" 79 'a reader'
    done
}

# The holder changes between the question and the answer: break must not break
# the new hold.
break_leaves_the_next_holder_alone() { # case
    hold_as 1 break/c
    first=$pid
    mkfifo answer
    start sh -c 'python3 "$0" answer - "$1" break break/c >typed 2>&1 <answer' \
        "$here/operator.py" "$hf"
    breaker=$pid
    exec 7>answer
    until_true contains typed 'y/N'
    let_one_go 1
    ends "$first" 0 'the first holder'
    hold_as 2 break/c
    second=$pid
    echo y >&7
    exec 7>&-
    ends "$breaker" 1 'the answer came too late'
    says typed "it is held with the token $(cat held.2) now"
    let_one_go 2
    ends "$second" 0 'the second holder'
}

watch_prints_changes_in_order() { # case
    start "$hf" watch --json watch/a >changes 2>said
    watcher=$pid
    until_true lines changes 1
    has changes "d[0]['event'] == 'initial' and d[0]['holders'] == []" || die "$(cat changes)"
    start "$hf" watch watch/a >text 2>/dev/null
    until_true contains text '^20[-0-9]* [:0-9]* watch/a: free$'

    hold_as 1 watch/a --fair --label one
    one=$pid
    until_true lines changes 2
    has changes "d[1]['event'] == 'acquired' and d[1]['holders'][0]['pid'] == $one" ||
        die "$(cat changes)"
    until_true contains text ": held by process $one on $(uname -n) (one), token $(cat held.1)$"
    wait_in_line 2 watch/a --fair
    two=$pid
    until_true lines changes 3
    has changes "d[2]['event'] == 'queue' and [w['pid'] for w in d[2]['waiters']] == [$two]" ||
        die "$(cat changes)"
    until_true contains text "token $(cat held.1), 1 waiting$"
    let_one_go 1
    until_true last changes "\"holders\":\[{[^}]*\"pid\":$two," '"waiters":\[\]'
    until_true test -s held.2
    until_true contains text ": held by process $two on .*token $(cat held.2)$"
    let_one_go 2
    until_true last changes '"event":"released"' '"holders":\[\]'
    until_true sh -c 'tail -n 1 text | grep -q ": free$"'
    has changes "all(d[i]['time'] <= d[i + 1]['time'] for i in range(len(d) - 1))" ||
        die "$(cat changes)"
    kill "$watcher"
    ends "$watcher" 143 'TERM'
    [ "$(wc -l <said)" -le 1 ] || die "says $(cat said)"
}

watch_of_a_prefix() { # case
    hold_as 1 wp/old
    start "$hf" watch -q -p wp/ --json >changes 2>said
    until_true lines changes 1
    has changes "d[0]['event'] == 'initial' and d[0]['name'] == 'wp/old'" || die "$(cat changes)"
    hold_as 2 wp/new
    new=$pid
    until_true last changes '"event":"acquired","name":"wp/new"'
    has changes "d[-1]['holders'][0]['pid'] == $new" || die "$(cat changes)"
    hold_as 3 other
    let_one_go 2
    until_true last changes '"event":"released","name":"wp/new"'
    let_one_go 1
    until_true last changes '"event":"released","name":"wp/old"'
    has changes "all(o['name'].startswith('wp/') for o in d)" || die "$(cat changes)"
    [ ! -s said ] || die "-q, and says $(cat said)"
}

watch_ends() { # case
    start "$hf" watch -n 1 watch/n >changes
    watcher=$pid
    until_true lines changes 1
    hold_as 1 watch/n
    ends "$watcher" 0 '-n 1'
    equal "$(wc -l <changes)" 2 'the state and a change'
    equal "$(status_of "$hf" watch -w 100ms watch/n)" 0 '-w'
    equal "$(wc -l <out)" 1 'the state'
    equal "$(status_of "$hf" watch -w 0.1 -n 1 watch/n)" 75 '-w before -n'
    # After `head' has exited, the pipe has no reader. The watch must notice
    # this and end, although no change follows.
    equal "$("$hf" watch -q watch/n 2>err | head -n 1 | wc -l)" 1 'a line for head'
    [ ! -s err ] || die "says $(cat err)"
}

latch_is_of_all_processes() { # case
    equal "$("$hf" latch show latch/a)" 0 'it is not set'
    equal "$(status_of "$hf" latch wait latch/a)" 0 'wait: it is not set'
    equal "$("$hf" latch down latch/a)" 0 'down: it is not set'
    equal "$(status_of "$hf" latch set latch/a 2)" 0 'set'
    [ ! -s out ] || die "says $(cat out)"
    reports 75 'the latch is set already: 2 left' latch set latch/a 5
    equal "$(status_of "$hf" latch wait -w 100ms latch/a)" 75 'wait -w'
    equal "$(status_of "$hf" latch wait -w 0 latch/a)" 75 'wait -w 0'
    start "$hf" latch wait --wait 10m latch/a
    waiter=$pid
    equal "$("$hf" latch down latch/a)" 1 'the first down'
    equal "$("$hf" latch show --json latch/a)" '{"name":"latch/a","left":1}' 'show --json'
    kill -0 "$waiter" || die 'it did not wait'
    equal "$("$hf" latch down --json latch/a)" '{"name":"latch/a","left":0}' 'the second down'
    ends "$waiter" 0 'the waiter'
    equal "$("$hf" latch set --json latch/a 7)" '{"name":"latch/a","left":7}' 'set --json'
    start "$hf" latch wait --json latch/a >left
    "$hf" break -y latch/a >out || die 'break'
    wait_for "$pid"
    equal "$(cat left)" '{"name":"latch/a","left":0}' 'wait --json'
    hold_as 1 latch/mutex
    equal "$(status_of "$hf" latch set latch/mutex 1)" 64 'a mutex'
}

names_of_all_bytes() { # case
    python3 "$here/operator.py" names "$hf" || die 'see above'
}

# is_explained HELD WANTED TEXT: while a name is held with the options HELD, an
# acquire with the options WANTED must be refused with TEXT.
is_explained() {
    number=$((${number-0} + 1))
    # shellcheck disable=SC2086 # several words
    hold_as "as.$number" kk $1
    # shellcheck disable=SC2086 # several words
    equal "$(status_of "$hf" run -n $2 kk -- true)" 64 "$1, $2"
    equal "$(cat err)" "holdfast run: kk: $3, or choose another name" "$1, $2"
    let_one_go "as.$number"
    wait_for "$pid"
}

another_kind_is_explained() { # case
    is='it is in use as'
    is_explained '' -s "$is a mutex, not a read-write lock: drop -s"
    is_explained '' '-x' "$is a mutex, not a read-write lock: drop -x"
    is_explained '' '--of 2' "$is a mutex, not a semaphore of 2 permits: drop --of"
    is_explained -x '' "$is a read-write lock, not a mutex: use -s or -x"
    is_explained '--of 3' '' "$is a semaphore of 3 permits, not a mutex: use --of 3"
    is_explained '--of 3' '--of 2' \
        "$is a semaphore of 3 permits, not a semaphore of 2 permits: use --of 3"
    "$hf" latch set kk 1 || die 'latch set'
    reports 64 "kk: $is a latch, not a mutex: choose another name" run -n kk -- true
    "$hf" latch down kk >out || die 'latch down'
    hold_as mutex kk
    reports 64 "^holdfast latch: kk: $is a mutex, not a latch: choose another name\$" \
        latch set kk 1
    let_one_go mutex
    wait_for "$pid"
}

# A name is held as a fair lock and requested as an unfair one, and then the
# other way round. A backend that distinguishes the two refuses the request with
# a reason; on any other backend the name is only busy.
fair_beside_unfair_is_explained() { # case
    for how in fair unfair; do
        other=fair
        [ "$how" = unfair ] || other=unfair
        hold_as "$how" ff "--$how"
        case $HOLDFAST_URL in
        shm:* | zk:*)
            reports 64 "^holdfast run: ff: it is in use as an* $how mutex, not an* $other mutex: use --$how, or choose another name\$" \
                run -n "--$other" ff -- true
            ;;
        *)
            reports 75 "ff: held by process $pid " run -n "--$other" ff -- true
            ;;
        esac
        let_one_go "$how"
        wait_for "$pid"
    done
}

operator_cases="$(cases_in "$here/operator_cases.sh")"
# In these cases each request must outlast a stall of the server, see run_case
# in lib.sh.
patient_cases=$operator_cases
