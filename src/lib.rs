//! Hybrid Monte Carlo for lattice QCD, with the same bits on any ranks, threads, lanes and device.
//!
//! A module imports only from lower floors; modules of one floor do not import each other
//! (`tests/floors.rs` enforces it).
//!
//! | floor | module | its one job |
//! |---|---|---|
//! | 0 | [`math`] | SU(3) algebra on the host, rational functions, exact sums, the address of a random stream |
//! | 1 | [`lattice`] | extents, sites, parity, the rank grid, lanes |
//! | 2 | [`comm`] | ranks: messages, exact sums over ranks, agreement on errors |
//! | 2 | [`device`] | memory, kernels and their launches, on a CPU or a GPU |
//! | 2 | [`config`] | TOML to a checked input, with every mistake told at once |
//! | 3 | [`field`] | gauge, momentum, spinor and clover fields; halos; linear algebra |
//! | 4 | [`operator`] | Dirac operators, gauge loops, gradient flow |
//! | 4 | [`io`] | HDF5 ensembles and checkpoints; ILDG, NERSC, MILC, openQCD |
//! | 5 | [`solver`] | solvers in one precision and several, with shifts; ends of spectra |
//! | 6 | [`action`] | terms of the Hamiltonian: `refresh`, `value`, `force` |
//! | 6 | [`measure`] | observables |
//! | 7 | [`hmc`] | momenta, integrators, trajectory, Metropolis |
//! | 8 | [`app`] | assembles a run from a checked input; driver, log, bench |

pub mod action;
pub mod app;
pub mod comm;
pub mod config;
pub mod device;
pub mod field;
pub mod hmc;
pub mod io;
pub mod lattice;
pub mod math;
pub mod measure;
pub mod operator;
pub mod solver;
