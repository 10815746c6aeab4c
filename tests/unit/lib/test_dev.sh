#!/bin/sh
# test_dev.sh SOURCE_DIRECTORY: tests which suites and builds `./dev` selects. A
# fake meson lists five suites that do nothing. The test runs a copy of `./dev`,
# which writes next to itself. test_suites.py tests what happens to suites that fail.
set -eu

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/bin" "$dir/tree/tests" "$dir/tree/src/backends"
cp "$1/dev" "$dir/tree/dev"
cp -r "$1/tests/suites" "$dir/tree/tests/suites"
cp "$1/src/backends/list" "$dir/tree/src/backends/list"
cat >"$dir/bin/meson" <<'TEXT'
#!/bin/sh
suite() {
    printf '{"name": "%s", "suite": ["holdfast:%s"%s], "env": {}, ' "$1" "$2" "$3"
    printf '"depends": ["%s@exe"], ' "$1"
    printf '"cmd": ["sh", "-c", "%s"], "workdir": null, "timeout": 30, ' \
        'test -z $HOLDFAST_URL$HOLDFAST_PASSWORD$HOLDFAST_MODULE_PATH'
    printf '"priority": 0, "is_parallel": true, "protocol": "exitcode"}'
}
echo "meson $*" >&2
case $1 in
setup) mkdir -p "$2" ;;
introspect)
    if [ "$2" = --targets ]; then
        printf '[{"id": "unit-one@exe", "filename": ["%s/unit/one"]},' "$PWD/$3"
        printf '{"id": "redis-five@exe", "filename": ["%s/five"]}]' "$PWD/$3"
        exit
    fi
    printf '[%s, %s, %s, %s, %s]' "$(suite unit-one unit '')" \
        "$(suite cli-two cli ', "holdfast:short"')" \
        "$(suite redis-three faults ', "holdfast:plain"')" \
        "$(suite cli-four cli ', "holdfast:short", "holdfast:long"')" \
        "$(suite redis-five faults ', "holdfast:short", "holdfast:long"')"
    ;;
esac
TEXT
printf '#!/bin/sh\necho "ninja $*" >&2\n' >"$dir/bin/ninja"
printf '#!/bin/sh\necho install ok installed\n' >"$dir/bin/dpkg-query"
chmod 755 "$dir"/bin/*

cases=0
failed=0

# verdict TITLE COMMAND...: prints a TAP line, and the output of dev if it failed.
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

# dev ARGUMENT...: runs ./dev; sets $said to its output and $status.
dev() {
    status=0
    said=$(cd "$dir" && PATH=$dir/bin:$PATH sh tree/dev "$@" 2>&1) || status=$?
}

# ends LINE STATUS: true if the last line of dev's output is LINE, and its exit
# status is STATUS.
ends() {
    [ "$(printf '%s\n' "$said" | tail -n 1)" = "$1" ] && [ "$status" -eq "$2" ]
}

# has TIMES LINE: true if the output contains the line this many times.
has() {
    [ "$(printf '%s\n' "$said" | grep -c -x -F -e "$2")" -eq "$1" ]
}

# demands_all DIRECTORY: true if its `meson setup` requires all backends and
# tests.
demands_all() {
    setup=$(printf '%s\n' "$said" | grep -F -e "meson setup $1 ") || return 1
    for option in backends=all tests=enabled; do
        case "$setup " in
        *" -D$option "*) ;;
        *) return 1 ;;
        esac
    done
}

export HOLDFAST_URL=redis://elsewhere HOLDFAST_PASSWORD=s3cret
export HOLDFAST_MODULE_PATH=/elsewhere
dev test
verdict 'the short set, without what the caller has set for holdfast' \
    ends '4 passed, 0 failed' 0
verdict 'nothing is left out of the build' demands_all build
dev test all
verdict 'everything' ends '5 passed, 0 failed' 0
dev test 'cli|redis'
verdict 'what matches' ends '4 passed, 0 failed' 0
dev test nothing
verdict 'a pattern that matches nothing fails' ends '0 passed, 1 failed' 1
dev san
verdict 'both kinds of sanitizers run, wherever one is' ends \
    '2 passed, 0 failed' 0
verdict 'of the first all but what is plain' has 1 '4 passed, 0 failed'
verdict 'of its build nothing is left out' demands_all build-asan
verdict 'of the other one neither' demands_all build-tsan
builds_them() {
    printf '%s\n' "$said" | grep -q -e '^ninja -C build-tsan src/.* five unit/one$'
}
verdict 'of the other one what its suites need is built' builds_them
dev san short
verdict 'the short ones end well' ends '2 passed, 0 failed' 0
# The ASan tree runs unit-one and cli-two, the TSan tree unit-one and
# redis-five.
verdict 'what is long is left out under ASan alone' has 2 '2 passed, 0 failed'
echo "1..$cases"
exit "$failed"
