//! What most programs of your own need: `use hmc::prelude::*;`

pub use crate::action::{Action, Determinant, DeterminantParams, GaugeAction, Power, Smeared, TermHeader};
pub use crate::device::Precision;
pub use crate::family::{DomainWall, DomainWallParams, Schur, Staggered, Wilson, WilsonParams, WilsonQuark};
pub use crate::field::{AlgebraField, Dagger, Domain, MatrixField, Spinor};
pub use crate::hmc::{Chain, Level, Outcome, Scheme};
pub use crate::io::{read_links, write_links};
pub use crate::lattice::Boundary;
pub use crate::measure::{FlowKernel, Observable, Source, flow, pion, polyakov};
pub use crate::operator::{GaugeLoops, Operator};
pub use crate::quark::{Inverse, Quark, QuarkParams};
pub use crate::solver::{Settings, Solver};
