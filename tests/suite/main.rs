//! All integration tests, in one crate so that they are linked once.
//!
//! | module | what it tests |
//! |---|---|
//! | `laws` | what physics demands: covariance, forces, reversibility, determinants |
//! | `kernels` | kernels, operators and solvers against the plain reference |
//! | `measure` | observables |
//! | `peers` | the numbers of other programs |
//! | `files` | files of all formats, whole and damaged |
//! | `input` | the input file: mistakes, defaults, what is kept |
//! | `program` | the program as a user starts it |
//! | `capi` | the interface to C |
//! | `memory`, `floors`, `docs` | the count of memory; the imports of modules; the documentation |
//!
//! Helpers: `reference` is the plain reference, `compare` numbers against numbers, `terms` what laws of terms share, `devices` the devices of this machine,
//! `ranks` ranks that are threads, `chains` inputs; `program` and `files` have theirs in `mod.rs`.

mod capi;
mod chains;
mod compare;
mod devices;
mod docs;
mod files;
mod floors;
mod input;
mod kernels;
mod laws;
mod measure;
mod memory;
mod peers;
mod program;
mod ranks;
mod reference;
mod rehearsal;
mod terms;
