# What both scripts here begin with: a directory of their own, $tmp, and cases.
# shellcheck shell=sh
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$tmp"' EXIT
number=0
unset HOLDFAST_MODULE_PATH HOLDFAST_PASSWORD

check() { # check NAME COMMAND...
    name=$1
    shift
    number=$((number + 1))
    if "$@" >"$tmp/out" 2>&1; then
        echo "ok $number - $name"
    else
        sed 's/^/# /' "$tmp/out"
        echo "not ok $number - $name"
    fi
}

says() { # says TEXT COMMAND...: whatever it returns
    text=$1
    shift
    "$@" >"$tmp/said" 2>&1
    cat "$tmp/said"
    grep -q -e "$text" "$tmp/said"
}
