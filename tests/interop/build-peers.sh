#!/bin/sh
# build-peers.sh DIRECTORY [PEER...]: fetches and builds the implementations
# that holdfast is tested with, or only the named ones, into DIRECTORY. Does not
# use the network for those that are already there.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
exec 9>"$out/lock" # two runs at once would fetch the same files
flock 9

sum() {
    cat "$@" | sha256sum
}

# try COMMAND...: repeats COMMAND after a pause if it fails, because the network
# may not be up yet.
try() {
    for pause in 5 20 60; do
        "$@" && return 0
        sleep "$pause"
    done
    "$@"
}

# jars FOLDER LIB WHAT: fetches the libraries in FOLDER/pom.xml into LIB.
jars() {
    if [ "$(cat "$out/$2.sum" 2>/dev/null)" != "$(sum "$here/$1/pom.xml")" ]; then
        echo "fetching $3" >&2
        rm -rf "${out:?}/$2"
        try mvn -q -B -Dstyle.color=never -f "$here/$1/pom.xml" dependency:copy-dependencies \
            "-DoutputDirectory=$out/$2" >&2
        sum "$here/$1/pom.xml" >"$out/$2.sum"
    fi
}

# classes FOLDER LIB CLASSES LINT: compiles the peer in FOLDER into CLASSES,
# with the libraries in LIB and the compiler's warnings LINT.
classes() {
    rm -rf "${out:?}/$3"
    javac --release 17 "-Xlint:$4" -Werror -cp "$out/$2/*" -d "$out/$3" \
        "$here"/peer/*.java "$here/$1"/*.java
}

redisson() {
    jars redisson lib Redisson
    classes redisson lib classes all
}

curator() {
    jars curator curator-lib Curator
    classes curator curator-lib curator-classes all,-classfile
}

jdbc() {
    jars jdbc jdbc-lib 'Spring Integration and ShedLock'
    classes jdbc jdbc-lib jdbc-classes all,-classfile
}

python() {
    if [ "$(cat "$out/venv.sum" 2>/dev/null)" != "$(sum "$here/requirements.txt")" ]; then
        echo 'fetching redis-py and kazoo' >&2
        rm -rf "$out/venv"
        python3 -m venv "$out/venv"
        try "$out/venv/bin/pip" install -q -r "$here/requirements.txt" >&2
        sum "$here/requirements.txt" >"$out/venv.sum"
    fi
}

# Debian's Go is too old for a current etcd, but can fetch a newer Go as a
# module. A module has no executable files, and its go.mod files are named
# _go.mod.
fetch_go() {
    go=go1.26.8
    old=/usr/lib/go-1.19/bin/go
    module=golang.org/toolchain@v0.0.1-$go.linux-$("$old" env GOARCH)
    [ "$(cat "$out/go/is" 2>/dev/null)" != "$module" ] || return 0
    echo 'fetching Go' >&2
    (cd "$out" && try "$old" mod download "$module")
    rm -rf "$out/go"
    cp -r "$("$old" env GOMODCACHE)/$module" "$out/go"
    chmod -R u+w "$out/go"
    chmod +x "$out"/go/bin/* "$out"/go/pkg/tool/*/*
    find "$out/go" -name _go.mod -execdir mv '{}' go.mod ';'
    echo "$module" >"$out/go/is"
}

# go_program FOLDER NAME FILE...: builds the program NAME from a go.mod and the
# other files. `go mod tidy` is not used, because it would also fetch the
# dependencies of redsync's own tests.
go_program() {
    folder=$1
    program=$2
    shift 2
    [ "$(cat "$out/$folder.$program.sum" 2>/dev/null)" != "$(sum "$@")" ] || return 0
    fetch_go
    echo "building $program" >&2
    rm -rf "$out/$folder.$program"
    mkdir -p "$out/$folder" "$out/$folder.$program"
    cp "$@" "$out/$folder.$program"
    (
        cd "$out/$folder.$program"
        export GOTOOLCHAIN=local GOFLAGS='-buildvcs=false -mod=mod' GOWORK=off
        try "$out/go/bin/go" mod download
        try "$out/go/bin/go" build -o "../$folder/$program" .
        "$out/go/bin/go" vet .
    )
    sum "$@" >"$out/$folder.$program.sum"
}

etcd() {
    go_program etcd go-peer "$here/etcd/go.mod" "$here"/etcd/peer/*.go
    go_program etcd etcd "$here/etcd/go.mod" "$here/etcd/server/main.go"
}

# Used only by servers.py: the packaged 3.5 servers crash when a client ends in
# the middle of a read.
etcd35() {
    go_program etcd35 etcd "$here/etcd35/go.mod" "$here/etcd/server/main.go"
}

redsync() {
    go_program redsync redsync-peer "$here/redlock/go.mod" "$here/redlock/main.go" \
        "$here/etcd/peer/serve.go" "$here/etcd/peer/region.go"
}

node() {
    node_package=$here/redlock/node/package.json
    if [ "$(cat "$out/node.sum" 2>/dev/null)" != "$(sum "$node_package")" ]; then
        echo 'fetching node-redlock' >&2
        rm -rf "$out/node"
        mkdir "$out/node"
        cp "$node_package" "$out/node"
        (
            cd "$out/node"
            try npm install --silent --no-package-lock --no-audit --no-fund >&2
        )
        sum "$node_package" >"$out/node.sum"
    fi
    cp "$here"/redlock/node/*.js "$out/node"
}

[ $# -gt 0 ] || set -- redisson curator jdbc python etcd redsync node
for peer; do
    "$peer"
done
