//! The numbers of other programs.

mod ensembles;
mod milc_trajectory;
mod program;
mod rationals;
mod reference;
mod reference_staggered;
