//! Kernels, operators and solvers against the plain reference, on every device, storage and number of lanes.

mod borders;
mod conformance;
mod domain_wall;
mod rank_domains;
mod solvers;
mod staggered;
mod storage;
