# make run      set up, build, and run the quickstart on two ranks
# make test     set up, and every test
# make examples set up, and run every program of examples/
# make capi     the library for C, its header and hmc.pc in PREFIX (target/capi), and the examples in C and Python
# make bits     the same bits on every choice of ranks, lanes and threads: the whole matrix
# make python   the package of python/: a wheel, and its tests with ensembles that the program makes
# make kills    216 kills (or HMC_KILLS) at random moments, folders damaged between them
# make large    buffers above 2^31 bytes: a trajectory, a flow and every format, on one rank and on two
# make check    formatting, lints, documentation, and the GPU kernels (needs no GPU)
# make fuzz     readers of files and inputs on mutations of the corpora in fuzz/: a minute, or HMC_FUZZ times as long
# make audit    licences, sources and known faults of the crates
# make sanitize the host kernels under AddressSanitizer and UndefinedBehaviorSanitizer
# make book     the documentation as a book, in target/book
# make bundle   the program for other machines, in bundle/ and as a tarball in target/bundle/
# make clean

TARGET := $(or $(CARGO_TARGET_DIR),target)
ARCHS ?= sm_80 sm_90 sm_100
RANKS := $(shell if [ "$$(nproc)" -ge 2 ]; then echo 2; else echo 1; fi)

export PATH := $(PATH):$(HOME)/.cargo/bin

# How mpirun is to behave here, tests included. Ranks may be more than cores, so they give way when
# idle; they are not bound to a core, since each has its own threads; root is fine in a container, and
# containers forbid the kernel's copies between processes. OMPI_: OpenMPI 4 (and 5), PRTE_: 5 alone.
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
export OMPI_MCA_rmaps_base_oversubscribe := 1
export OMPI_MCA_hwloc_base_binding_policy := none
export OMPI_MCA_mpi_yield_when_idle := 1
export OMPI_MCA_btl_vader_single_copy_mechanism := none
export PRTE_ALLOW_RUN_AS_ROOT := 1
export PRTE_ALLOW_RUN_AS_ROOT_CONFIRM := 1
export PRTE_MCA_rmaps_default_mapping_policy := :oversubscribe
export PRTE_MCA_hwloc_default_binding_policy := none

# Where Debian has several HDF5, pkg-config may name one built with another MPI: the serial one serves all.
# Looked at when a recipe runs, as `setup` may just have installed it.
HDF5_FOLDER := /usr/lib/$(shell gcc -print-multiarch 2>/dev/null)/hdf5/serial
HDF5 = $(if $(HDF5_DIR),,$(shell [ -d $(HDF5_FOLDER) ] && echo HDF5_DIR=$(HDF5_FOLDER)))
CARGO = $(HDF5) cargo

# Python with h5py, for the test that reads our files with it; left out where it is not there.
HMC_PYTHON ?= $(wildcard $(abspath $(TARGET))/venv/bin/python)
ifneq ($(HMC_PYTHON),)
export HMC_PYTHON
endif

.PHONY: run test examples python capi bits kills large check fmt clippy docs book kernels fuzz audit sanitize bundle build setup nvrtc venv clean

# Some kernels will do: those of this processor, without the emulated GPU.
run: setup
	HMC_KERNEL_TARGETS=auto $(CARGO) build --release --locked
	mpirun -n $(RANKS) $(TARGET)/release/hmc inputs/quickstart.toml

# One profile, release, for the program, tests and documentation: nothing is built twice.
build: setup
	$(CARGO) build --release --locked

# What tests print is shown, so that a skipped one says why, and is counted. Their times are an option of the test harness that
# it hides without RUSTC_BOOTSTRAP; those of the documents run in rustdoc, which has none. Tests start programs of examples/, too.
TRIPLE = $(shell rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
test: setup
	@mkdir -p $(TARGET)
	$(CARGO) build --release --locked --bins --examples
	CARGO_TARGET_$(TRIPLE)_RUNNER='env RUSTC_BOOTSTRAP=1' bash -o pipefail -c '$(CARGO) test --release --locked --lib --bins --tests -- \
	    -Z unstable-options --report-time --show-output 2>&1 | tee $(TARGET)/test.log'
	$(CARGO) test --release --locked --doc
	@printf 'skipped: %s\n' "$$(grep -c '^skipped: ' $(TARGET)/test.log)"
	@printf 'the slowest, in seconds:\n'; sed -n 's/^test \(.*\) \.\.\. ok <\(.*\)s>$$/\2 \1/p' $(TARGET)/test.log | sort -rn | head -n 10

examples: setup
	$(CARGO) build --release --locked --examples
	for name in $(basename $(notdir $(wildcard examples/*.rs))); do \
	    printf '== %s\n' $$name; $(CARGO) run --quiet --release --locked --example $$name || exit 1; done

python: build
	@bash tools/setup.sh package
	HMC_PROGRAM=$(abspath $(TARGET))/release/hmc PYTHONPATH=$(abspath $(TARGET))/pyquda PYTHONDONTWRITEBYTECODE=1 $(TARGET)/venv/bin/python -m pytest -q -p no:cacheprovider python

# The same library as the program's, linked for C: built here alone, so that no other build needs an HDF5 that a library can hold.
PREFIX ?= $(TARGET)/capi
capi: build
	$(CARGO) rustc --release --locked --lib --crate-type cdylib -- -C link-arg=-Wl,-soname,libhmc.so.0
	bash tools/capi.sh install $(PREFIX)
	bash tools/capi.sh check $(PREFIX)

bits: setup
	$(CARGO) test --release --locked --test suite -- --ignored program::bits program::chaos --nocapture

# Buffers above 2^31 bytes: a quarter of an hour and 14 GB of memory; with HMC_LARGE_T=64 and 56 GB above 2^32 numbers.
large: setup
	$(CARGO) test --release --locked --test suite -- --ignored program::large --nocapture

kills: setup
	$(CARGO) test --release --locked --test suite -- --ignored program::restart --nocapture

check: fmt clippy docs kernels

fmt: setup
	@bash tools/setup.sh lint
	$(CARGO) fmt --check

# What is only checked or documented is never linked: no kernels. Without features too; then some code is for nobody.
clippy: setup
	@bash tools/setup.sh lint
	HMC_KERNEL_TARGETS=none $(CARGO) clippy --release --locked --all-targets -- -D warnings
	HMC_KERNEL_TARGETS=none $(CARGO) clippy --release --locked --lib --no-default-features -- -D warnings -A dead-code
	HMC_KERNEL_TARGETS=none $(CARGO) clippy --release --locked --bins --no-default-features --features hdf5 -- -D warnings -A dead-code

docs: setup
	HMC_KERNEL_TARGETS=none RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --locked --no-deps

book: setup
	@bash tools/setup.sh book
	$(TARGET)/tools/bin/mdbook build docs

# Registers and spills of every kernel; fails when one does not compile. HMC_NVRTC: another compiler.
kernels: build
	$(if $(HMC_NVRTC),,@bash tools/setup.sh nvrtc)
	HMC_NVRTC=$(or $(HMC_NVRTC),$(TARGET)/nvrtc) $(TARGET)/release/hmc kernels $(ARCHS:%=--arch %)

# -O1: at -O3 the sanitized kernels take a quarter of an hour to compile. Eight lanes, four in double: the same source as
# with more, of which sanitized tests run much longer.
# Flags for the test alone: build scripts and macros, loaded by rustc, must not have them. rustc
# links with -nodefaultlibs, so the run-times are named; ASan's has to come first, so it is preloaded.
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
LINK = "-Clink-arg=-Wl,--no-as-needed", "-Clink-arg=-lasan", "-Clink-arg=-lubsan", "-Clink-arg=-lstdc++"
sanitize: setup
	HMC_KERNEL_FLAGS="-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all" \
	CARGO_PROFILE_DEV_OPT_LEVEL=1 HMC_KERNEL_TARGETS="v3:1,8 gpu:1" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	$(CARGO) test --locked --target-dir $(TARGET)/sanitize --target $(HOST) \
	    --config 'target.$(HOST).rustflags = [$(LINK)]' \
	    --config 'target.$(HOST).runner = "env LD_PRELOAD=$(shell gcc -print-file-name=libasan.so)"' \
	    --test suite -- kernels::conformance kernels::domain_wall

# Without libFuzzer, which needs a nightly compiler; that its targets compile is checked.
fuzz: setup
	$(CARGO) test --release --locked --test fuzz -- --include-ignored --show-output
	HMC_KERNEL_TARGETS=none $(CARGO) check --release --locked --manifest-path fuzz/Cargo.toml

audit: setup
	@bash tools/audit.sh

# For glibc 2.31 and later, whatever this machine has; HMC_BUNDLE_GLIBC names another.
bundle: setup
	@bash tools/setup.sh bundle
	@bash tools/bundle.sh

setup:
	@bash tools/setup.sh

nvrtc venv: setup
	@bash tools/setup.sh $@

clean:
	rm -rf bundle $(TARGET)
