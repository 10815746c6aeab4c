#!/bin/sh
# Tests how the command behaves on ZooKeeper, as far as this is particular to
# ZooKeeper. Usage: OURS=.../interop-ours with_zk zk.sh HOLDFAST
# shellcheck disable=SC2016 # what is in single quotes is for other shells
set -u
. "$(dirname "$0")/lib.sh"

HOLDFAST_URL=$ZK_URL
. "$(dirname "$0")/session.sh"

whose_node_it_is_is_told_by_77() { # case
    hold -b "${ZK_URL%%//*}//anna:s3cret@${ZK_URL#*//}" d
    for user in '' ben:s3cret@ anna:wr0ng@; do
        url=${ZK_URL%%//*}//$user${ZK_URL#*//}
        equal "$(status_of "$hf" run -b "$url" -n d -- true)" 77 "$user"
        lacks err 's3cret\|wr0ng'
    done
    let_go
}

a_user_needs_a_password() { # case
    url=${ZK_URL%%//*}//anna@${ZK_URL#*//}
    reports 64 'the user needs a password: in HOLDFAST_PASSWORD' run -b "$url" e -- true
    equal "$(HOLDFAST_PASSWORD=s3cret status_of "$hf" run -b "$url" e true)" 0 \
        HOLDFAST_PASSWORD
}

# $OURS is a program that reads commands from its standard input and holds locks
# (tests/interop/ours.c).
ask_is_heard() { # case
    reports 1 '"wanted" is not held' ask wanted
    mkfifo tell
    start sh -c '"$0" "$1" 30000 <tell >heard' "$OURS" "$ZK_URL"
    exec 7>tell
    echo 'hold unfair wanted 0 -1' >&7
    until_true contains heard '^held token='
    equal "$(status_of "$hf" ask wanted)" 0 'ask'
    [ ! -s out ] && [ ! -s err ] || die "says $(cat out err)"
    echo 'wanted 60000' >&7
    until_true contains heard '^wanted$'
    exec 7>&-
    ends "$pid" 0 'the holder'
}

polling_is_said_of_a_prefix() { # case
    equal "$(status_of "$hf" watch -w 0 told)" 0 'a name'
    [ ! -s err ] || die "says $(cat err)"
    reports 0 '; polling every 500 ms$' watch -w 0 -p told
}

the_servers_own_nodes_are_refused() { # case
    for root in zookeeper zookeeper/locks zookeeper/; do
        reports 64 "the path /zookeeper is ZooKeeper's own" run -b "$ZK_URL/$root" e true
    done
    equal "$(status_of "$hf" run -b "$ZK_URL/zookeepers" e true)" 0 another
}

# shellcheck disable=SC2086 # a list
run_cases $session_cases a_broken_holder_hears_it_at_once
