//! A checked input as domain, chain and measurements.

use super::{AppError, start};
use crate::action::{Action, GaugeAction, QuarkParams, TwoFlavour, TwoFlavourParams};
use crate::comm::Comm;
use crate::config::{self, Fermion, Flavours, Input, Integrator, Measure, Method, Parallel, Real, Solver};
use crate::device::Precision;
use crate::field::{Domain, FieldError, MatrixField, Purpose, RandomAddress};
use crate::hmc::{Chain, Level, Scheme};
use crate::io::{self, Format};
use crate::lattice::{Extents, LaneGrid, shape};
use crate::measure::{CorrelatorParams, FlowKernel};
use crate::operator::{GaugeLoops, Schur, WilsonParams};
use std::path::Path;
use std::sync::Arc;

/// The domain of a lattice cut as `parallel` says, whose links reach `border` layers.
///
/// # Errors
/// The device is not there, or has no room.
pub fn domain(
    parallel: &Parallel,
    extents: Extents,
    border: usize,
    comm: &super::Ranks,
) -> Result<Arc<Domain>, AppError> {
    let partition = start::partition(parallel, extents, &**comm)?;
    let device = start::device(parallel, &partition, &**comm)?;
    let cut = std::array::from_fn(|mu| partition.is_cut(mu));
    if LaneGrid::choose(partition.local(), cut, device.lanes()).is_none() {
        let local = shape(partition.local());
        return Err(AppError::Refused(format!("a box of {local} is too small for {} lanes", device.lanes())));
    }
    let halo = start::halo(parallel, &device, &**comm)?;
    Ok(Domain::new(partition, device, Arc::clone(comm), border, halo)?)
}

/// Layers of links that a run needs of its neighbours.
pub fn border(input: &Input) -> usize {
    let measured = if input.measure.loops { 2 } else { 1 };
    let flow = input.measure.flow.is_some_and(|f| f.kernel == config::FlowKernel::Symanzik);
    GaugeLoops::reach(input.gauge.c_rectangle).max(measured).max(if flow { 2 } else { 1 })
}

/// NOT BUILT IN YET: what the input knows of quarks and the terms below do not; struck off as it comes, here
/// alone. A correlator (`measured`) is solved in its own way and of the lightest factor alone.
fn built_in(fermion: &Fermion, measured: bool) -> Result<(), AppError> {
    let Solver { method, precision, delta, link_reals, .. } = &fermion.solver;
    let missing = [
        ("mu", fermion.mu > 0.0),
        ("stout", fermion.stout.is_some()),
        ("flavours = 1", fermion.flavours != Flavours::Two && !measured),
        ("hasenbusch", !fermion.hasenbusch.is_empty() && !measured),
        ("solver.method", *method != Method::Cg && !measured),
        ("solver.precision", precision[1] == Real::Half && !measured),
        ("solver.delta", *delta != 1e-3 && !measured),
        ("solver.link_reals = 8", *link_reals == 8 && !measured),
    ];
    match missing.iter().find(|(_, is)| *is) {
        Some((key, _)) => {
            Err(AppError::Refused(format!("[fermion.{}]: {key} is not built in yet", fermion.name)))
        }
        None => Ok(()),
    }
}

/// The operator of a quark.
pub fn operator(fermion: &Fermion) -> WilsonParams {
    WilsonParams {
        kappa: fermion.kappa,
        mu: 0.0,
        c_sw: fermion.c_sw,
        boundary: fermion.boundary,
        schur: match fermion.schur {
            config::Schur::Asymmetric => Schur::Asymmetric,
            config::Schur::Symmetric => Schur::Symmetric,
        },
    }
}

/// The term of the quark with this number in the input.
fn two_flavour(domain: &Arc<Domain>, fermion: &Fermion, number: usize) -> Result<TwoFlavour, FieldError> {
    let solver = &fermion.solver;
    let params = TwoFlavourParams {
        name: fermion.name.clone(),
        quark: QuarkParams {
            operator: operator(fermion),
            precision: match solver.precision[1] {
                Real::Double => Precision::Double,
                Real::Single | Real::Half => Precision::Single,
            },
            link_reals: solver.link_reals,
            max_iterations: solver.max_iterations,
            guess: solver.guess,
        },
        action_residual: solver.action_residual,
        force_residual: solver.force_residual,
        number: number as u8,
    };
    TwoFlavour::new(domain, params)
}

/// The chain of an input, from `links`.
///
/// # Errors
/// No room, or what is not built in.
pub fn chain(input: &Input, links: MatrixField) -> Result<Chain, AppError> {
    input.fermions.iter().try_for_each(|fermion| built_in(fermion, false))?;
    let domain = Arc::clone(links.domain());
    let (mut levels, mut terms) = (Vec::new(), Vec::new());
    for level in &input.hmc.levels {
        let scheme = match level.integrator {
            Integrator::Leapfrog => Scheme::Leapfrog,
            Integrator::Omelyan2 { lambda } => Scheme::Omelyan2 { lambda },
            Integrator::Omelyan4 => Scheme::Omelyan4,
            Integrator::ForceGradient => Scheme::ForceGradient,
        };
        levels.push(Level { scheme, steps: level.steps });
        let mut here: Vec<Box<dyn Action>> = Vec::new();
        for name in &level.terms {
            match input.fermions.iter().position(|f| f.name == *name) {
                Some(number) => here.push(Box::new(two_flavour(&domain, &input.fermions[number], number)?)),
                None => {
                    let gauge = &input.gauge;
                    let coefficients = [gauge.c_plaquette, gauge.c_rectangle, gauge.c_parallelogram];
                    here.push(Box::new(GaugeAction::new(&domain, gauge.beta, coefficients)?));
                }
            }
        }
        terms.push(here);
    }
    Ok(Chain::new(links, &levels, terms, input.hmc.tau, input.run.seed)?)
}

/// The links before trajectory 0.
///
/// # Errors
/// The file cannot be read or is of another lattice.
pub fn first_links(input: &Input, domain: &Arc<Domain>, comm: &dyn Comm) -> Result<MatrixField, AppError> {
    let mut links = MatrixField::new(domain, 4)?;
    match &input.run.start {
        config::Start::Cold => links.set_host(&crate::field::HostLinks::unit(domain.partition().local()))?,
        config::Start::Hot => {
            links.set_random(RandomAddress {
                seed: input.run.seed,
                trajectory: 0,
                purpose: Purpose::Start,
            })?;
        }
        config::Start::File(path) => {
            let (host, _) = io::read_links(path, domain.partition(), comm)?;
            links.set_host(&host)?;
            links.unitarity(true)?;
        }
    }
    Ok(links)
}

/// A configuration on a domain of its own lattice. Files of single precision are made special unitary,
/// as MILC does on reading.
///
/// # Errors
/// The file cannot be read.
pub fn configuration(
    path: &Path,
    parallel: &Parallel,
    border: usize,
    comm: &super::Ranks,
) -> Result<(MatrixField, io::Header), AppError> {
    let header = io::header(path)?;
    let domain = domain(parallel, header.extents, border, comm)?;
    let (host, header) = io::read_links(path, domain.partition(), &**comm)?;
    let mut links = MatrixField::from_host(&domain, &host)?;
    if header.format != Format::Hdf5 && header.precision == io::Precision::Single {
        links.unitarity(true)?;
    }
    Ok((links, header))
}

/// The correlators that a measurement asks for, by name.
///
/// # Errors
/// A source lies outside the lattice, or what is not built in.
pub fn correlators(
    measure: &Measure,
    fermions: &[Fermion],
    extents: Extents,
) -> Result<Vec<(String, CorrelatorParams)>, AppError> {
    let mut all = Vec::new();
    for correlator in &measure.correlators {
        if (0..4).any(|mu| correlator.source[mu] >= extents[mu]) {
            return Err(AppError::Refused(format!(
                "[measure.correlator.{}]: the source {:?} lies outside the lattice of {}",
                correlator.name,
                correlator.source,
                shape(extents)
            )));
        }
        let Some(fermion) = fermions.iter().find(|f| f.name == correlator.fermion) else { continue };
        built_in(fermion, true)?;
        let params = CorrelatorParams {
            operator: operator(fermion),
            source: correlator.source,
            residual: correlator.residual,
            max_iterations: fermion.solver.max_iterations,
        };
        all.push((correlator.name.clone(), params));
    }
    Ok(all)
}

/// The kernel of a flow.
pub fn flow_kernel(kernel: config::FlowKernel) -> FlowKernel {
    match kernel {
        config::FlowKernel::Wilson => FlowKernel::Wilson,
        config::FlowKernel::Symanzik => FlowKernel::Symanzik,
    }
}
