#!/bin/sh
# holdfast bench and help; of the lab, what is typed wrong (tests/lab has the
# rest). Usage: verbs.sh HOLDFAST
set -u
. "$(dirname "$0")/lib.sh"

version_and_help() {
    equal "$("$hf" --version | cut -d' ' -f1)" holdfast --version
    for verb in run bench lab 'lab oversell'; do
        # shellcheck disable=SC2086 # one word or two
        "$hf" help $verb >text || die "help $verb"
        contains text "usage: holdfast $verb" || die "help $verb: $(cat text)"
        # shellcheck disable=SC2086
        "$hf" $verb --help | cmp - text || die "$verb --help"
        # shellcheck disable=SC2086
        "$hf" $verb -h | cmp - text || die "$verb -h"
    done
    "$hf" help >text || die help
    for verb in '' run; do
        # shellcheck disable=SC2086 # no word or one
        "$hf" help $verb >said || die "help $verb"
        contains said 'for this user on this machine' || die "$verb: $(cat said)"
        contains said "'shm:///run/app/locks?mode=0660&group=app'" ||
            die "$verb: $(cat said)"
    done
    "$hf" help help | cmp - text || die 'help help'
    equal "$(status_of "$hf" help nonsense)" 64 'help nonsense'
}

# One object on one line, with what is promised in it and nothing violated.
check_json() {
    "$hf" bench --json --seconds 0.2 "$@" >json || die "bench $*: $?"
    equal "$(wc -l <json)" 1 'lines'
    for key in backend kind fair procs threads names seconds pairs \
        pairs_per_s p50_us p99_us jain violations; do
        contains json "[{,]\"$key\":[^,}]" || die "no $key: $(cat json)"
    done
    contains json '"violations":0}' || die "violations: $(cat json)"
    contains json '"pairs":[1-9]' || die "no pairs: $(cat json)"
}

bench_alone() {
    check_json
    contains json '"backend":"shm","kind":"mutex"' || die "$(cat json)"
    contains json '"jain":1.0000' || die "one contender: $(cat json)"
    check_json --nowait
}

bench_processes() {
    check_json --procs 4 --fair
    contains json '"fair":true,"procs":4' || die "$(cat json)"
    check_json --procs 4 --unfair
    contains json '"fair":false,"procs":4' || die "$(cat json)"
    check_json --procs 3 --threads 3 --names 5
    contains json '"threads":3,"names":5' || die "$(cat json)"
}

bench_threads_hand_over() {
    check_json --threads 8 --handoff 100 --fair
    check_json --threads 8 --handoff 100 --unfair
}

bench_redis() {
    for fairness in --fair --unfair; do
        check_json -b "$redis" --procs 3 --threads 2 "$fairness"
        check_json -b "$redis" --nowait "$fairness"
    done
    HOLDFAST_URL=$redis check_json
    contains json '"backend":"redis+unix"' || die "$(cat json)"
}

bench_kinds() {
    for kind in read write semaphore; do
        check_json --procs 2 --threads 2 --kind $kind
        contains json "\"kind\":\"$kind\"" || die "$(cat json)"
    done
    check_json --procs 3 --permits 2 --kind semaphore
}

bench_in_words() {
    "$hf" bench --seconds 0.1 >words || die "$?"
    contains words 'pairs per second' || die "$(cat words)"
    contains words '  0 violations' || die "$(cat words)"
}

bench_misused() {
    equal "$(status_of "$hf" bench --kind nonsense)" 64 --kind
    equal "$(status_of "$hf" bench --procs 0)" 64 --procs
    equal "$(status_of "$hf" bench --seconds 0)" 64 --seconds
    equal "$(status_of "$hf" bench nonsense)" 64 operand
    equal "$(status_of "$hf" bench --fair --unfair)" 64 'two orders'
    for kind in mutex read write; do
        equal "$(status_of "$hf" bench --permits 3 --kind $kind)" 64 "$kind"
        contains err "--permits is for --kind semaphore, not for $kind" ||
            die "$(cat err)"
    done
    equal "$(status_of "$hf" bench --permits 3)" 64 'permits of a mutex'
    equal "$(status_of "$hf" bench -b redis://127.0.0.1:1)" 69 unreachable
}

lab_misused() {
    equal "$(status_of "$hf" lab)" 64 'no scenario'
    equal "$(status_of "$hf" lab nonsense)" 64 'no such scenario'
    equal "$(status_of "$hf" lab oversell --stock x)" 64 'a number'
    equal "$(status_of "$hf" lab oversell -b redis://127.0.0.1:1)" 69 \
        unreachable
}

start_redis
run_cases version_and_help bench_alone bench_processes \
    bench_threads_hand_over bench_redis bench_kinds bench_in_words \
    bench_misused lab_misused
