#!/bin/sh
# build-peers.sh DIRECTORY: fetches and builds the other implementations into
# DIRECTORY. Asks the network for nothing if they are there.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

sum() {
    cat "$@" | sha256sum
}

# try COMMAND...: and again after a while, if it fails: the network may not be
# there at once.
try() {
    for pause in 5 20 60; do
        "$@" && return 0
        sleep "$pause"
    done
    "$@"
}

if [ "$(cat "$out/lib.sum" 2>/dev/null)" != "$(sum "$here/redisson/pom.xml")" ]; then
    echo 'fetching Redisson' >&2
    rm -rf "$out/lib"
    try mvn -q -B -Dstyle.color=never -f "$here/redisson/pom.xml" dependency:copy-dependencies \
        "-DoutputDirectory=$out/lib" >&2
    sum "$here/redisson/pom.xml" >"$out/lib.sum"
fi

rm -rf "$out/classes"
javac --release 17 -Xlint:all -Werror -cp "$out/lib/*" -d "$out/classes" \
    "$here"/peer/*.java "$here"/redisson/*.java

if [ "$(cat "$out/curator-lib.sum" 2>/dev/null)" != "$(sum "$here/curator/pom.xml")" ]; then
    echo 'fetching Curator' >&2
    rm -rf "$out/curator-lib"
    try mvn -q -B -Dstyle.color=never -f "$here/curator/pom.xml" dependency:copy-dependencies \
        "-DoutputDirectory=$out/curator-lib" >&2
    sum "$here/curator/pom.xml" >"$out/curator-lib.sum"
fi

rm -rf "$out/curator-classes"
javac --release 17 -Xlint:all,-classfile -Werror -cp "$out/curator-lib/*" \
    -d "$out/curator-classes" "$here"/peer/*.java "$here"/curator/*.java

if [ "$(cat "$out/venv.sum" 2>/dev/null)" != "$(sum "$here/requirements.txt")" ]; then
    echo 'fetching redis-py and kazoo' >&2
    rm -rf "$out/venv"
    python3 -m venv "$out/venv"
    try "$out/venv/bin/pip" install -q -r "$here/requirements.txt" >&2
    sum "$here/requirements.txt" >"$out/venv.sum"
fi
