#!/bin/sh
# test_dev.sh SOURCE_DIRECTORY: what `./dev' makes of a run of suites, with a
# meson that runs none and leaves the log that it is told to leave. It is a copy
# of `./dev', for all that is made where it lies.
set -eu

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/bin" "$dir/tree/build/meson-logs" "$dir/tree/src/backends"
cp "$1/dev" "$dir/tree/dev"
cp "$1/src/backends/list" "$dir/tree/src/backends/list"
cat >"$dir/bin/meson" <<'TEXT'
#!/bin/sh
echo "meson $*" >&2
case " $* " in
' setup '*) mkdir -p "$2/meson-logs" ;;
*' --list '*) printf 'holdfast:unit / unit-%s\n' one two three ;;
*)
    [ -z "${HOLDFAST_URL-}${HOLDFAST_PASSWORD-}${HOLDFAST_MODULE_PATH-}" ] ||
        exit 1
    [ -z "$LOG" ] || printf '%b\n' "$LOG" >"$3/meson-logs/testlog.json"
    ;;
esac
TEXT
printf '#!/bin/sh\n' >"$dir/bin/ninja"
printf '#!/bin/sh\necho install ok installed\n' >"$dir/bin/dpkg-query"
chmod 755 "$dir"/bin/*

cases=0
failed=0

# verdict TITLE COMMAND...: and what was said, if it fails.
verdict() {
    title=$1
    shift
    cases=$((cases + 1))
    if "$@"; then
        echo "ok $cases - $title"
    else
        failed=1
        echo "not ok $cases - $title"
        printf '%s\n' "$said" | sed 's/^/# /'
    fi
}

# dev LOG ARGUMENT...: sets what it said, and how it exited.
dev() {
    log=$1
    shift
    status=0
    said=$(cd "$dir" && LOG=$log PATH=$dir/bin:$PATH sh tree/dev "$@" 2>&1) ||
        status=$?
}

# ends LINE STATUS
ends() {
    [ "$(printf '%s\n' "$said" | tail -n 1)" = "$1" ] && [ "$status" -eq "$2" ]
}

# has TIMES LINE
has() {
    [ "$(printf '%s\n' "$said" | grep -c -x -F -e "$2")" -eq "$1" ]
}

# demands_all DIRECTORY: when it is set up, what would be left out if it is not
# there.
demands_all() {
    setup=$(printf '%s\n' "$said" | grep -F -e "meson setup $1 ") || return 1
    for option in backends=all tests=enabled; do
        case "$setup " in
        *" -D$option "*) ;;
        *) return 1 ;;
        esac
    done
}

# expect TITLE LAST_LINE STATUS LOG: as `dev' says it, and how it exits.
expect() {
    dev "$4" run-suites build .
    verdict "$1" ends "$2" "$3"
}

# tells TITLE TEXT LOG: that line, once.
tells() {
    dev "$3" run-suites build .
    verdict "$1" has 1 "    $2"
}

# line NAME RESULT STDOUT, as meson writes it; for printf %b.
line() {
    printf '{"name": "%s", "stdout": "%s", "result": "%s"}' "$1" "$3" "$2"
}

one=$(line one OK 'ok 1 - a\\\\nok 2 - b\\\\n')
two=$(line two OK '')
three=$(line three OK 'ok 1 - a\\\\n')

expect 'cases are counted, and suites that name none' \
    '4 passed, 0 failed' 0 "$one\n$two\n$three"
expect 'what failed is counted' '3 passed, 1 failed' 1 \
    "$one\n$two\n$(line three FAIL 'not ok 1 - a\\\\n')"
expect 'what was skipped has failed' '3 passed, 1 failed' 1 \
    "$one\n$two\n$(line three OK 'ok 1 - a # SKIP\\\\n')"
expect 'a suite that died has failed' '4 passed, 1 failed' 1 \
    "$one\n$two\n$(line three TIMEOUT 'ok 1 - a\\\\n')"
expect 'a suite that did not run has failed' '3 passed, 1 failed' 1 \
    "$one\n$two"
expect 'a log that ends in the middle of a line' '3 passed, 1 failed' 1 \
    "$one\n$two\n{\"name\": \"three\", \"stdout"
expect 'no log at all' '0 passed, 3 failed' 1 ''
# shard I/N CASES: a suite of its own, of 3 cases.
shard() {
    line "long-${1%/*}" OK "# shard $1: $2 of 3 cases\\\\\\\\nok 1 - a\\\\\\\\n"
}
expect 'shards that have all cases' '4 passed, 0 failed' 0 \
    "$one\n$(shard 0/2 2)\n$(shard 1/2 1)"
expect 'shards that have not all cases have failed' '4 passed, 1 failed' 1 \
    "$one\n$(shard 0/2 1)\n$(shard 1/2 1)"
expect 'nobody asks for the cases of shards that were not asked for' \
    '4 passed, 0 failed' 0 "$one\n$two\n$(shard 0/2 1)"
bad='ok 1 - a\\\\n# before\\\\nnot ok 2 - b\\\\n# after\\\\nok 3 - c\\\\n'
tells 'what a case said before it failed' '# before' \
    "$one\n$two\n$(line three FAIL "$bad")"
tells 'what is said of a case that failed' '# after' \
    "$one\n$two\n$(line three FAIL "$bad")"

good="$one\n$two\n$three"
export HOLDFAST_URL=redis://elsewhere HOLDFAST_PASSWORD=s3cret
export HOLDFAST_MODULE_PATH=/elsewhere
expect 'what the caller has set for holdfast is not for the tests' \
    '4 passed, 0 failed' 0 "$good"

dev "$good" san
verdict 'both kinds of sanitizers run, wherever one is' ends \
    '4 passed, 0 failed' 0
verdict 'and each is counted' has 2 '4 passed, 0 failed'
verdict 'of the one nothing is left out' demands_all build-asan
verdict 'of the other neither' demands_all build-tsan
dev "$good" test
verdict 'nor of the tests themselves' demands_all build
echo "1..$cases"
exit "$failed"
