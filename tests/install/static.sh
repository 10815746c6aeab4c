#!/bin/sh
# A packager who links the modules into the library, on a machine without
# cmocka.
# static.sh BUILD_DIRECTORY SOURCE_DIRECTORY WERROR SCHEME...
set -u
build=$1/static-modules
source=$2
werror=$3
shift 3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
number=0
unset HOLDFAST_MODULE_PATH LD_LIBRARY_PATH

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
    PKG_CONFIG="$tmp/pkg-config" CMAKE=false meson setup "$build" "$source" \
        --prefix=/nowhere -Dstatic_modules=true -Doptimization=0 \
        -Dwerror="$werror" >"$tmp/said" || { cat "$tmp/said"; return 1; }
    grep 'cmocka found: NO' "$tmp/said"
}

knows() { # knows SCHEME: what would answer does not
    "$build/cli/holdfast" run -n -b "$1://127.0.0.1:1" a -- true \
        >"$tmp/said" 2>&1
    cat "$tmp/said"
    grep -q 'Connection refused' "$tmp/said"
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
