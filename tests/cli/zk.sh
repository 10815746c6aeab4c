#!/bin/sh
# The command on ZooKeeper, where it differs. Usage: with_zk zk.sh HOLDFAST
# shellcheck disable=SC2016 # what is in single quotes is for other shells
set -u
. "$(dirname "$0")/lib.sh"

HOLDFAST_URL=$ZK_URL
. "$(dirname "$0")/session.sh"

whose_node_it_is_is_told_by_77() {
    start "$hf" run -b "${ZK_URL%%//*}//anna:s3cret@${ZK_URL#*//}" d -- \
        sh -c 'echo >held; until [ -e end ]; do sleep 0.01; done'
    until_true test -s held
    for user in '' ben:s3cret@ anna:wr0ng@; do
        url=${ZK_URL%%//*}//$user${ZK_URL#*//}
        equal "$(status_of "$hf" run -b "$url" -n d -- true)" 77 "$user"
        not contains err 's3cret\|wr0ng' || die "$(cat err)"
    done
    touch end
    wait_for "$pid"
    equal "$status" 0 'the holder'
}

a_user_needs_a_password() {
    url=${ZK_URL%%//*}//anna@${ZK_URL#*//}
    equal "$(status_of "$hf" run -b "$url" e -- true)" 64 'without'
    contains err 'the user needs a password: in HOLDFAST_PASSWORD' || die "$(cat err)"
    equal "$(HOLDFAST_PASSWORD=s3cret status_of "$hf" run -b "$url" e true)" 0 \
        HOLDFAST_PASSWORD
}

# shellcheck disable=SC2086 # a list
run_cases $session_cases whose_node_it_is_is_told_by_77 a_user_needs_a_password
