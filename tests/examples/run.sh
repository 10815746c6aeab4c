#!/bin/sh
# run.sh shm|redis|redlock|zk|etcd|mysql HOLDFAST EXAMPLE...
#
# Runs each example: with shm in a new directory, with redis on a new server
# whose socket is in that directory, else on REDLOCK_URL, ZK_URL, ETCD_URL or
# MYSQL_URL. Each example must succeed and print what it shows, or say what the
# backend lacks.
set -u

backend=$1
hf=$(realpath "$2")
shift 2
dir=$(mktemp -d)
server=

finish() {
    status=$?
    if [ -n "$server" ]; then
        kill "$server" && wait "$server"
    fi
    rm -rf "$dir"
    exit "$status"
}
trap finish EXIT

start_redis() {
    redis-server --port 0 --unixsocket "$dir/socket" --save '' \
        --dir "$dir" >"$dir/log" 2>&1 &
    server=$!
    until redis-cli -s "$dir/socket" ping >/dev/null 2>&1; do
        if ! kill -0 "$server" 2>/dev/null; then
            cat "$dir/log" >&2
            exit 1
        fi
    done
}

case $backend in
shm) url=shm://$dir/locks ;;
redis)
    start_redis
    url=redis+unix://$dir/socket
    ;;
redlock) url=$REDLOCK_URL ;;
zk) url=$ZK_URL ;;
etcd) url=$ETCD_URL ;;
mysql) url=$MYSQL_URL ;;
esac

# expect NAME: sets the output and the exit status that an example must have.
expect() {
    status=0
    case $1 in
    ask) words='got it' ;;
    cancel) words=HF_ECANCELED ;;
    epoll) words='worker 2 has it' ;;
    fencing) words='token .* has seen a higher one' ;;
    inspect) words='held by example, process [1-9]' ;;
    many) words='anna 1000, account/ben 1000' ;;
    metrics) words='^holdfast_acquires_total{program="example",result="granted"} 400$' ;;
    mixed) words='40 reports' ;;
    mutex) words='token [1-9]' ;;
    operator) words='taken away from it' ;;
    put) words='a late write: HF_ELOST' ;;
    rounds) words='round 3: all done' ;;
    rwlock) words='never torn' ;;
    watch) words='it is free now' ;;
    workers) words='all 8 are done' ;;
    *) words='run.sh has no words for it' ;;
    esac
    case $1 in fencing) status=1 ;; esac # its second run
    case $backend-$1 in
    redlock-ask)
        status=1
        words='cannot be asked here'
        ;;
    shm-put | redis-put | redlock-put)
        status=1
        words='no guarded writes here'
        ;;
    shm-watch | redlock-watch | mysql-watch | redlock-operator)
        status=1
        words=HF_ENOTSUP
        ;;
    redlock-inspect)
        status=1
        words='cannot inspect, list or break'
        ;;
    redlock-mixed | redlock-rounds | redlock-rwlock | redlock-workers)
        status=1
        words='only: mutex'
        ;;
    esac
}

# operate PROGRAM: runs the program on a lock that is held; the holder must
# notice that it lost its lock.
operate() {
    "$hf" run -t 3s -b "$url" --label stuck held -- \
        sh -c ': >in; exec sleep 600' &
    holder=$!
    until [ -e in ]; do
        kill -0 "$holder" || return
        sleep 0.05
    done
    if ! "$1" "$url" held; then
        kill "$holder" && wait "$holder"
        return 1
    fi
    wait "$holder"
    [ $? -eq 79 ]
}

# run NAME PROGRAM: runs the example in a directory of this test.
run() {
    cd "$dir" || exit 1
    case $1 in
    fencing)
        "$2" "$url" >first || return
        grep refused first || return
        echo 18000000000000000000 >counter.token
        "$2" "$url"
        ;;
    operator) operate "$2" ;;
    watch)
        [ -z "$server" ] || redis-cli -s "$dir/socket" config set \
            notify-keyspace-events KA || return
        "$2" "$url"
        ;;
    inspect) "$hf" run -b "$url" --label example held -- "$2" "$url" ;;
    *) "$2" "$url" ;;
    esac
}

number=0
failures=0
echo "1..$#"
for program; do
    number=$((number + 1))
    name=${program##*/example-}
    got=0
    program=$(realpath "$program")
    (run "$name" "$program") >"$dir/out" 2>&1 || got=$?
    expect "$name"
    if [ "$got" -eq "$status" ] && grep -q -e "$words" "$dir/out"; then
        echo "ok $number - $name"
    else
        failures=$((failures + 1))
        echo "not ok $number - $name"
        echo "# status $got, not $status; or it did not say '$words':"
        sed 's/^/# /' "$dir/out"
    fi
done
[ "$failures" -eq 0 ]
