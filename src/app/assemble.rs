//! A checked input as domain, chain and measurements.

use super::report::warn;
use super::{AppError, domain_wall, rooted, start, terms};
use crate::comm::{Comm, agree};
use crate::family::{REACH, StaggeredParams, StaggeredQuark, WallQuark, WilsonQuark};
use crate::field::{Domain, MatrixField, Purpose, RandomAddress};
use crate::hmc::{Chain, Level, Scheme};
use crate::input::{
    self, Correlator, CorrelatorKind, Fermion, Input, Integrator, Measure, Parallel, Solver, SourceKind,
    StaggeredSolver,
};
use crate::io::{self, Format};
use crate::lattice::{Extents, shape};
use crate::measure::{FlowKernel, Source};
use crate::operator::{GaugeLoops, smeared};
use crate::quark::{Inverse, QuarkParams};
use crate::solver::Settings;
use std::path::Path;
use std::sync::Arc;

/// Layers of its neighbours that a rank takes.
#[derive(Clone, Copy)]
pub struct Layers {
    /// Kept around links.
    pub border: usize,
    /// The most that any field or operator takes of one neighbour.
    pub reach: usize,
}

impl Layers {
    /// Of links alone, or of links and Wilson quarks.
    pub fn of_links(border: usize) -> Self {
        Self { border, reach: border }
    }

    /// The same with the quarks of an input.
    #[must_use]
    pub fn with(self, fermions: &[Fermion]) -> Self {
        let staggered = fermions.iter().any(|fermion| matches!(fermion, Fermion::Staggered(_)));
        if staggered { Self { border: self.border.max(2), reach: self.reach.max(REACH) } } else { self }
    }
}

/// The domain of a lattice cut as `parallel` says.
///
/// # Errors
/// The device is not there, or has no room; a box is too small.
pub fn domain(
    parallel: &Parallel,
    extents: Extents,
    layers: Layers,
    comm: &super::Ranks,
) -> Result<Arc<Domain>, AppError> {
    let partition = start::partition(parallel, extents, &**comm)?;
    let Layers { border, reach } = layers;
    let device = start::device(parallel, &partition, reach, &**comm)?;
    start::require_lanes(&partition, device.lanes(), reach)?;
    let halo = start::halo(parallel, &device, &**comm)?;
    Ok(Domain::new(partition, device, Arc::clone(comm), border, halo)?)
}

/// Layers that a run needs of its neighbours, with these measurements.
pub fn layers<'a>(input: &Input, measured: impl IntoIterator<Item = &'a Measure>) -> Layers {
    let of = |measure: &Measure| {
        let flow = measure.flow.is_some_and(|f| f.kernel == input::FlowKernel::Symanzik);
        if measure.loops || flow { 2 } else { 1 }
    };
    let gauge = GaugeLoops::reach(input.gauge.c_rectangle);
    let border = measured.into_iter().map(of).fold(gauge, usize::max);
    Layers::of_links(border).with(&input.fermions)
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
            Integrator::Omelyan2Position { lambda } => Scheme::Omelyan2Position { lambda },
            Integrator::Omelyan4 => Scheme::Omelyan4,
            Integrator::ForceGradient => Scheme::ForceGradient,
            Integrator::ThreeToOne => Scheme::ThreeToOne,
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
        input::Start::Cold => links.set_host(&crate::field::HostLinks::unit(domain.partition().local()))?,
        input::Start::Hot => {
            links.set_random(RandomAddress {
                seed: input.run.seed,
                trajectory: 0,
                purpose: Purpose::Start,
            })?;
        }
        input::Start::File(path) => {
            let (host, header) = io::read_links(path, domain.partition(), comm)?;
            warn_of_doubt(path, &header, comm);
            links.set_host(&host)?;
            links.unitarity(true)?;
        }
    }
    Ok(links)
}

/// Tells, once, of a file without a checksum.
fn warn_of_doubt(path: &Path, header: &io::Header, comm: &dyn Comm) {
    header.doubt(path).iter().filter(|_| comm.rank() == 0).for_each(warn);
}

/// A configuration on a domain of its own lattice. Files of single precision are made special unitary,
/// as MILC does on reading.
///
/// # Errors
/// The file cannot be read.
pub fn configuration(
    path: &Path,
    parallel: &Parallel,
    layers: Layers,
    comm: &super::Ranks,
) -> Result<(MatrixField, io::Header), AppError> {
    let header = agree(&**comm, io::header(path))?;
    let domain = domain(parallel, header.extents, layers, comm)?;
    let (host, header) = io::read_links(path, domain.partition(), &**comm)?;
    warn_of_doubt(path, &header, &**comm);
    let mut links = MatrixField::from_host(&domain, &host)?;
    if header.format != Format::Hdf5 && header.precision == io::Precision::Single {
        links.unitarity(true)?;
    }
    Ok((links, header))
}

/// Where the source of a correlator is.
///
/// # Errors
/// It lies outside the lattice.
pub fn source(correlator: &Correlator, extents: Extents) -> Result<Source, AppError> {
    let at = correlator.source;
    if (0..4).any(|mu| at[mu] >= extents[mu]) {
        return Err(AppError::Refused(format!(
            "[measure.correlator.{}]: the source {at:?} lies outside the lattice of {}",
            correlator.name,
            shape(extents)
        )));
    }
    Ok(match correlator.kind {
        CorrelatorKind::Staggered { source: SourceKind::CornerWall, .. } => Source::CornerWall(at[3]),
        CorrelatorKind::Staggered { .. } | CorrelatorKind::Wilson | CorrelatorKind::DomainWall { .. } => {
            Source::Point(at)
        }
    })
}

/// The quark that a measurement names; `mass` is that of staggered and domain-wall quarks, the correction of the Naik
/// term that of staggered ones.
///
/// # Errors
/// No room, or a clover term that cannot be inverted.
pub fn quark(
    links: &MatrixField,
    fermions: &[Fermion],
    name: &str,
    (mass, naik_epsilon): (f64, f64),
    residual: f64,
) -> Result<Box<dyn Inverse>, AppError> {
    let fermion = fermions.iter().find(|f| f.name() == name).expect("the input was checked");
    match fermion {
        Fermion::Wilson(fermion) => {
            let params = quark_params(terms::operator(fermion), &fermion.solver);
            Ok(Box::new(match fermion.stout {
                Some(stout) => WilsonQuark::new(&smeared(links, stout.steps, stout.rho)?, &params, residual)?,
                None => WilsonQuark::new(links, &params, residual)?,
            }))
        }
        Fermion::Staggered(fermion) => {
            let (smearing, boundary) = (rooted::smearing(fermion.links), fermion.boundary);
            let StaggeredSolver { precision, delta, long_link_reals, max_iterations, .. } = fermion.solver;
            let solver = Settings { delta, ..Settings::cg(terms::precision(precision[1]), max_iterations) };
            let operator = StaggeredParams { smearing, mass, naik_epsilon, boundary };
            let params = QuarkParams { operator, solver, link_reals: long_link_reals, guess: 0 };
            Ok(Box::new(StaggeredQuark::new(links, &params, residual)?))
        }
        Fermion::DomainWall(fermion) => {
            let params = quark_params(domain_wall::operator(fermion, mass), &fermion.solver);
            Ok(Box::new(match fermion.stout {
                Some(stout) => WallQuark::new(&smeared(links, stout.steps, stout.rho)?, &params, residual)?,
                None => WallQuark::new(links, &params, residual)?,
            }))
        }
    }
}

/// A quark that is solved from zero, as the input's solver has it.
fn quark_params<P>(operator: P, solver: &Solver) -> QuarkParams<P> {
    QuarkParams { operator, solver: terms::settings(solver), link_reals: solver.link_reals, guess: 0 }
}

/// The kernel of a flow.
pub fn flow_kernel(kernel: input::FlowKernel) -> FlowKernel {
    match kernel {
        input::FlowKernel::Wilson => FlowKernel::Wilson,
        input::FlowKernel::Symanzik => FlowKernel::Symanzik,
    }
}
