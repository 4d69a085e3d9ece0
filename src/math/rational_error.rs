//! Why there is no rational function as asked for.

use thiserror::Error;

/// The largest degree that is tried.
pub const MAX_DEGREE: usize = 64;

/// Why there is no such function.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RationalError {
    /// The degree is not between 1 and [`MAX_DEGREE`].
    #[error("a rational function of degree {degree}: the degree must be between 1 and {MAX_DEGREE}")]
    Degree {
        /// As asked for.
        degree: usize,
    },
    /// The error falls below what coefficients in double can show.
    #[error(
        "on the range [{lo:e}, {hi:e}] a function of degree {degree} would have error {error:.1e}, far below double \
         precision: take a smaller degree, or, if it is 1, the operator's true spectrum, which is much wider"
    )]
    DegreeTooLarge {
        /// As asked for.
        degree: usize,
        /// Lower end of the range.
        lo: f64,
        /// Upper end of the range.
        hi: f64,
        /// Of the function before rounding.
        error: f64,
    },
    /// Not 0 < lo < hi, or lo / hi is not above 0 in double.
    #[error(
        "the range [{lo:e}, {hi:e}] of a rational function must have 0 < lo < hi, both finite, and lo / hi > 0"
    )]
    Range {
        /// Lower end.
        lo: f64,
        /// Upper end.
        hi: f64,
    },
    /// A factor that is not positive on the range.
    #[error("the factor (x + {shift:e}) is not positive on the range, which begins at {lo:e}")]
    Factor {
        /// The factor's shift.
        shift: f64,
        /// Lower end of the range.
        lo: f64,
    },
    /// Exponents out of reach.
    #[error("{0}")]
    Power(String),
    /// Coefficients that do not pair up, or that are no numbers.
    #[error("{residues} residues and {poles} poles of a rational function must be as many, and finite")]
    Coefficients {
        /// How many.
        residues: usize,
        /// How many.
        poles: usize,
    },
    /// A division of the poles that leaves none for one side.
    #[error(
        "{wanted} inner poles of a function that has {all} poles: at least one must be left for the level outside"
    )]
    Inner {
        /// As asked for.
        wanted: usize,
        /// Of the function.
        all: usize,
    },
    /// The exchange of extrema did not settle.
    #[error("degree {degree} on [{lo:e}, {hi:e}] did not converge: try another degree")]
    NoConvergence {
        /// The degree.
        degree: usize,
        /// Lower end of the range.
        lo: f64,
        /// Upper end of the range.
        hi: f64,
    },
    /// A pole that a shifted solver cannot take.
    #[error("the best function of degree {degree} has a pole at -({pole:e}), which is not negative")]
    Pole {
        /// The degree.
        degree: usize,
        /// The pole's shift.
        pole: f64,
    },
    /// The error asked for is below what double coefficients give.
    #[error("error {target:.1e} is not reachable: {reason}")]
    Unreachable {
        /// The error asked for.
        target: f64,
        /// What stands in the way.
        reason: String,
    },
}
