# Common parts of install.sh and static.sh: a temporary directory, $tmp, and TAP.
# shellcheck shell=sh
tmp=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$tmp"' EXIT
number=0
unset HOLDFAST_MODULE_PATH HOLDFAST_PASSWORD

check() { # check NAME COMMAND...
    name=$1
    shift
    number=$((number + 1))
    if "$@" >"$tmp/out" 2>&1; then
        echo "ok $number - $name"
    else
        sed 's/^/# /' "$tmp/out"
        echo "not ok $number - $name"
    fi
}

says() { # says TEXT COMMAND...: with any exit status
    text=$1
    shift
    "$@" >"$tmp/said" 2>&1
    cat "$tmp/said"
    grep -q -e "$text" "$tmp/said"
}

by_cmake() { # by_cmake LIBRARY_DIRECTORY VERSION: builds $tmp/cmake/build
    rm -rf "$tmp/cmake"
    mkdir "$tmp/cmake" || return 1
    cp "$source/tests/install/program.c" "$tmp/cmake/program.c" || return 1
    cat >"$tmp/cmake/CMakeLists.txt" <<TEXT
cmake_minimum_required(VERSION 3.20)
project(user C)
find_package(holdfast $2 REQUIRED CONFIG)
add_executable(program program.c)
target_link_libraries(program holdfast::holdfast)
TEXT
    cmake -S "$tmp/cmake" -B "$tmp/cmake/build" \
        -Dholdfast_DIR="$1/cmake/holdfast" && cmake --build "$tmp/cmake/build"
}
