#!/bin/sh
# Links the modules into the library, shared or static, on a machine without
# cmocka.
# static.sh BUILD_DIRECTORY SOURCE_DIRECTORY WERROR SCHEME...
set -u
build=$1/static-modules
static=$1/static-library
source=$2
werror=$3
shift 3
. "$source/tests/install/tap.sh"
unset LD_LIBRARY_PATH

cat >"$tmp/pkg-config" <<'TEXT'
#!/bin/sh
case " $* " in
*' cmocka '*) exit 1 ;;
esac
exec pkg-config "$@"
TEXT
chmod 755 "$tmp/pkg-config"

# The prefix does not exist, so no other installation can be found there.
configure() { # configure DIRECTORY LIBRARY
    rm -rf "$1"
    says 'cmocka found: NO' env PKG_CONFIG="$tmp/pkg-config" CMAKE=false \
        meson setup "$1" "$source" --prefix=/nowhere -Dlab=disabled -Ddefault_library="$2" \
        -Dstatic_modules=true --buildtype=plain -Dwerror="$werror" &&
        [ -e "$1/build.ninja" ]
}

install_static() {
    configure "$static" static && nice ninja -C "$static" &&
        DESTDIR="$tmp/root" meson install -C "$static" --no-rebuild &&
        lib=$(dirname "$(find "$tmp/root" -name libholdfast.a)") &&
        ! find "$tmp/root" -name '*.so*' | grep .
}

url_of() { # url_of SCHEME: a URL without a server
    case $1 in
    mysql) echo mysql://user@127.0.0.1:1/database ;;
    *) echo "$1://127.0.0.1:1" ;;
    esac
}

says_refused() { # says_refused PROGRAM: for each scheme; the library is static
    ! ldd "$1" | grep libholdfast || return 1
    for scheme in $schemes; do
        says 'Connection refused' "$1" "$(url_of "$scheme")" || return 1
    done
    says '^held$' "$1" "shm://$tmp/locks"
}

by_pkg_config() {
    # shellcheck disable=SC2046
    PKG_CONFIG_PATH="$lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$tmp/root" \
        pkg-config --cflags --libs --static holdfast >"$tmp/flags" &&
        cc "$source/tests/install/program.c" -o "$tmp/program" \
            $(cat "$tmp/flags")
}

knows() { # knows SCHEME: it tries to connect
    says 'Connection refused' "$build/cli/holdfast" run -n \
        -b "$(url_of "$1")" a -- true
}

exports() { # exports PATTERN
    nm -D --defined-only "$build/src/libholdfast.so" | awk '{ print $3 }' |
        grep -e "$1"
}

exports_the_api() {
    exports "^hf_lock_acquire@" && ! exports "^hf_module" && ! exports "^hf__"
}

with_tests() {
    meson setup "$1/static-tests" "$source" -Dstatic_modules=true -Dlab=disabled \
        --buildtype=plain -Dtests=enabled -Dwerror="$werror" &&
        nice ninja -C "$1/static-tests" tests/unit/test_url &&
        "$1/static-tests/tests/unit/test_url"
}

# pkg-config finds no library in an empty directory.
says_what_is_left_out() {
    mkdir "$tmp/empty" &&
        says ' shm *: yes (built in)' env PKG_CONFIG_PATH= \
            PKG_CONFIG_LIBDIR="$tmp/empty" CMAKE=false \
            meson setup "$tmp/bare" "$source" -Dlab=disabled --buildtype=plain &&
        grep ' redis *: NO: .*libhiredis-dev' "$tmp/said" &&
        grep ' etcd *: NO: .*libnghttp2-dev' "$tmp/said"
}

echo "1..$((9 + $#))"
schemes=$*
check "the summary says which backends are left out, and why" \
    says_what_is_left_out
check "the tests are left out where cmocka is not" configure "$build" shared
check "the library and the command build" nice ninja -C "$build" cli/holdfast
for scheme; do
    check "$scheme is in the library" knows "$scheme"
done
check "no module is exported" exports_the_api
check "a static library is installed without a shared one" install_static
check "a CMake program finds it" by_cmake "$lib" ""
check "and has the modules" says_refused "$tmp/cmake/build/program"
by_pkg_config_too() {
    by_pkg_config && says_refused "$tmp/program"
}
check "and so does one by pkg-config" by_pkg_config_too
check "the tests can be built with the modules in the library" with_tests "$tmp"
