#!/bin/sh
# The command on ZooKeeper, where it differs. Usage: with_zk zk.sh HOLDFAST
# shellcheck disable=SC2016 # what is in single quotes is for other shells
set -u
. "$(dirname "$0")/lib.sh"

HOLDFAST_URL=$ZK_URL

tokens_rise() {
    show='echo "$HOLDFAST_NAME $HOLDFAST_TOKEN"'
    first=$("$hf" run jobs/nightly -- sh -c "$show")
    second=$("$hf" run jobs/nightly -- sh -c "$show")
    equal "${first% *}" jobs/nightly HOLDFAST_NAME
    [ "${second##* }" -gt "${first##* }" ] ||
        die "tokens do not rise: $first, $second"
}

who_holds_it_is_said() {
    start "$hf" run --label 'the holder' a -- sh -c 'echo >held
        until [ -e end ]; do sleep 0.01; done'
    until_true test -s held
    equal "$(status_of "$hf" run -n a -- true)" 75 '-n'
    contains err "process $pid on $(uname -n) (the holder)" || die "$(cat err)"
    equal "$(status_of "$hf" run -s a -- true)" 64 'another kind'
    contains err 'another kind of lock' || die "$(cat err)"
    touch end
    wait_for "$pid"
    equal "$status" 0 'the holder'
    equal "$(status_of "$hf" run -n a -- true)" 0 'afterwards'
}

killed_it_lets_go_with_its_session() {
    start "$hf" run -t 1s c -- sh -c 'echo >held; exec sleep 1000'
    until_true test -s held
    kill -9 "$pid"
    equal "$(status_of "$hf" run -w 1m c -- true)" 0 'the next one'
}

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

run_cases tokens_rise who_holds_it_is_said \
    killed_it_lets_go_with_its_session whose_node_it_is_is_told_by_77 \
    a_user_needs_a_password
