#!/bin/sh
# A packager who links the modules into the library, on a machine without
# cmocka.
# static.sh BUILD_DIRECTORY SOURCE_DIRECTORY WERROR SCHEME...
set -u
build=$1/static-modules
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

# Where nothing is installed that could be found instead.
configure() {
    rm -rf "$build"
    says 'cmocka found: NO' env PKG_CONFIG="$tmp/pkg-config" CMAKE=false \
        meson setup "$build" "$source" --prefix=/nowhere \
        -Dstatic_modules=true -Doptimization=0 -Dwerror="$werror" &&
        [ -e "$build/build.ninja" ]
}

knows() { # knows SCHEME: asks a server that is not there
    says 'Connection refused' "$build/cli/holdfast" run -w 10 \
        -b "$1://127.0.0.1:1" a -- true
}

exports() { # exports PATTERN
    nm -D --defined-only "$build/src/libholdfast.so" | awk '{ print $3 }' |
        grep -e "$1"
}

exports_the_api() {
    exports "^hf_lock_acquire@" && ! exports "^hf_module" && ! exports "^hf__"
}

echo "1..$((3 + $#))"
check "the tests are left out where cmocka is not" configure
check "the library and the command build" nice ninja -C "$build" cli/holdfast
for scheme; do
    check "$scheme is in the library" knows "$scheme"
done
check "no module is exported" exports_the_api
