#!/bin/sh
# mutants.sh SIM SIM-MUTANTS SIM-MUTANTS-ASSERTED MUTATE.PY
#
# Runs every mutant, and sim with each --break. Each of them must be caught by a
# checker, which the output names. Mutants whose mistake the history cannot show
# must be caught by an assertion instead. Prints TAP, with a table in comments.
set -u
sim=$1
mutants=$2
asserted=$3
mutate=$4
n=0
bad=0

check() { # name command...
    name=$1
    shift
    n=$((n + 1))
    out=$(timeout 120 "$@" --catch --grants 4000000 2>&1)
    rc=$?
    case $rc:$out in
    0:*) ;;
    13[469]:*': Assertion '*)
        out=${out%%: Assertion *} out="ASSERTION ${out##*: }" ;;
    13[469]:* | *Sanitizer*) out="CRASH -" ;;
    *) bad=$((bad + 1)) ;;
    esac
    set -- $out
    if [ "${1:-}" = "$by" ] || [ -z "$by" ] &&
        { [ $rc -eq 0 ] || [ "${1:-}" = CRASH ] || [ -n "$by" ]; }; then
        printf 'ok %d - %-28s %-6s %s\n' $n "$name" "$1" "$2"
    else
        printf 'not ok %d - %s: %s\n' $n "$name" "$out"
    fi
}

echo "# mutant, caught by, after so many grants"
by=
for b in $("$sim" --breaks); do
    check "$b" "$sim" --break "$b"
done
for m in $(python3 "$mutate" --list); do
    check "$m" env SIM_MUTANT="$m" "$mutants"
done
by=ASSERTION
for m in $(python3 "$mutate" --list-asserted); do
    check "$m" env SIM_MUTANT="$m" "$asserted"
done
echo "1..$n"
[ $n -ge 20 ] || { echo "# too few mutants: $n"; exit 1; }
[ $bad -eq 0 ]
