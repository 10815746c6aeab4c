#!/bin/sh
# holdfast doctor in shared memory and on Redis. Usage: doctor.sh HOLDFAST
set -u
. "$(dirname "$0")/lib.sh"
. "$here/diagnosis.sh"

shared_memory_is_well() { # case
    lines_are_findings "$(status_of "$hf" doctor -b "shm://$base/shm?ttl=1h")"
    has ok promise 'within 100 ms after it dies'
    has ok sharing "$base/shm/locks: processes of user "
    has ok locking 'can be acquired'
    equal "$(tail -n 1 out | sed 's/.*: //')" '0 warnings, 0 errors' 'the last line'
    [ ! -s err ] || die "$(cat err)"
}

a_warning_is_1() { # case
    lines_are_findings "$(status_of "$hf" doctor -b "shm://$base/shm?ttl=1h&waitv=no")"
    has warning waiting futex_waitv
    equal "$(tail -n 1 out | sed 's/.*: //')" '1 warning, 0 errors' 'the last line'
}

redis_as_it_comes_and_as_it_should_be() { # case
    lines_are_findings "$(status_of "$hf" doctor -b "$redis?ttl=1h")"
    has warning persistence 'Set appendonly yes'
    redis_cli config set appendonly yes >out
    redis_cli config set appendfsync always >out
    equal "$(status_of "$hf" doctor -b "$redis?ttl=1h")" 0 'a server with a file'
    has ok promise 'holds survive a restart'
    redis_cli config set maxmemory-policy allkeys-lru >out
    redis_cli config set maxmemory 1gb >out
    lines_are_findings "$(status_of "$hf" doctor -b "$redis?ttl=1h")"
    has error eviction 'Set maxmemory-policy noeviction'
    equal "$(tail -n 1 out | sed 's/.*: //')" '0 warnings, 1 error' 'the last line'
    redis_cli config set maxmemory 0 >out
    redis_cli acl setuser clerk on '>s3cret' '~*' '&*' +@all -hset >out
    equal "$(HOLDFAST_PASSWORD=s3cret status_of "$hf" doctor \
        -b "redis+unix://clerk@$base/redis.sock")" 2 'a right is missing'
    has error rights 'ACL SETUSER clerk +hset'
    has error locking 'cannot be acquired'
    redis_cli config set appendonly no >out
}

# The doctor prints one line with the reason, and no password.
a_server_that_is_not_there_is_an_error() { # case
    for url in redis://clerk:s3cret@127.0.0.1:1/0 \
        "redis+unix://clerk:s3cret@$base/none.sock" \
        etcd://clerk:s3cret@127.0.0.1:1 zk://clerk:s3cret@127.0.0.1:1 \
        mysql://clerk:s3cret@127.0.0.1:1/locks \
        redlock://:s3cret@127.0.0.1:1,127.0.0.1:2,127.0.0.1:3; do
        equal "$(status_of "$hf" doctor -b "$url")" 2 "$url"
        equal "$(wc -l <out)" 2 "lines of $url"
        has error connection .
        equal "$(tail -n 1 out | sed 's/.*: //')" '0 warnings, 1 error' 'the last line'
        equal "$(status_of "$hf" doctor --json -b "$url")" 2 "$url --json"
        is_json "$(echo "$url" | sed 's,//.*@,//,; s,/0$,,; s,/locks$,,; s,unix:///.*,unix:,')"
        [ ! -s err ] || die "$(cat err)"
        lacks out s3cret
    done
}

a_login_that_is_refused_is_an_error() { # case
    redis_cli acl setuser ann on '>s3cret' +@all '~*' >out
    equal "$(HOLDFAST_PASSWORD=wr0ng status_of "$hf" doctor \
        -b "redis+unix://ann@$base/redis.sock")" 2 'exit status'
    has error connection 'refused the user name or password'
    lacks out 'wr0ng\|s3cret'
}

# A part of the URL that may belong to the password is not shown as a host.
a_url_is_shown_without_its_password() { # case
    while read -r url shown; do
        "$hf" doctor --json -b "$url" >out 2>err </dev/null
        is_json "$shown"
    done <<EOF
redis://127.0.0.1:1 redis://127.0.0.1:1
redis://u:pass@127.0.0.1:1/0?ttl=3s redis://127.0.0.1:1
redis://u:pa@ss@127.0.0.1:1 redis://127.0.0.1:1
redis://127.0.0.1:1/0?prefix=a@b redis:
redlock://u:p%40ss@[::1]:1,127.0.0.1:1,127.0.0.1:2 redlock://[::1]:1,127.0.0.1:1,127.0.0.1:2
shm: shm:
EOF
}

what_is_typed_wrong_is_64() { # case
    for words in '--nonsense' 'a' '-b' '--json=yes' '-b nonsense' \
        '-b redis://127.0.0.1/0?nonsense=1'; do
        # shellcheck disable=SC2086 # several words
        equal "$(status_of "$hf" doctor $words)" 64 "doctor $words"
        [ ! -s out ] || die "doctor $words: $(cat out)"
        [ -s err ] || die "doctor $words says nothing"
    done
    reports 64 'is a -b missing' doctor redis://:s3cret@127.0.0.1
    lacks err s3cret
    prints 0 'usage: holdfast doctor \[-b URL\] \[--json\]' doctor --help
}

# A write to a full disk must not end with status 0.
output_that_cannot_be_written_is_1() { # case
    status=0
    "$hf" doctor >/dev/full 2>err || status=$?
    equal "$status" 1 'exit status'
    says err 'standard output: No space left'
}

# in_terminal COLUMNS COMMAND: writes to `typed' what COMMAND shows on a
# terminal.
in_terminal() {
    columns=$1
    shift
    script -qec "stty cols $columns; $*" /dev/null </dev/null | tr -d '\r' >typed
}

on_a_terminal_it_has_colours_and_is_wrapped() { # case
    esc=$(printf '\033')
    TERM=xterm in_terminal 60 "env -u NO_COLOR '$hf' doctor -b 'shm://$base/shm?waitv=no'"
    says typed "^$esc\\[32mok$esc\\[0m  *promise"
    says typed "^$esc\\[33mwarning$esc\\[0m  *waiting"
    sed "s/$esc\\[[0-9]*m//g" typed >plain
    [ "$(awk 'length > 60' plain | grep -vc "$base")" -eq 0 ] || die "$(cat plain)"
    says plain '^                    *[a-z]'
    TERM=dumb in_terminal 60 "env -u NO_COLOR '$hf' doctor"
    lacks typed "$esc"
    TERM=xterm in_terminal 60 "NO_COLOR=1 '$hf' doctor"
    lacks typed "$esc"
    TERM=xterm "$hf" doctor >plain
    lacks plain "$esc"
}

start_redis
run_cases
