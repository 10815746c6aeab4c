#!/bin/sh
# Checks that an installation is complete: the header (from C and C++),
# pkg-config, CMake, the module next to the library, and the error when the module
# is missing.
# install.sh BUILD_DIRECTORY SOURCE_DIRECTORY WRONG_MODULE
set -u
build=$1
source=$2
wrong=$3
. "$source/tests/install/tap.sh"
chmod 755 "$tmp"
root=$tmp/root

echo 1..24
check "installs" env DESTDIR="$root" meson install -C "$build" --no-rebuild
pc=$(find "$root" -name holdfast.pc)
lib=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$root"
export PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1
program=$source/tests/install/program.c

by_pkg_config() { # COMPILER OUT
    # shellcheck disable=SC2046,SC2086
    $1 "$program" -o "$2" $(pkg-config --cflags --libs holdfast)
}

version=$(pkg-config --modversion holdfast)
# This check runs before LD_LIBRARY_PATH is set.
command=$(dirname "$(find "$root" -path '*/bin/holdfast')")/holdfast
check "the command of a private prefix finds its library" says '^in$' \
    env -u LD_LIBRARY_PATH "$command" run -b "shm://$tmp/locks" a -- echo in
check "and its lab" says 'sold exactly 20' env -u LD_LIBRARY_PATH -u HOLDFAST_URL \
    "$command" lab oversell --strategy lock --stock 20 --buyers 40
mv "$root" "$tmp/moved" && cp -al "$tmp/moved" "$root"
check "and when that was moved" says '^in$' env -u LD_LIBRARY_PATH \
    "$tmp/moved${command#"$root"}" run -b "shm://$tmp/locks" a -- echo in
check "the lab, too" says '^  oversell' env -u LD_LIBRARY_PATH \
    "$tmp/moved${command#"$root"}" lab list
export LD_LIBRARY_PATH="$lib"

# The completions are where bash and zsh look for them by default.
has_completions() {
    share=$(dirname "$(dirname "$command")")/share
    cmp "$source/completions/holdfast.bash" \
        "$share/bash-completion/completions/holdfast" &&
        cmp "$source/completions/_holdfast" \
            "$share/zsh/site-functions/_holdfast" &&
        "$command" __complete -- benc | grep -z -q '^bench$'
}
check "the completion of bash and zsh is there" has_completions

# The example backend is built only for the tests.
no_example() {
    [ -e "$build/src/backends/example.so" ] || return 1
    find "$root" -name 'example*' | grep . && return 1
    "$command" run -b nosuch://host a -- true >"$tmp/schemes" 2>&1
    "$command" help run >>"$tmp/schemes" 2>&1
    cat "$tmp/schemes"
    grep -q 'redis://' "$tmp/schemes" && ! grep -q 'example:' "$tmp/schemes"
}
check "the example is neither installed nor shown" no_example
check "a C program finds it by pkg-config" by_pkg_config \
    "cc -Wall -Wextra -Werror" "$tmp/c"
check "a C++ program finds it" by_pkg_config \
    "c++ -xc++ -Wall -Wextra -Werror" "$tmp/c++"
check "a CMake program finds it" by_cmake "$lib" ""
check "by its version" by_cmake "$lib" "$version"
check "by that of its series" by_cmake "$lib" "${version%.*}"
check "a later version is not there" says 'not accepted' by_cmake "$lib" 0.999
check "the C program locks" says '^held$' "$tmp/c" "shm://$tmp/locks"
check "the C++ program locks" says '^held$' "$tmp/c++" "shm://$tmp/locks"
check "the module lies beside the library" says 'refused' \
    "$tmp/c" redis://127.0.0.1:1
mkdir "$tmp/wrong"
cp "$wrong" "$tmp/wrong/redis.so"
check "HOLDFAST_MODULE_PATH overrides, another version is refused" \
    says 'another version' env HOLDFAST_MODULE_PATH="/nowhere:$tmp/wrong" \
    "$tmp/c" redis://127.0.0.1:1

# A set-user-id program ignores its environment, and its loader does too. The
# library must therefore be in the program's run path. If the test runs as root,
# it creates such a program and runs it as another user. If it runs as any other
# user, it creates a set-group-id program for another group of that user; if
# there is no such group, it lets sudo create a set-user-id program that belongs
# to root.
make_set_id() {
    by_pkg_config "cc -Wl,-rpath,$lib" "$tmp/set-id" || return 1
    group=$(id -G | tr ' ' '\n' | grep -v -x "$(id -g)" | head -n 1)
    if [ "$(id -u)" -eq 0 ]; then
        chmod 4755 "$tmp/set-id"
    elif [ -n "$group" ]; then
        chgrp "$group" "$tmp/set-id" && chmod 2755 "$tmp/set-id"
    else
        sudo -n sh -c 'chown 0 "$1" && chmod 4755 "$1"' - "$tmp/set-id"
    fi
}

as_set_id() { # VARIABLE URL
    if [ "$(id -u)" -eq 0 ]; then
        setpriv --reuid 65534 --clear-groups env "$1" "$tmp/set-id" "$2"
    else
        env "$1" "$tmp/set-id" "$2"
    fi
}

no_module_path() {
    make_set_id &&
        says 'refused' as_set_id HOLDFAST_MODULE_PATH="$tmp/wrong" \
            redis://127.0.0.1:1
}
check "a set-user-id program ignores it" no_module_path

redis_answers() {
    redis-cli -s "$tmp/socket" -a s3cret --no-auth-warning ping 2>/dev/null |
        grep -q PONG
}

no_password() {
    redis-server --port 0 --unixsocket "$tmp/socket" --unixsocketperm 777 \
        --requirepass s3cret --save '' --dir "$tmp" >"$tmp/redis" 2>&1 &
    server=$!
    while ! redis_answers; do
        kill -0 "$server" || { cat "$tmp/redis"; return 1; }
    done
    says '^held$' env HOLDFAST_PASSWORD=s3cret "$tmp/c" \
        "redis+unix://$tmp/socket" &&
        says 'wants a password' as_set_id HOLDFAST_PASSWORD=s3cret \
            "redis+unix://$tmp/socket"
}
check "nor does it take HOLDFAST_PASSWORD" no_password
rm "$(find "$root" -name redis.so)"
check "a missing module says what to install" says 'libhiredis' \
    "$tmp/c" redis://127.0.0.1:1
check "the command does not wait for one" says 'cannot open.*libhiredis' timeout 60 \
    "$(find "$root" -path '*/bin/holdfast')" run -b redis://127.0.0.1:1 a -- true
exported() {
    nm -D --defined-only "$lib/libholdfast.so" | awk '{ print $3 }' |
        grep -v -e '^hf_[a-z]' -e '^HOLDFAST_0' -e '^$' && return 1
    nm -D --defined-only "$lib/libholdfast.so" | grep -q hf_lock_acquire
}
check "nothing but the API is exported" exported

# A thread that has used the library calls into the library when it exits.
unloaded() {
    # shellcheck disable=SC2046
    cc -Wall -Wextra -Werror "$source/tests/install/unload.c" -o "$tmp/unload" \
        $(pkg-config --cflags holdfast) -pthread -ldl &&
        says '^outlived$' "$tmp/unload" "$lib/libholdfast.so" "shm://$tmp/locks"
}
check "a thread may outlive dlclose" unloaded

# Every function must have a page, and every .so page must refer to the right
# page.
has_pages() {
    man=$(dirname "$(find "$root" -name hf_open.3)")
    status=0
    for function in HF_SYNCHRONIZED $(nm -D --defined-only "$lib/libholdfast.so" |
        awk '$3 ~ /^hf_/ { sub(/@.*/, "", $3); print $3 }'); do
        page=$(sed -n 's,^\.so man3/,,p' "$man/$function.3")
        grep -q "^\.Nm $function\( ,\)*\$" "$man/${page:-$function.3}" ||
            { echo "no page: $function"; status=1; }
    done
    return "$status"
}
check "every function has a manual page" has_pages
