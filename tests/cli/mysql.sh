#!/bin/sh
# Tests how the command behaves on MySQL and MariaDB, as far as this is
# particular to them. Usage: with_mysql mysql.sh HOLDFAST
# shellcheck disable=SC2016 # what is in single quotes is for other shells
set -u
. "$(dirname "$0")/lib.sh"

HOLDFAST_URL=$MYSQL_URL
asked_ttl=6s
. "$(dirname "$0")/session.sh"
parts_of_url
secret=${before_host#*worker:}
secret=${secret%@}

# sql STATEMENT: runs the statement as the user of the URL.
sql() {
    MYSQL_PWD=$secret mariadb --no-defaults -h 127.0.0.1 -P "${host#*:}" \
        -u worker -N -B "${root#/}" -e "$1"
}

a_wrong_url_is_explained() { # case
    for url in mysql: mysql:// mysql:///database mysql://user@/database; do
        refused "$url" 'must have a host'
    done
    refused "mysql://$host/locks" 'must have a user'
    for url in "${before_host}$host" "${before_host}$host/" \
        "${before_host}$host/a/b"; do
        refused "$url" database
    done
    for option in cacert cert key; do
        refused "$MYSQL_URL?$option=/dev/null" 'tls=yes'
    done
    refused "$MYSQL_URL?tls=maybe" 'tls=maybe'
    refused "$MYSQL_URL?wait=often" 'wait=often'
    refused "$MYSQL_URL?wait=poll&fair=yes" 'fair=yes'
    for n in x -1 1x 100000; do
        refused "$MYSQL_URL?wait_connections=$n" "wait_connections=$n"
    done
    refused "$MYSQL_URL?socket=/tmp/socket" 'socket='
    refused "${before_host}/locks?socket=" 'socket=: must be'
    refused "${before_host}/locks?socket=/tmp/socket&tls=yes" 'tls=yes and socket='
    refused "$MYSQL_URL?wait_connections=0&fair=yes" 'fair=yes'
    refused "$MYSQL_URL?tick=2s" 'unknown option "tick"; mysql has .*socket, tls'
    refused "${before_host}127.0.0.1:99999/locks" port
}

both_schemes_are_the_same() { # case
    hold -b "mariadb${MYSQL_URL#mysql}" s
    equal "$(status_of "$hf" run -n s -- true)" 75 'mysql://'
    equal "$(sql "select count(*) from holdfast_locks where name='s' and
        lease_until > utc_timestamp(6)")" 1 'the row'
    let_go
}

every_kind_works() { # case
    for kind in '' -s -x; do
        # shellcheck disable=SC2086 # '' must give no argument
        equal "$(status_of "$hf" run $kind "kind$kind" -- true)" 0 "run $kind"
    done
    for kind in mutex read write semaphore; do
        prints 0 "mysql, fair $kind, 2 processes" bench --procs 2 --runs 1 --seconds 0.2 --kind $kind
        prints 0 "mysql, unfair $kind" bench --unfair --runs 1 --seconds 0.2 --kind $kind
    done
    prints 0 'mysql, unfair mutex' bench --procs 2 --runs 1 --seconds 0.2 \
        -b "$MYSQL_URL?wait=poll"
}

# waiters N: returns whether N waiters sleep in the server.
waiters() {
    [ "$(sql "select count(*) from information_schema.processlist where info like '/*hf:%'")" = "$1" ]
}

first_come_is_first_served() { # case
    hold o
    waiting=
    for n in 1 2 3 4 5; do
        start "$hf" run -w 30s o -- sh -c "echo $n >>order"
        waiting="$waiting $pid"
        until_true waiters $n
    done
    equal "$(status_of "$hf" run -n o -- true)" 75 'not at once'
    equal "$(status_of "$hf" run -w 200ms o -- true)" 75 'not in time'
    until_true waiters 5
    let_go
    for one in $waiting; do
        ends "$one" 0 'a waiter'
    done
    equal "$(tr '\n' ' ' <order)" '1 2 3 4 5 ' 'the order'
    waiters 0 || die 'a waiter is left'
}

who_polls_gets_it_too() { # case
    hold -b "$MYSQL_URL?wait_connections=0" p
    for option in wait_connections=0 wait=poll; do
        start "$hf" run -b "$MYSQL_URL?$option" p -- sh -c "echo >>got"
    done
    sleep 0.2
    waiters 0 || die 'it sleeps at the server'
    touch end
    wait_for "$holder"
    until_true sh -c '[ "$(wc -l <got)" = 2 ]'
}

a_password_may_be_in_a_file() { # case
    echo "$secret" >password
    file="password_file=$PWD/password"
    equal "$(status_of "$hf" run -b "mysql://worker@$host$root?$file" a -- true)" 0 "$file"
    echo wr0ng >password
    reports 77 'the server refused the user name or password' \
        run -b "mysql://worker@$host$root?$file" a -- true
    lacks err wr0ng
}

rights_are_told_by_77() { # case
    for url in "mysql://worker@$host$root" "mysql://worker:wr0ng@$host$root" \
        "mysql://stranger@$host$root" "${before_host}$host/mysql"; do
        equal "$(status_of "$hf" run -b "$url" a -- true)" 77 "$url"
        lacks err "$secret\|wr0ng"
    done
    says err 'the user may not use the database mysql: grant'
    equal "$(HOLDFAST_PASSWORD=$secret status_of "$hf" run \
        -b "mysql://worker@$host$root" a -- true)" 0 HOLDFAST_PASSWORD
}

# shellcheck disable=SC2086 # a list
run_cases $session_cases
