#!/usr/bin/env bash
# The program for other machines: bundle/, and a tarball of it in target/bundle/.
#
#   tools/bundle.sh                  builds for glibc $HMC_BUNDLE_GLIBC (2.31) and packs; needs the tools of `tools/setup.sh bundle`
#   tools/bundle.sh check FOLDER [VERSION]   whether a bundle is whole, and what it needs: fails above glibc VERSION
#   tools/bundle.sh move FOLDER      runs a copy of a bundle in another place, without this environment
#
# bin/hmc finds lib/ from its own place, wherever the folder is. HDF5 is in lib/, built from source. MPI is the other
# machine's own, OpenMPI 4 or 5: it must fit its mpirun and its network. NVRTC, too, is looked for there.
#
# The kernels are GCC's, as in every build. Zig compiles HDF5 and links, as it has the interfaces of all versions of glibc.
set -euo pipefail
# For messages and names alone; what is compiled is for x86-64.
here=$(cd "$(dirname "$0")/.." && pwd)
triple=x86_64-unknown-linux-gnu
# Of every glibc, and MPI.
own='^(ld-linux-x86-64|lib(c|m|dl|rt|pthread|util|resolv|mpi))\.so\.[0-9]+$'

stop() {
    printf 'bundle: %s\n' "$*" >&2
    exit 1
}

# The versions of glibc that a file asks for, the newest last.
versions() { objdump -T "$1" | sed -n 's/.*(GLIBC_\([0-9.]*\)).*/\1/p' | sort -uV; }

# Prints what the bundle needs; fails if it is not whole.
check() {
    local folder=$1 promised=${2:-} newest=0 file name needs
    [ -x "$folder/bin/hmc" ] || stop "$folder has no bin/hmc"
    for file in "$folder"/bin/hmc "$folder"/lib/*.so*; do
        [ -e "$file" ] || continue
        needs=$(versions "$file" | tail -n 1)
        needs=${needs:-0}
        if [ -n "$promised" ] && [ "$(printf '%s\n' "$promised" "$needs" | sort -V | tail -n 1)" != "$promised" ]; then
            objdump -T "$file" | grep -F "(GLIBC_$needs)" >&2
            stop "$file needs glibc $needs; $promised was promised"
        fi
        newest=$(printf '%s\n' "$newest" "$needs" | sort -V | tail -n 1)
        while read -r name; do
            [[ $name =~ $own ]] || [ -e "$folder/lib/$name" ] || stop "$file needs $name, which is not in the bundle"
        done < <(objdump -p "$file" | awk '$1 == "NEEDED" { print $2 }')
        # A folder of this machine in the path would be looked at first.
        while read -r name; do
            [[ $name == \$ORIGIN* ]] || stop "$file looks for libraries in $name"
        done < <(objdump -p "$file" | awk '$1 == "RUNPATH" || $1 == "RPATH" { print $2 }' | tr ':' '\n')
    done
    echo "bundle: needs glibc $newest or later, and OpenMPI 4 or 5 (libmpi.so.40)"
}

# A few trajectories by a copy elsewhere.
move() {
    local away
    away=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$away'" EXIT
    cp -r "$1" "$away/moved"
    sed 's/^trajectories = .*/trajectories = 2/; s/^thermalisation = .*/thermalisation = 1/' \
        "$1/inputs/quickstart.toml" >"$away/run.toml"
    (cd "$away" && env -i HOME="$away" "$away/moved/bin/hmc" run.toml) || stop "a copy of $1 elsewhere does not run"
}

# HDF5 from the source that its crate carries: cargo is all that it takes to fetch it.
hdf5() {
    local folder=$1 glibc=$2 source
    [ ! -e "$folder/done" ] || return 0
    rm -rf "$folder" && mkdir -p "$folder/source/src"
    printf '[package]\nname = "source"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nhdf5-metno-src = "=0.10.4"\n[workspace]\n' \
        >"$folder/source/Cargo.toml"
    touch "$folder/source/src/lib.rs"
    source=$(cd "$folder/source" && cargo metadata --quiet --format-version 1 |
        python3 -c 'import json, sys; print(*[p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "hdf5-metno-src"])')
    echo "bundle: building HDF5 for glibc $glibc" >&2
    local off=(BUILD_STATIC_LIBS BUILD_TESTING HDF5_BUILD_TOOLS HDF5_BUILD_EXAMPLES HDF5_BUILD_HL_LIB HDF5_BUILD_CPP_LIB
        HDF5_BUILD_FORTRAN HDF5_ENABLE_ZLIB_SUPPORT HDF5_ENABLE_SZIP_SUPPORT HDF5_ENABLE_NONSTANDARD_FEATURES
        HDF5_ENABLE_NONSTANDARD_FEATURE_FLOAT16)
    off=("${off[@]/#/-D}")
    # shellcheck disable=SC2016
    cmake -S "$(dirname "$source")/ext/hdf5" -B "$folder/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$tools/cc" \
        -DCMAKE_AR="$tools/ar" -DCMAKE_RANLIB="$tools/ranlib" -DCMAKE_INSTALL_PREFIX="$folder" -DCMAKE_INSTALL_LIBDIR=lib \
        -DCMAKE_INSTALL_RPATH='$ORIGIN' -DHDF5_NO_PACKAGES=ON -DBUILD_SHARED_LIBS=ON -DHDF5_ENABLE_PARALLEL=OFF \
        "${off[@]/%/=OFF}" >"$folder/log" 2>&1 && cmake --build "$folder/build" --parallel "$(nproc)" >>"$folder/log" 2>&1 &&
        cmake --install "$folder/build" >>"$folder/log" 2>&1 || { tail -n 30 "$folder/log" >&2; stop "HDF5 was not built: $folder/log"; }
    rm -rf "$folder/build"
    touch "$folder/done"
}

case ${1:-build} in
check)
    shift
    check "$@"
    exit
    ;;
move)
    move "$2"
    exit
    ;;
build) ;;
*) stop "no such part: $1 (see the head of tools/bundle.sh)" ;;
esac

cd "$here"
[ "$(uname -m)" = x86_64 ] || stop "bundles are for x86-64 and made there"
glibc=${HMC_BUNDLE_GLIBC:-2.31}
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
tools=$target/bundle/tools-$glibc
export PATH=$target/venv/bin:$PATH
mkdir -p "$tools"
# What compiles and links for that glibc; cargo-zigbuild knows which of rustc's options Zig's linker does not take.
for part in cc:cc ar:ar ranlib:ranlib; do
    aim=$([ "$part" != cc:cc ] || echo "-target x86_64-linux-gnu.$glibc")
    printf '#!/bin/sh\nexec python3 -m ziglang %s %s "$@"\n' "${part#*:}" "$aim" >"$tools/${part%:*}"
done
printf '#!/bin/sh\nexec cargo-zigbuild zig cc -- -target x86_64-linux-gnu.%s "$@"\n' "$glibc" >"$tools/linker"
chmod +x "$tools"/*

hdf5 "$target/bundle/hdf5-$glibc" "$glibc"
# Kernels are the same for every target: the objects of other builds serve.
mkdir -p "$target/kernels" "$target/$triple"
[ -e "$target/$triple/kernels" ] || ln -s ../kernels "$target/$triple/kernels"
HDF5_DIR=$target/bundle/hdf5-$glibc HMC_KERNEL_TARGETS=${HMC_KERNEL_TARGETS:-all} CARGO_PROFILE_RELEASE_DEBUG=0 \
    RUSTFLAGS="-C linker=$tools/linker -C link-arg=-Wl,-rpath,\$ORIGIN/../lib" \
    cargo build --release --locked --target $triple --bin hmc

rm -rf bundle
mkdir -p bundle/bin bundle/lib bundle/inputs
cp inputs/*.toml bundle/inputs/
cp LICENSE tools/slurm.sh bundle/
strip --strip-debug -o bundle/bin/hmc "$target/$triple/release/hmc"
# By the name that is asked for: no links, which some copying tools drop.
library=$(objdump -p bundle/bin/hmc | awk '$1 == "NEEDED" && $2 ~ /^libhdf5/ { print $2 }')
strip --strip-debug -o "bundle/lib/$library" "$target/bundle/hdf5-$glibc/lib/$library"
check bundle "$glibc" | tee bundle/NEEDS
move "$here/bundle" >/dev/null
name=hmc-$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)-x86_64
tar -czf "$target/bundle/$name.tar.gz" --transform "s,^bundle,$name," --owner 0 --group 0 bundle
echo "bundle/: $(du -sh bundle | cut -f1), run bundle/bin/hmc; $target/bundle/$name.tar.gz: $(du -h "$target/bundle/$name.tar.gz" | cut -f1)"
