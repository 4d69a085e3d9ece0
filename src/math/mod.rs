//! Algebra on the host, without lattice or files.
//!
//! - `exact_sum`: sums of doubles that do not depend on their order
//! - `rational`: partial fractions close to products of fractional powers, with measured errors
//! - `remez`: the exchange algorithm that finds them
//! - `target`: the function it comes close to, in many digits
//! - `zolotarev`: elliptic functions; the best sign function and square roots in closed form

mod exact_sum;
mod rational;
mod remez;
mod target;
mod zolotarev;

pub use exact_sum::ExactSum;
pub use rational::{Factor, MAX_DEGREE, MIN_ERROR, Rational, RationalError};
pub use zolotarev::{Elliptic, SquareRoot, ZolotarevSign, zolotarev};
