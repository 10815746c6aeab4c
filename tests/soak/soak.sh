#!/bin/sh
# soak.sh SOAK_PROGRAM SOAK_PY BUILD_DIRECTORY: runs the soak briefly. The soak
# must find violations and report them with their seed, and must leave no server
# behind when a signal ends it.
set -u
soak=$1
driver=$2
build=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cases=0
failed=0

verdict() { # verdict TITLE COMMAND...
    title=$1
    shift
    cases=$((cases + 1))
    if "$@"; then
        echo "ok $cases - $title"
    else
        failed=1
        echo "not ok $cases - $title"
        sed 's/^/# /' "$tmp/said"
    fi
}

# runs STATUS COMMAND...: returns whether it exits with STATUS; keeps its output
# for `says'.
runs() {
    wanted=$1
    shift
    "$@" >"$tmp/said" 2>&1
    [ $? -eq "$wanted" ]
}

says() { # says PATTERN...: returns whether each matches a line of the output
    for pattern; do
        grep -q -E -e "$pattern" "$tmp/said" || return 1
    done
}

verdict 'a round on shared memory is as it should be' \
    runs 0 "$soak" shm --seed 4711 --rounds 1
verdict 'and says what was done' \
    says '^# seed 4711$' '^# tally: [1-9][0-9]* grants, .* 0 violations$'
cp "$tmp/said" "$tmp/first"
verdict 'the same seed is the same faults' runs 0 "$soak" shm --seed 4711 --rounds 1
faults() {
    grep '^# tally' "$1" | tail -n 1 | sed 's/.* grants, //'
}
verdict 'and counts them' [ "$(faults "$tmp/first")" = "$(faults "$tmp/said")" ]

verdict 'a lock that protects nothing is seen' \
    runs 1 "$soak" shm --seed 4711 --rounds 1 --useless
verdict 'and told with its seed' says '^# seed 4711: .*; (CLAIM|ME|TOK): ' \
    '^# again: soak shm --seed 4711 --rounds 1 --useless$' ' 1 violations$'

verdict 'the driver sums up' runs 0 \
    python3 -B "$driver" "$build" 0.05 --seed 4711 --only '^(shm|sim)$'
verdict 'with its seed first and last' says '^seed 4711$' '^shm ' '^sim ' \
    '^all ' '^seed 4711: no violation$'

mkdir -p "$tmp/build/tests/soak"
cat >"$tmp/build/tests/soak/soak" <<TEXT
#!/bin/sh
[ "\$1" != --names ] || { echo shm; exit; }
exec "$soak" "\$@" --useless
TEXT
chmod 755 "$tmp/build/tests/soak/soak"
verdict 'the driver sees a violation' runs 1 \
    python3 -B "$driver" "$tmp/build" 0.02 --seed 4711 --only '^shm$'
verdict 'and tells how to see it again' says '^VIOLATION: shm ' \
    'seed 4711; the same again: .*/soak shm --seed 4711 ' \
    '^seed 4711: [1-9][0-9]* violations$'

python3 -B "$driver" "$build" 10 --seed 4711 --only '^redis$' >"$tmp/said" 2>&1 &
driver_pid=$!
session= # each program and its servers have their own
until [ -n "$session" ] && pgrep -s "$session" -x redis-server >/dev/null; do
    session=$(pgrep -P "$driver_pid" -n -x soak)
    sleep 0.1
    kill -0 "$driver_pid" 2>/dev/null || break
done
kill -TERM "$driver_pid"
wait "$driver_pid"
status=$?
verdict 'who is asked to end sums up' \
    says '^all ' '^seed 4711: no violation$'
verdict 'and is content' [ "$status" -eq 0 ]
nobody_is_left() {
    [ -n "$session" ] && ! pgrep -s "$session" >"$tmp/said"
}
verdict 'and leaves nothing behind' nobody_is_left
echo "1..$cases"
exit "$failed"
