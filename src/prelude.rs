//! What most programs of your own need: `use hmc::prelude::*;`

pub use crate::action::{
    Action, ActionError, Determinant, DeterminantParams, GaugeAction, Power, Smeared, TermHeader,
};
pub use crate::device::Precision;
pub use crate::family::{DomainWall, DomainWallParams, Schur, Staggered, Wilson, WilsonParams, WilsonQuark};
pub use crate::field::{AlgebraField, Dagger, Domain, FieldError, MatrixField, Spinor};
pub use crate::hmc::{Chain, Level, Outcome, Scheme};
pub use crate::io::{read_links, write_links};
pub use crate::lattice::Boundary;
pub use crate::math::ExactSum;
pub use crate::measure::{Context, Found, Measure, MeasureError, NoFermions, Observable};
pub use crate::measure::{FlowKernel, Source, flow, pion, polyakov};
pub use crate::operator::{CloverForm, GaugeLoops, Operator};
pub use crate::quark::{Inverse, Quark, QuarkParams};
pub use crate::solver::{Past, Settings, Solver};
