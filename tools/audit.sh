#!/usr/bin/env bash
# Licences, sources and known faults of all crates in Cargo.lock and fuzz/Cargo.lock, by cargo deny and cargo audit.
# A part that cannot be had here, a tool or the database of advisories, is reported as skipped. With HMC_ADVISORIES=tell known
# faults are told and let pass: a new one is no reason to refuse a change that has nothing to do with it.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}

skipped() {
    printf 'skipped: %s\n' "$*"
    exit 0
}

bash tools/setup.sh audit || skipped 'no cargo deny and cargo audit for this machine'
PATH="$(realpath "$target")/tools/bin:$PATH"

deny() { cargo deny --locked --manifest-path "$1" --config "$PWD/deny.toml" check "${@:2}"; }

for manifest in Cargo.toml fuzz/Cargo.toml; do
    printf '%s: ' "$manifest"
    deny "$manifest" licenses bans sources
done
# A yanked crate is one by the registry's index, a fault is one by the database.
cargo deny fetch db 2>/dev/null || skipped 'advisories: their database cannot be fetched from here'
database=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/advisory-dbs/advisory-db-* | head -n 1)
advisories() {
    printf '%s: ' "$1"
    deny "$1" advisories && cargo audit --quiet --no-fetch --db "$database" --file "${1%.toml}.lock"
}
for manifest in Cargo.toml fuzz/Cargo.toml; do
    advisories "$manifest" || [ "${HMC_ADVISORIES:-}" = tell ] || exit 1
done
