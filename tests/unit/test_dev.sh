#!/bin/sh
# test_dev.sh SOURCE_DIRECTORY: what `./dev' makes of a run of suites, with a
# meson that runs none and leaves the log that it is told to leave.
set -eu

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/bin" "$dir/build/meson-logs"
cat >"$dir/bin/meson" <<'TEXT'
#!/bin/sh
case " $* " in
*' --list '*) printf 'holdfast:unit / %s\n' one two three ;;
*) [ -z "$LOG" ] || printf '%b\n' "$LOG" >"$3/meson-logs/testlog.json" ;;
esac
TEXT
chmod 755 "$dir/bin/meson"

cases=0
failed=0

# expect TITLE LAST_LINE STATUS LOG: as `dev' says it, and how it exits.
expect() {
    status=0
    said=$(LOG=$4 PATH=$dir/bin:$PATH \
        "$root/dev" run-suites "$dir/build" .) || status=$?
    cases=$((cases + 1))
    if [ "$(printf '%s\n' "$said" | tail -n 1)" = "$2" ] &&
        [ "$status" -eq "$3" ]; then
        echo "ok $cases - $1"
    else
        failed=1
        echo "not ok $cases - $1"
        printf '%s\n' "$said" | sed 's/^/# /'
    fi
}

# tells TITLE TEXT LOG: that line, once.
tells() {
    said=$(LOG=$3 PATH=$dir/bin:$PATH \
        "$root/dev" run-suites "$dir/build" .) || :
    cases=$((cases + 1))
    if [ "$(printf '%s\n' "$said" | grep -c -x -F "    $2")" -eq 1 ]; then
        echo "ok $cases - $1"
    else
        failed=1
        echo "not ok $cases - $1"
        printf '%s\n' "$said" | sed 's/^/# /'
    fi
}

# line NAME RESULT STDOUT, as meson writes it; for printf %b.
line() {
    printf '{"name": "%s", "stdout": "%s", "result": "%s"}' "$1" "$3" "$2"
}

root=$1
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
bad='ok 1 - a\\\\n# before\\\\nnot ok 2 - b\\\\n# after\\\\nok 3 - c\\\\n'
tells 'what a case said before it failed' '# before' \
    "$one\n$two\n$(line three FAIL "$bad")"
tells 'what is said of a case that failed' '# after' \
    "$one\n$two\n$(line three FAIL "$bad")"
echo "1..$cases"
exit "$failed"
