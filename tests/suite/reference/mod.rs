//! The slow and obvious reference that the tests compare the program with.
//!
//! Plain f64, natural site order, full 4x4 gamma matrices; nothing is shared with `kernels/`. The
//! program, which is compared with it, is compared with openQCD and MILC in `peers/`.
//!
//! - `su3`: 3x3 complex matrices, random numbers, generators, exponential
//! - `gauge`: links, paths, gauge actions and forces, gauge transformations
//! - `flow`: clover-leaf field strength, E and Q, gradient flow
//! - `stout`: stout smearing
//! - `wilson`: Wilson-clover operator, Schur forms, conjugate gradients, pion correlator
//! - `domain_wall`: domain-wall operator, its Schur form and overlap operator by dense matrices
//! - `multigrid`: two levels for the Wilson-clover operator, the coarse one dense
//! - `staggered`: smeared links, improved staggered operator, pion correlator
//! - `block`: 12x12 matrices of one site
//! - `data`: readers for the peers' numbers
//! - `laws`, `staggered_laws`: gauge covariance, force = derivative of the action, free fields
#![allow(clippy::pedantic, clippy::needless_range_loop, reason = "indices and names as in the formulas")]

pub mod block;
pub mod data;
pub mod domain_wall;
pub mod flow;
pub mod gauge;
mod laws;
pub mod multigrid;
pub mod staggered;
mod staggered_laws;
pub mod stout;
pub mod su3;
pub mod wilson;
