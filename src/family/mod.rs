//! The families of quarks: each has its operator, the terms of its determinant, and what is measured of it.
//!
//! - `wilson`: Wilson and clover quarks
//! - `domain_wall`: domain-wall quarks of any weights
//! - `staggered`: improved staggered quarks, asqtad and HISQ

mod domain_wall;
mod staggered;
mod wilson;

pub use domain_wall::*;
pub use staggered::*;
pub use wilson::*;
