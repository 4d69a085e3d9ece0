//! The combinations of precisions that methods have, by their words in an input.

use crate::device::Precision::{self, Double, Half, Single};

/// A name, and the precisions of updates, of the iteration and of the preconditioner.
pub(super) type Mix = (&'static str, [Precision; 3]);

/// The combinations for methods without a preconditioner.
pub(crate) const PLAIN: [Mix; 3] = [
    ("double-single", [Double, Single, Single]),
    ("double", [Double; 3]),
    ("double-half", [Double, Half, Half]),
];

/// The combinations for GCR-DD, in non-increasing order.
pub(super) const SCHWARZ: [Mix; 6] = [
    ("double-single-half", [Double, Single, Half]),
    ("double-half-half", [Double, Half, Half]),
    ("double-single-single", [Double, Single, Single]),
    ("double-double-half", [Double, Double, Half]),
    ("double-double-single", [Double, Double, Single]),
    ("double-double-double", [Double; 3]),
];

/// The combinations for multigrid, whose preconditioner is never in double.
pub(super) const MULTIGRID: [Mix; 5] = [SCHWARZ[0], SCHWARZ[1], SCHWARZ[2], SCHWARZ[3], SCHWARZ[4]];

/// The combinations for all shifts at once: in double, of the common iteration, and of refinements of single shifts, which
/// is also the lowest of the operator where the iteration is in double.
/// The first is the default.
pub(crate) const SHIFTED: [Mix; 5] = [SCHWARZ[4], SCHWARZ[3], PLAIN[1], PLAIN[0], SCHWARZ[0]];

/// The combinations for systems of either kind.
pub(crate) const PLAIN_OR_SHIFTED: [Mix; 6] =
    [PLAIN[0], PLAIN[1], PLAIN[2], SCHWARZ[0], SCHWARZ[3], SCHWARZ[4]];

/// The names of some combinations, as in "a, b or c".
pub(crate) fn names(mixes: &[Mix]) -> String {
    let quoted: Vec<String> = mixes.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let (last, others) = quoted.split_last().expect("a combination");
    format!("{} or {last}", others.join(", "))
}

/// All.
pub(super) const ALL: &[Mix] =
    &[PLAIN[0], PLAIN[1], PLAIN[2], SCHWARZ[0], SCHWARZ[1], SCHWARZ[2], SCHWARZ[3], SCHWARZ[4], SCHWARZ[5]];
