# Cases of the command on a server to which holders keep a connection: for
# zk.sh, etcd.sh and mysql.sh. HOLDFAST_URL is the URL of that server.
# shellcheck shell=sh disable=SC2016,SC2154 # for other shells; $hf of lib.sh
. "$here/diagnosis.sh"
. "$here/operator_cases.sh"

tokens_rise() { # case
    show='echo "$HOLDFAST_NAME $HOLDFAST_TOKEN"'
    first=$("$hf" run jobs/nightly -- sh -c "$show")
    second=$("$hf" run jobs/nightly -- sh -c "$show")
    equal "${first% *}" jobs/nightly HOLDFAST_NAME
    [ "${second##* }" -gt "${first##* }" ] ||
        die "tokens do not rise: $first, $second"
}

who_holds_it_is_said() { # case
    hold --label 'the holder' a
    reports 75 "process $pid on $(uname -n) (the holder)" run -n a -- true
    reports 64 'in use as a mutex' run -s a -- true
    let_go
    equal "$(status_of "$hf" run -n a -- true)" 0 'afterwards'
}

killed_it_lets_go_with_its_session() { # case
    start_until held "$hf" run -t 1s c -- sh -c 'echo >held; exec sleep 1000'
    kill -9 "$pid"
    equal "$(status_of "$hf" run -w 1m c -- true)" 0 'the next one'
}

# Puts a front before the server; $url leads to the front. Like a server that is
# starting, the front accepts connections and closes them.
front_of_it() {
    parts_of_url
    front close "$host"
    url="$before_host$at$root"
}

parts_of_url() {
    host=${HOLDFAST_URL#*//}
    case $host in
    */*) root=/${host#*/} ;;
    *) root= ;;
    esac
    host=${host%%/*}
    before_host=${HOLDFAST_URL%"$host$root"}
    case $host in
    *@*)
        before_host=$before_host${host%@*}@
        host=${host#*@}
        ;;
    esac
}

waits_for_a_server_that_closes() { # case
    front_of_it
    waits_then_runs "127.0.0.1:$port: " -b "$url"
}

with_w_it_waits_too() { # case
    front_of_it
    waits_then_runs "127.0.0.1:$port: " -w 5m -b "$url"
}

with_w_the_whole_time_is_used() { # case
    front_of_it
    took=$(milliseconds_of "$hf" run -w 2 -b "$url" f -- touch ran)
    equal "$(cat "$base/took")" 69 'exit status'
    [ "$took" -ge 1900 ] || die "took $took ms"
    [ ! -e ran ] || die 'the command ran'
}

with_n_it_does_not_wait() { # case
    front_of_it
    equal "$(status_of "$hf" run -n -b "$url" f -- touch ran)" 69 'exit status'
    equal "$(wc -l <err)" 1 'lines said'
    lacks err waiting
}

# If no host of the URL is known, holdfast must fail at once instead of waiting.
an_unknown_host_is_not_waited_for() { # case
    parts_of_url
    equal "$(status_of "$hf" run -b "${before_host}a..b,c..d$root" f -- true)" 69 'exit status'
    lacks err waiting
}

# The library itself keeps waiting for the lost server, because the waiter's
# session may still be alive.
a_wait_survives_a_loss_of_the_server() { # case
    hold g
    front_of_it
    touch open
    start "$hf" run -b "$url?op_timeout=300ms" g -- touch ran 2>err
    waiter=$pid
    until_true met 1
    sleep 1 # it waits in the queue now, or still connects; both must survive
    before=$(wc -l <met)
    rm open
    until_true met $((before + 3))
    kill -0 "$waiter" || die 'the waiter has gone'
    touch open end
    ends "$holder" 0 'the holder'
    ends "$waiter" 0 'the waiter'
    [ -e ran ] || die 'the command did not run'
    [ "$(grep -c 'waiting for the server' err)" -le 1 ] || die "$(cat err)"
}

# Tests permits, several locks, and a nested run.
locks_of_run() { # case
    exits 0 run --permits 2 --of 3 sem -- "$hf" run -n --of 3 sem -- true
    exits 64 run --permits 2 --of 3 sem -- "$hf" run -n --permits 2 --of 3 sem -- true
    equal "$("$hf" run -l z -l y -- sh -c 'echo "$HOLDFAST_NAMES" "$HOLDFAST_TOKENS" |
        wc -w')" 4 'names and tokens'
    reports 64 'y: process [0-9]*, which runs this command, holds it' \
        run -l z -l y -- "$hf" run -n -l x -l y -- true
}

a_hold_is_kept_until_stdin_closes() { # case
    holds -l h -l i
    start_until err "$hf" run h -- touch ran 2>err 9>&-
    says err "h: waiting; process $holder on $(uname -n) $held_since"
    [ ! -e ran ] || die 'the command ran'
    lets_go 0
    ends "$pid" 0 'the waiter'
    equal "$(wc -l <token)" 2 'tokens'
    equal "$(cat said)" '' 'what was said'
}

the_doctor_is_in() { # case
    parts_of_url
    place=${HOLDFAST_URL%%:*}://$host
    lines_are_findings "$(status_of "$hf" doctor)"
    says out ': [1-9] warning'
    has ok locking 'can be acquired'
    status_of "$hf" doctor --json >said
    is_json "$place"
    wrong="$before_host"127.0.0.1:1"$root"
    equal "$(status_of "$hf" doctor -b "$wrong")" 2 'no server'
    equal "$(wc -l <out)" 2 'lines'
    has error connection '127.0.0.1:1: Connection refused'
    [ ! -s err ] || die "$(cat err)"
}

patient_cases="locks_of_run a_hold_is_kept_until_stdin_closes $patient_cases"
session_cases="$(cases_in "$here/session.sh") $operator_cases"
