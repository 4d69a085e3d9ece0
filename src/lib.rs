//! Hybrid Monte Carlo for lattice QCD, with the same bits on any ranks, threads, lanes and device.
//!
//! The program `hmc` runs input files; this library contains its parts. A quenched chain on this process alone:
//!
//! ```
//! use hmc::prelude::*;
//!
//! let domain = Domain::local([4, 4, 4, 4])?;
//! let gauge = GaugeAction::new(&domain, 6.0, [1.0, 0.0, 0.0])?;
//! let level = Level { scheme: Scheme::Omelyan4, steps: 4 };
//! let links = MatrixField::hot(&domain, 1)?;
//! let mut chain = Chain::new(links, &[level], vec![vec![Box::new(gauge)]], 1.0, 1)?;
//! let Outcome { delta_h, .. } = chain.trajectory(0, true)?;
//! assert!(delta_h.is_finite() && GaugeLoops::traces(&chain.links)?.plaquette() > 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Start with [`prelude`]. A [`Domain`](field::Domain) is a lattice, divided among ranks, on a device; fields belong to
//! it. A term of the Hamiltonian is an [`Action`](action::Action). A [`Chain`](hmc::Chain) runs trajectories with such
//! terms. An [`Observable`](measure::Observable) is measured on its links. `examples/` has more.
//!
//! A module imports only from lower floors; modules on one floor do not import each other (`tests/suite/floors.rs` enforces
//! it).
//!
//! | floor | module | its one job |
//! |---|---|---|
//! | 0 | [`math`] | rational functions, exact sums, weights and matrices of the fifth dimension |
//! | 1 | [`lattice`] | extents, sites, the rank grid, lanes |
//! | 1 | [`config`] | TOML files: typed values, all mistakes with their positions, suggestions |
//! | 2 | [`comm`] | ranks: messages, exact sums over ranks, agreement on errors |
//! | 2 | [`device`] | memory, kernels and their launches, on a CPU or a GPU |
//! | 3 | [`field`] | links, momenta, spinors; halos; linear algebra; addresses of random numbers |
//! | 4 | [`operator`] | gauge loops, the clover term, stout smearing; common parts of Dirac operators |
//! | 4 | [`io`] | HDF5 ensembles and checkpoints; ILDG, NERSC, MILC, openQCD |
//! | 5 | [`solver`] | solvers in one or several precisions, with shifts; ends of spectra |
//! | 6 | [`quark`] | one quark: operator in its precisions, clover term, solver, guesses; its inverse on all sites |
//! | 7 | [`action`] | terms of the Hamiltonian: `refresh`, `value`, `force` |
//! | 7 | [`measure`] | observables: loops, gradient flow, correlators, condensates |
//! | 8 | [`hmc`] | momenta, integrators, trajectory, Metropolis; the choice of steps |
//! | 8 | [`family`] | the families of quarks: operator, terms, inverse |
//! | 9 | [`input`] | a run's input, checked |
//! | 10 | [`app`] | assembles a run from a checked input; driver, log, bench, tune |
//! | 11 | [`capi`] | the interface to C |
//! | 12 | [`prelude`] | what most programs of your own need |

#![warn(unreachable_pub)]

pub mod action;
#[cfg(feature = "hdf5")]
pub mod app;
#[cfg(feature = "hdf5")]
pub mod capi;
pub mod comm;
pub mod config;
pub mod device;
pub mod family;
pub mod field;
pub mod hmc;
pub mod input;
pub mod io;
pub mod lattice;
pub mod math;
pub mod measure;
pub mod operator;
pub mod prelude;
pub mod quark;
pub mod solver;
