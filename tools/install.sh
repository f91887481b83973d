#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Put the built files in their places, or take them away: `make install`, `make uninstall`.
#   tools/install.sh install|uninstall
# From the environment: BIN, LIB and DOC (where the built files are), PREFIX and LIBDIR (where they
# go), CUDA (1: libdpload_cuda.so was built too, and where all of its needs were found libdptrain_cuda.so),
# DESTDIR (written before both while a package is made, else empty).
set -eu
umask 022

files() { # install|uninstall: lines of MODE FILE TARGET
    cat <<EOF
755 $BIN/dptrain $PREFIX/bin/dptrain
755 $BIN/dpload $PREFIX/bin/dpload
644 include/dpload.h $PREFIX/include/dpload.h
644 $LIB/libdpload.a $LIBDIR/libdpload.a
644 $LIB/libdpload.so.0 $LIBDIR/libdpload.so.0
link libdpload.so.0 $LIBDIR/libdpload.so
644 $DOC/dpload.pc $LIBDIR/pkgconfig/dpload.pc
644 $DOC/dptrain.1 $PREFIX/share/man/man1/dptrain.1
644 $DOC/dpload.1 $PREFIX/share/man/man1/dpload.1
644 man/dpload.3 $PREFIX/share/man/man3/dpload.3
EOF
    if [ "${CUDA:-0}" = 1 ] || [ "$1" = uninstall ]; then
        echo "644 $LIB/libdpload_cuda.so $LIBDIR/libdpload_cuda.so"
        if [ -e "$LIB/libdptrain_cuda.so" ] || [ "$1" = uninstall ]; then
            echo "644 $LIB/libdptrain_cuda.so $LIBDIR/libdptrain_cuda.so"
        fi
    fi
    for program in dptrain dpload; do
        cat <<EOF
644 $DOC/$program.bash $PREFIX/share/bash-completion/completions/$program
644 $DOC/$program.zsh $PREFIX/share/zsh/site-functions/_$program
644 $DOC/$program.fish $PREFIX/share/fish/vendor_completions.d/$program.fish
EOF
    done
}

for path in "$PREFIX" "$LIBDIR"; do
    case $path in
    /*) ;;
    *)
        echo "make $1: PREFIX and LIBDIR must be absolute paths, found '$path'" >&2
        exit 2
        ;;
    esac
done

files "$1" | while read -r mode from to; do
    to=$DESTDIR$to
    if [ "$1" = uninstall ]; then
        rm -f "$to"
        continue
    fi
    mkdir -p "${to%/*}"
    if [ "$mode" = link ]; then
        ln -sf "$from" "$to"
    else
        install -m "$mode" "$from" "$to"
    fi
done

# The linker's cache is that of the running system, so a package being made must not touch it.
PATH=$PATH:/sbin:/usr/sbin
if [ -z "$DESTDIR" ] && [ "$(id -u)" = 0 ] && command -v ldconfig >/dev/null; then
    ldconfig
fi
