//! Wilson and clover quarks.
//!
//! - `operator`: the even-odd preconditioned operator
//! - `action`: its derivative, for the terms of the Hamiltonian
//! - `quark`: its inverse on all sites

mod action;
mod operator;
mod quark;

pub use operator::{Schur, Wilson, WilsonParams};
pub use quark::WilsonQuark;
