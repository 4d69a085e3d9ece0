//! Molecular dynamics and the Metropolis step.
//!
//! - `integrator`: a trajectory as a list of moves
//! - `outcome`: what a trajectory reports
//! - `smd`: trajectories of cycles, between which momenta and pseudofermions are refreshed in part
//! - `trajectory`: the Hamiltonian, the moves carried out, accept or reject
//! - `tuning`: what dH and which time to expect of steps and schemes, from trajectories with others

mod integrator;
mod outcome;
mod smd;
mod trajectory;
mod tuning;

pub use integrator::{Level, Move, Scheme, plan};
pub use outcome::{KickReport, Outcome, TermOutcome};
pub use smd::Smd;
pub use trajectory::{Chain, Energies, HmcError, Reversibility};
pub use tuning::{Expected, Model, Trial, acceptance, forces};
