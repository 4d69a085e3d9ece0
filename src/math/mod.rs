//! Algebra on the host, without lattice or files.
//!
//! - `autocorrelation`: means of a Markov chain with their errors
//! - `elliptic`: Jacobi's elliptic functions
//! - `exact_sum`: sums of doubles that do not depend on their order
//! - `milc_rational`: rational functions of MILC's files
//! - `rational`: partial fractions close to products of fractional powers, with measured errors
//! - `rational_error`: why there is none
//! - `remez`: the exchange algorithm that finds them
//! - `slices`: matrices on the fifth dimension of domain-wall quarks
//! - `symmetric`: eigenvalues of small symmetric matrices
//! - `target`: the function it comes close to, in many digits
//! - `wall_weights`: weights of domain-wall quarks in the fifth dimension, and their sign function
//! - `zolotarev`: the best sign function and square roots in closed form

mod autocorrelation;
mod elliptic;
mod exact_sum;
mod milc_rational;
mod rational;
mod rational_error;
mod remez;
mod slices;
mod symmetric;
mod target;
mod wall_weights;
mod zolotarev;

pub use autocorrelation::{ChainMean, thermalisation};
pub use elliptic::Elliptic;
pub use exact_sum::ExactSum;
pub use milc_rational::{MilcPseudofermion, MilcRational, MilcRationalError, milc_rationals};
pub use rational::{MIN_ERROR, Rational};
pub use rational_error::{MAX_DEGREE, RationalError};
pub use slices::{SliceMatrix, TwoTerms};
pub(crate) use symmetric::eigenpairs;
pub use target::Factor;
pub use wall_weights::WallWeights;
pub use zolotarev::{SquareRoot, ZolotarevSign, zolotarev};

/// The nearest float.
#[expect(clippy::cast_possible_truncation, reason = "rounding is what is asked for")]
pub(crate) fn single(x: f64) -> f32 {
    x as f32
}
