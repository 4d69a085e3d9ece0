//! Wilson and clover quarks.
//!
//! - `operator`: the even-odd preconditioned operator
//! - `action`: its derivative, for the terms of the Hamiltonian
//! - `doublet`: two flavours of different masses
//! - `quark`: its inverse on all sites
//! - `full`: the operator on all sites
//! - `keys`: the keys in an input
//! - `qcdml`: the action in ILDG's metadata
//! - `terms`: the terms and the inverse for an input

mod action;
mod doublet;
mod full;
pub(crate) mod keys;
mod operator;
mod qcdml;
mod quark;
mod terms;

pub use doublet::{Doublet, DoubletOnAllSites, DoubletParams};
pub use full::WilsonOnAllSites;
pub use keys::{Flavours, Hasenbusch, WilsonFermion};
pub use operator::{Schur, Wilson, WilsonParams};
pub use quark::{DoubletQuark, WilsonQuark};
