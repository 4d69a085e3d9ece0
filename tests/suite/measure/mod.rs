//! Observables.

mod domain_wall;
mod mesons;
mod run;
mod staggered;
mod wilson_loops;
