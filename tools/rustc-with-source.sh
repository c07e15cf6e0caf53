#!/usr/bin/env bash
# A compiler together with the source of its standard library, for `-Zbuild-std` where rustup cannot fetch `rust-src`:
# Debian's packages, unpacked into a folder. Nothing is installed.
#
#   tools/rustc-with-source.sh FOLDER     then RUSTC=FOLDER/rustc RUSTC_BOOTSTRAP=1 cargo build -Zbuild-std ...
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
folder=$(mkdir -p "$1" && cd "$1" && pwd)
[ ! -x "$folder/rustc" ] || exit 0
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
apt-get update -qq || true
(
    cd "$packages"
    standard=$(apt-cache depends libstd-rust-web-dev | awk '/Depends: libstd-rust-web-/{print $2; exit}')
    llvm=$(apt-cache depends "$standard" | awk '/Depends: libllvm/{print $2; exit}')
    apt-get download -q rustc-web libstd-rust-web-dev rust-web-src "$standard" "$llvm" > /dev/null 2>&1
)
for package in "$packages"/*.deb; do
    case $package in *rust-web-src*) ;; *) dpkg -x "$package" "$folder/tree" ;; esac
done
dpkg --fsys-tarfile "$packages"/rust-web-src_*.deb |
    tar x -C "$folder/tree" --wildcards ./usr/lib './usr/src/rustc-*/library'
host=$(rustc -vV | sed -n 's/^host: //p')
programs=$folder/tree/usr/lib/rustlib/$host/bin
mkdir -p "$programs"
ln -sf "$(rustc --print sysroot)/lib/rustlib/$host/bin/rust-lld" "$programs/rust-lld"
llvm=$(find "$folder/tree/usr/lib" -maxdepth 1 -name 'llvm-*' | head -1)
printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' \
    "$folder/tree/usr/lib/${host/-unknown/}:$llvm/lib" "$folder/tree/usr/bin/rustc" > "$folder/rustc"
chmod +x "$folder/rustc"
"$folder/rustc" --version
