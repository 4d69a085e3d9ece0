//! Molecular dynamics and the Metropolis step.
//!
//! - `integrator`: a trajectory as a list of moves
//! - `trajectory`: the Hamiltonian, the moves carried out, accept or reject

mod integrator;
mod trajectory;

pub use integrator::{Level, Move, Scheme, plan};
pub use trajectory::{Chain, Energies, HmcError, KickReport, Outcome, Reversibility, TermOutcome};
