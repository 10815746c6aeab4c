# Functions that check the output of `holdfast doctor', which is in the file
# `out'.
# shellcheck shell=sh disable=SC2154 # $hf of lib.sh

# has LEVEL SUBJECT TEXT: one line of `out' must contain these three.
has() {
    grep -q "^$1  *$2  *.*$3" out || die "no $1 $2 $3: $(cat out)"
}

# is_json PLACE: `out' must be one line with one valid object for that place.
is_json() {
    equal "$(wc -l <out)" 1 'lines of JSON'
    python3 -c '
import json, sys
d = json.load(open("out"))
levels = ["ok", "warning", "error"]
assert d["url"] == sys.argv[1], d["url"]
assert list(d) == ["url", "level", "findings"], list(d)
worst = max(levels.index(f["level"]) for f in d["findings"])
assert d["level"] == levels[worst], d["level"]
for f in d["findings"]:
    assert list(f) == ["level", "subject", "text"] and f["text"], f
' "$1" || die "$(cat out)"
}

# lines_are_findings STATUS: each line of `out' but the last must begin with a
# level, the last line must count the findings, and STATUS must be the exit
# status for the highest level.
lines_are_findings() {
    [ "$(wc -l <out)" -gt 4 ] || die "few lines: $(cat out)"
    [ "$(sed '$d' out | grep -cvE '^(ok      |warning |error   ) [A-Za-z]+  +[^ ]')" -eq 0 ] ||
        die "$(cat out)"
    equal "$(sed -n '1s/  */ /g; 1p' out | cut -d' ' -f1,2)" 'ok promise' 'the first line'
    warnings=$(grep -c '^warning ' out)
    errors=$(grep -c '^error ' out)
    expected=0
    [ "$warnings" -eq 0 ] || expected=1
    [ "$errors" -eq 0 ] || expected=2
    equal "$1" "$expected" 'the exit status by the lines'
    says out ": $warnings warnings\\{0,1\\}, $errors errors\\{0,1\\}$"
}
