#!/usr/bin/env bash
# Puts the built program and the libraries that another node may lack into bundle/; prints the size.
#
# bin/hmc, a launcher, runs lib/hmc. The node's own libraries are used where it has them; lib/ fills the
# gaps. MPI is always the node's own: it must fit the node's mpirun and network.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-${CARGO_TARGET_DIR:-target}/release/hmc}
[ -x "$program" ] || { echo "bundle: $program is not built" >&2; exit 1; }
# Always the node's own: the C and C++ run-times, MPI, and what MPI is made of.
own='^(ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s|mpi|open-rte|open-pal|hwloc|event.*|pmix|udev)\.so)'

rm -rf bundle
mkdir -p bundle/bin bundle/lib bundle/inputs
cp inputs/*.toml bundle/inputs/
strip --strip-debug -o bundle/lib/hmc "$program"
libraries=$(ldd "$program")
if grep 'not found' <<<"$libraries" >&2; then echo "bundle: the program does not run here" >&2; exit 1; fi
awk '$2 == "=>" { print $1, $3 }' <<<"$libraries" | while read -r name path; do
    # By the name that is asked for: no links, which some copying tools drop.
    if ! [[ $name =~ $own ]]; then cp -L "$path" "bundle/lib/$name"; fi
done
cat >bundle/bin/hmc <<LAUNCHER
#!/bin/sh
# Runs ../lib/hmc; libraries that this node lacks come from ../lib, after the node's own.
top=\$(cd "\$(dirname "\$0")/.." && pwd)
if ldd "\$top/lib/hmc" | grep -q 'not found'; then
    system=/usr/local/lib:/usr/lib/$(gcc -print-multiarch):/usr/lib64
    export LD_LIBRARY_PATH="\${LD_LIBRARY_PATH:+\$LD_LIBRARY_PATH:}\$system:\$top/lib"
fi
exec "\$top/lib/hmc" "\$@"
LAUNCHER
chmod 755 bundle/bin/hmc bundle/lib/hmc
echo "bundle/: $(du -sh bundle | cut -f1), $(find bundle/lib -name '*.so*' | wc -l) libraries; run bundle/bin/hmc"
