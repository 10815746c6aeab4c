#!/bin/sh
# Tests how the command behaves on etcd, as far as this is particular to etcd.
# Usage: with_etcd etcd.sh HOLDFAST
# shellcheck disable=SC2016 # what is in single quotes is for other shells
set -u
. "$(dirname "$0")/lib.sh"

HOLDFAST_URL=$ETCD_URL
. "$(dirname "$0")/session.sh"
host=${ETCD_URL#*//}

ctl() {
    ETCDCTL_API=3 etcdctl --endpoints="$host" "$@"
}

a_wrong_url_is_explained() { # case
    for url in etcd: etcd:// etcd:///path; do
        refused "$url" 'there is no host; it must be etcd://host1:2379'
    done
    for option in cacert cert key; do
        refused "$ETCD_URL?$option=/dev/null" 'for TLS; the URL must begin with etcds://'
    done
    refused "etcds://$host?cacert=/nonexistent" '/nonexistent'
    refused "etcd://anna@$host" 'the user needs a password: in HOLDFAST_PASSWORD'
    refused "etcd://:s3cret@$host" 'the password needs a user'
    refused "$ETCD_URL/a/holdfast:b" 'a part of the path begins with .holdfast:'
    refused "$ETCD_URL/$(printf %0200d 0)" 'the path has 20[0-9] bytes; it must have less than 200'
    refused "$ETCD_URL?tick=2s" 'unknown option "tick"; etcd has .*cacert, cert, key'
    refused "etcd://$host:99999" port
}

it_is_the_lock_of_etcdctl() { # case
    hold -b "$ETCD_URL/jobs" nightly
    start env ETCDCTL_API=3 etcdctl --endpoints="$host" lock jobs/nightly \
        touch theirs
    until_true sh -c "ETCDCTL_API=3 etcdctl --endpoints=$host get jobs/nightly/ \
        --prefix --keys-only | grep -c . | grep -q 2"
    [ ! -e theirs ] || die 'etcdctl did not wait'
    let_go
    ends "$pid" 0 etcdctl
    [ -e theirs ] || die 'etcdctl did not run its command'
}

every_kind_works() { # case
    for kind in '' -s -x; do
        # shellcheck disable=SC2086 # '' must give no argument
        equal "$(status_of "$hf" run $kind "kind$kind" -- true)" 0 "run $kind"
    done
    for kind in mutex read write semaphore; do
        prints 0 "etcd, fair $kind, 2 processes" bench --procs 2 --runs 1 --seconds 0.2 --kind $kind
    done
    prints 0 'etcd, unfair mutex' bench --unfair --runs 1 --seconds 0.2
    equal "$(status_of "$hf" bench --unfair --kind semaphore)" 64 'no such kind'
}

# A URL may name a user before authentication is enabled, as it may in Go's
# client. When authentication is enabled, a client that is connected signs in,
# and keeps its lock.
rights_are_told_by_77() { # case
    anna="etcd://anna:s3cret@$host/jobs"
    equal "$(status_of "$hf" run -b "$anna" a -- true)" 0 'not enabled'
    hold -b "$anna" b
    ctl user add root:s3cret && ctl user grant-role root root &&
        ctl user add anna:s3cret && ctl role add jobs &&
        ctl role grant-permission jobs --prefix=true readwrite jobs/ &&
        ctl user grant-role anna jobs && ctl auth enable || die 'etcdctl'
    for url in "etcd://$host/jobs" "etcd://anna:wr0ng@$host/jobs" \
        "etcd://anna:s3cret@$host/other"; do
        equal "$(status_of "$hf" run -b "$url" a -- true)" 77 "$url"
        lacks err 's3cret\|wr0ng'
    done
    equal "$(HOLDFAST_PASSWORD=s3cret status_of "$hf" run \
        -b "etcd://anna@$host/jobs" a -- true)" 0 anna
    equal "$(status_of "$hf" run -n -b "$anna" b -- true)" 75 'still held'
    let_go
    ctl --user root:s3cret auth disable || die 'auth disable'
}

# shellcheck disable=SC2086 # a list
run_cases $session_cases a_broken_holder_hears_it_at_once
