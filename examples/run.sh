#!/bin/sh
# run.sh shm|redis PROGRAM: runs an example in a directory of its own, on
# shared memory there or on a Redis server that listens there and nowhere else.
set -eu

backend=$1
program=$(realpath "$2")
dir=$(mktemp -d)
server=

finish() {
    if [ -n "$server" ]; then
        kill "$server" && wait "$server" || :
    fi
    rm -rf "$dir"
}
trap finish EXIT

cd "$dir"
case $backend in
shm)
    url=shm://$dir/locks
    ;;
redis)
    url=redis+unix://$dir/socket
    redis-server --port 0 --unixsocket "$dir/socket" --save '' \
        --dir "$dir" >"$dir/log" 2>&1 &
    server=$!
    until redis-cli -s "$dir/socket" ping >/dev/null 2>&1; do
        if ! kill -0 "$server" 2>/dev/null; then
            cat "$dir/log" >&2
            exit 1
        fi
    done
    ;;
esac
"$program" "$url"
