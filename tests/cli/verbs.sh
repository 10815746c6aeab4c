#!/bin/sh
# Tests holdfast bench and help, and misuse of the lab; tests/lab tests the rest
# of the lab. Usage: verbs.sh HOLDFAST
set -u
. "$(dirname "$0")/lib.sh"

version_and_help() { # case
    equal "$("$hf" --version | cut -d' ' -f1)" holdfast --version
    for verb in run ls show break ask watch latch doctor bench lab 'lab oversell'; do
        # shellcheck disable=SC2086 # 'lab oversell' is two arguments
        "$hf" help $verb >text || die "help $verb"
        says text "usage: holdfast $verb"
        # shellcheck disable=SC2086
        "$hf" $verb --help | cmp - text || die "$verb --help"
        # shellcheck disable=SC2086
        "$hf" $verb -h | cmp - text || die "$verb -h"
    done
    "$hf" help >text || die help
    for verb in '' run; do
        # shellcheck disable=SC2086 # '' must give no argument
        "$hf" help $verb >said || die "help $verb"
        says said 'for this user on this machine'
        says said "'shm:///run/app/locks?mode=0660&group=app'"
    done
    "$hf" help help | cmp - text || die 'help help'
    equal "$(status_of "$hf" help nonsense)" 64 'help nonsense'
}

# Prints the verbs that `holdfast help' lists.
verbs() {
    "$hf" help | sed -n '3,/^$/s/^  \([a-z]*\) .*/\1/p'
}

every_verb_helps() { # case
    equal "$(verbs | grep -c -e '^run$' -e '^bench$' -e '^lab$' -e '^help$')" 4 verbs
    version=$("$hf" --version)
    for verb in $(verbs | grep -v help); do
        "$hf" "$verb" --help >text || die "$verb --help"
        case $verb in lab) most=50 ;; run | hold) most=40 ;; *) most=30 ;; esac
        [ "$(wc -l <text)" -le "$most" ] || die "$verb: $(wc -l <text) lines"
        contains text '.\{81\}' && die "$verb: over 80 columns"
        says text "^usage: holdfast $verb "
        says text "^  holdfast $verb"
        equal "$("$hf" "$verb" -V)" "$version" "$verb -V"
        equal "$("$hf" "$verb" --version)" "$version" "$verb --version"
    done
    "$hf" help >text
    contains text '.\{81\}' && die 'help: over 80 columns'
    [ "$(wc -l <text)" -le 40 ] || die "help: $(wc -l <text) lines"
}

# misused STATUS TEXT VERB WORD...: holdfast must end with STATUS and print TEXT
# in one line on standard error.
misused() {
    wanted=$1
    text=$2
    shift 2
    equal "$(status_of "$hf" "$@")" "$wanted" "$*"
    equal "$(wc -l <err)" 1 "lines of $*"
    equal "$(cat out)" '' "standard output of $*"
    grep -q -F -e "$text" err || die "$*: '$(cat err)' is without '$text'"
}

every_verb_refuses() { # case
    for verb in $(verbs | grep -v help); do
        misused 64 "holdfast $verb: no option is called \`--nonsense' (see \`holdfast help $verb')" \
            "$verb" --nonsense
        misused 64 "no option is called \`--hepl'; did you mean --help?" \
            "$verb" --hepl
        misused 64 "no option is called \`--verison'; did you mean --version?" \
            "$verb" --verison=1
        misused 64 "no option is called \`--keep' (see" "$verb" --keep
        misused 64 "no option is called \`-Z'" "$verb" -Z
        misused 64 '--help takes no value' "$verb" --help=yes
    done
}

did_you_mean() { # case
    misused 64 "no verb is called \`rnu'; did you mean holdfast run?" rnu
    misused 64 "no verb is called \`bnech'; did you mean holdfast bench?" bnech
    misused 64 "no verb is called \`xyzzy' (see" xyzzy
    misused 64 "there is no help on \`bensh'; did you mean holdfast bench?" \
        help bensh
    misused 64 "no verb is called \`list'; did you mean holdfast ls?" list
    misused 64 'did you mean holdfast --version?' version
    misused 64 "\`extra' after run: help takes one VERB" help run extra
    misused 64 "\`-b' before the verb: options follow it" -b shm: ls
    "$hf" help --help | grep -q '^usage: holdfast VERB' || die 'help --help'
    misused 64 '--shred' run --shred a true # the option as typed
    misused 64 'did you mean --shared?' run --shred a true
    misused 64 'did you mean --wait?' run --wiat 1s a true
    misused 64 "no scenario is called \`oversel'; did you mean oversell?" \
        lab oversel
    misused 64 "no scenario is called \`xyzzy'; \`holdfast lab list' lists them" \
        lab xyzzy
    misused 64 "did you mean kill?" run --on-lost kil a true
    misused 64 "did you mean semaphore?" bench --kind semaphor
    misused 64 'did you mean "ttl"?' run -b 'shm:?tll=1s' a true
    misused 64 'did you mean "connect_timeout"?' \
        run -b "$redis?conect_timeout=1s" a true
    misused 64 'did you mean redis:?' run -b redsi://h a true
}

urls_say_what_is_wrong() { # case
    misused 64 'has no backend for redis-x: URLs; did you mean redis:?' \
        run -b redis-x://h a true
    misused 64 'has no backend for redis2: URLs; did you mean redis:?' \
        run -b redis2://h a true
    misused 64 'not a URL: a scheme is missing; did you mean redis://localhost:6379?' \
        run -b localhost:6379 a true
    misused 64 'has no backend for localhost: URLs; it has' run -b localhost:6378 a true
    misused 64 'does not support Redis Sentinel yet' run -b redis+sentinel://h:26379/m a true
    misused 64 'does not support Redis Cluster yet' run -b redis+cluster://h a true
    misused 64 'an option without a name; it must be key=value' \
        run -b 'shm:?=x' a true
    misused 64 'no number from 1 to 65535' run -b redis://h:99999 a true
    misused 64 'no number from 1 to 65535 (in a password' \
        run -b redis://u:s3/cret@h a true
    contains err s3 && die "a password is shown: $(cat err)"
    echo nonsense >ca.pem
    misused 64 'ca.pem: no certificate or crl found; the file must contain certificates' \
        run -b "rediss://h?cacert=$PWD/ca.pem" a true
    front silent "$base/redis.sock"
    for scheme in redis mysql; do
        misused 69 "$at" run -n -b "$scheme://u@$at/0?connect_timeout=3s" a true
    done
}

# The error of Redis names the script that failed. holdfast's message must not
# name the script, because users do not know it.
redis_refuses() { # case
    redis_cli config set maxmemory 1 >/dev/null
    equal "$(status_of "$hf" run -n -b "$redis" refused true)" 69 'out of memory'
    redis_cli config set maxmemory 0 >/dev/null
    says err 'OOM command not allowed'
    contains err 'script: [0-9a-f]' && die "$(cat err)"
    equal "$(wc -l <err)" 1 lines
}

# check_json OPTION...: the output must be one line with one object, which has
# every key and no violation.
check_json() {
    "$hf" bench --json --runs 1 --seconds 1 "$@" >json || die "bench $*: $?"
    equal "$(wc -l <json)" 1 'lines'
    for key in backend kind fair procs threads names seconds pairs \
        pairs_per_s p50_us p99_us jain violations min_pairs_per_s \
        median_pairs_per_s max_pairs_per_s interrupted runs; do
        says json "[{,]\"$key\":[^,}]"
    done
    says json '"violations":0,"min'
    says json '"interrupted":false'
    says json '"pairs":[1-9]'
}

bench_alone() { # case
    check_json
    says json '"backend":"shm","kind":"mutex"'
    says json '"jain":1.0000'
    check_json --nowait
}

bench_processes() { # case
    check_json --procs 4 --fair
    says json '"fair":true,"procs":4'
    check_json --procs 4 --unfair
    says json '"fair":false,"procs":4'
    check_json --procs 3 --threads 3 --names 5
    says json '"threads":3,"names":5'
}

bench_threads_hand_over() { # case
    check_json --threads 8 --handoff 100 --fair
    check_json --threads 8 --handoff 100 --unfair
}

bench_redis() { # case
    for fairness in --fair --unfair; do
        check_json -b "$redis" --procs 3 --threads 2 "$fairness"
        check_json -b "$redis" --nowait "$fairness"
    done
    HOLDFAST_URL=$redis check_json
    says json '"backend":"redis+unix"'
}

bench_kinds() { # case
    for kind in read write semaphore; do
        check_json --procs 2 --threads 2 --kind $kind
        says json "\"kind\":\"$kind\""
    done
    check_json --procs 3 --permits 2 --kind semaphore
}

bench_in_words() { # case
    "$hf" bench --seconds 0.1 >words 2>err || die "$?"
    says words ' 3 runs of '
    says words 'pairs per second (median; minimum [0-9]*, maximum [0-9]*)$'
    says words '  0 violations'
    equal "$(cat err)" '' 'no live line without a terminal'
    "$hf" bench --seconds 0.1 --runs 1 >words || die "$?"
    says words ' 1 run of '
    says words 'pairs per second ([0-9]* pairs)$'
}

# The list of runs is sorted by speed; all other fields are those of the median
# run.
bench_runs() { # case
    "$hf" bench --json --runs 5 --seconds 0.1 >json || die "$?"
    python3 - <<'EOF' || die "$(cat json)"
import json
o = json.load(open('json'))
speeds = [run['pairs_per_s'] for run in o['runs']]
assert len(speeds) == 5 and speeds == sorted(speeds) and speeds[0] > 0
for key, value in o['runs'][2].items():
    assert o[key] == value, key
assert o['min_pairs_per_s'] == speeds[0]
assert o['median_pairs_per_s'] == speeds[2]
assert o['max_pairs_per_s'] == speeds[4]
EOF
    "$hf" bench --json --runs 2 --seconds 0.1 >json || die "$?"
    equal "$(grep -o '"seconds"' json | wc -l)" 3 'two runs and the median'
}

# contends PID N: returns whether N contenders use processor time.
contends() {
    n=0
    for one in $(pgrep -P "$1"); do
        spent=$(cut -d' ' -f14,15 "/proc/$one/stat" 2>/dev/null | tr ' ' +)
        [ "$((${spent:-0}))" -gt 10 ] && n=$((n + 1))
    done
    [ "$n" -eq "$2" ]
}

# A signal ends a measurement of one hour; the result up to then is printed.
bench_interrupted() { # case
    for signal in 2 15; do # INT and TERM
        start "$hf" bench --procs 3 --seconds 1h --json >json
        until_true contends "$pid" 3
        contenders=$(pgrep -P "$pid")
        kill -s $signal "$pid"
        ends "$pid" $((128 + signal)) "status, $signal"
        says json '"pairs":[1-9]'
        says json '"violations":0'
        says json '"interrupted":true'
        for one in $contenders; do
            gone "$one" || die "contender $one is left"
        done
    done
    start "$hf" bench --seconds 1h >words
    until_true contends "$pid" 1
    kill "$pid"
    wait_for "$pid"
    says words ', interrupted$'
}

bench_misused() { # case
    equal "$(status_of "$hf" bench --kind nonsense)" 64 --kind
    equal "$(status_of "$hf" bench --procs 0)" 64 --procs
    equal "$(status_of "$hf" bench --procs 1001)" 64 'too many processes'
    equal "$(status_of "$hf" bench --runs 0)" 64 --runs
    reports 64 '11000 threads in all; at most 10000' bench --procs 1000 --threads 11
    equal "$(status_of "$hf" bench --seconds 0)" 64 --seconds
    equal "$(status_of "$hf" bench nonsense)" 64 operand
    equal "$(status_of "$hf" bench --fair --unfair)" 64 'two orders'
    for kind in mutex read write; do
        reports 64 "--permits is for --kind semaphore, not for $kind" bench --permits 3 --kind $kind
    done
    equal "$(status_of "$hf" bench --permits 3)" 64 'permits of a mutex'
    equal "$(status_of "$hf" bench -b redis://127.0.0.1:1)" 69 unreachable
}

lab_misused() { # case
    equal "$(status_of "$hf" lab)" 64 'no scenario'
    equal "$(status_of "$hf" lab nonsense)" 64 'no such scenario'
    equal "$(status_of "$hf" lab oversell --stock x)" 64 'a number'
    exits 69 lab oversell -b redis://127.0.0.1:1
}

start_redis
run_cases
