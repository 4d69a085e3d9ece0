//! Algebra on the host, without lattice or files.
//!
//! - `exact_sum`: sums of doubles that do not depend on their order

mod exact_sum;

pub use exact_sum::ExactSum;
