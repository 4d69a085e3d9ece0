//! A checked input as domain, chain and measurements.

use super::{AppError, start, terms};
use crate::comm::Comm;
use crate::config::{self, Fermion, Input, Integrator, Measure, Parallel, Stout};
use crate::field::{Domain, MatrixField, Purpose, RandomAddress};
use crate::hmc::{Chain, Level, Scheme};
use crate::io::{self, Format};
use crate::lattice::{Extents, LaneGrid, shape};
use crate::measure::{CorrelatorParams, FlowKernel};
use crate::operator::GaugeLoops;
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

/// The chain of an input, from `links`.
///
/// # Errors
/// No room, or a rational function that cannot be made.
pub fn chain(input: &Input, links: MatrixField) -> Result<Chain, AppError> {
    let mut all = terms::all(links.domain(), input)?;
    let (mut levels, mut placed) = (Vec::new(), Vec::new());
    for level in &input.hmc.levels {
        let scheme = match level.integrator {
            Integrator::Leapfrog => Scheme::Leapfrog,
            Integrator::Omelyan2 { lambda } => Scheme::Omelyan2 { lambda },
            Integrator::Omelyan4 => Scheme::Omelyan4,
            Integrator::ForceGradient => Scheme::ForceGradient,
        };
        levels.push(Level { scheme, steps: level.steps });
        // Every term is on one level: the input was checked.
        let here = level.terms.iter().filter_map(|name| {
            let at = all.iter().position(|term| term.name() == name)?;
            Some(all.remove(at))
        });
        placed.push(here.collect());
    }
    Ok(Chain::new(links, &levels, placed, input.hmc.tau, input.run.seed)?)
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

/// The correlators that a measurement asks for: name, quark, and how its links are smeared.
///
/// # Errors
/// A source lies outside the lattice.
pub fn correlators(
    measure: &Measure,
    fermions: &[Fermion],
    extents: Extents,
) -> Result<Vec<(String, CorrelatorParams, Option<Stout>)>, AppError> {
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
        let params = CorrelatorParams {
            operator: terms::operator(fermion),
            source: correlator.source,
            residual: correlator.residual,
            max_iterations: fermion.solver.max_iterations,
        };
        all.push((correlator.name.clone(), params, fermion.stout));
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
