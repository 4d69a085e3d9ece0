//! The interface to C: `libhmc.so` and `hmc.h`. `docs/c.md` describes every function.
//!
//! - `border`: pointers and texts of the caller, results in the caller's memory
//! - `fault`: codes, messages, panics
//! - `session`: ranks, threads, device
//! - `links`: configurations
//! - `quark`: operators and solves
//!
//! `hmc.h` follows from the signatures and comments of these files (`tests/suite/capi/header.rs`). Nothing is computed here:
//! functions check what they were given, call [`app`](crate::app), and copy results.

mod border;
mod fault;
mod links;
mod quark;
mod session;

pub use fault::{HMC_FAILED, HMC_FAULT, HMC_NOT_CONVERGED, HMC_OK, HMC_REFUSED, hmc_error, hmc_version};
pub use links::*;
pub use quark::*;
pub use session::*;
