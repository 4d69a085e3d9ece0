//! Hybrid Monte Carlo for lattice QCD, with the same bits on any ranks, threads, lanes and device.
//!
//! A module imports only from lower floors; modules of one floor do not import each other
//! (`tests/floors.rs` enforces it).
//!
//! | floor | module | its one job |
//! |---|---|---|
//! | 0 | [`math`] | rational functions, exact sums, weights and matrices of the fifth dimension |
//! | 1 | [`lattice`] | extents, sites, the rank grid, lanes |
//! | 1 | [`config`] | a walker over a TOML file: typed values, every mistake with its place, suggestions |
//! | 2 | [`comm`] | ranks: messages, exact sums over ranks, agreement on errors |
//! | 2 | [`device`] | memory, kernels and their launches, on a CPU or a GPU |
//! | 3 | [`field`] | links, momenta, spinors; halos; linear algebra; where random numbers are drawn |
//! | 4 | [`operator`] | gauge loops, the clover term, stout smearing; what Dirac operators have in common |
//! | 4 | [`io`] | HDF5 ensembles and checkpoints; ILDG, NERSC, MILC, openQCD |
//! | 5 | [`solver`] | solvers in one precision and several, with shifts; ends of spectra |
//! | 6 | [`action`] | terms of the Hamiltonian: `refresh`, `value`, `force` |
//! | 6 | [`measure`] | observables: loops, gradient flow, correlators, condensates |
//! | 7 | [`hmc`] | momenta, integrators, trajectory, Metropolis |
//! | 7 | [`family`] | the families of quarks: operator, terms, inverse |
//! | 8 | [`input`] | a run's input, checked |
//! | 9 | [`app`] | assembles a run from a checked input; driver, log, bench |

pub mod action;
#[cfg(feature = "hdf5")]
pub mod app;
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
pub mod solver;
