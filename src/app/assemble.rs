//! A checked input as domain, chain and measurements.

use super::report::warn;
use super::{AppError, domain_wall, rooted, start, terms};
use crate::comm::{Comm, agree};
use crate::family::{REACH, StaggeredParams, StaggeredQuark, WallQuark, WilsonQuark};
use crate::field::{Domain, MatrixField, Purpose, RandomAddress};
use crate::hmc::{Chain, Level, Scheme};
use crate::input::{self, Fermion, Input, Integrator, Parallel};
use crate::io::{self, Format};
use crate::lattice::Extents;
use crate::measure::{Measure, MeasureError, Quark, QuarkChoice};
use crate::operator::{GaugeLoops, smeared};
use crate::solver::Params;
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
    let gauge = GaugeLoops::reach(input.gauge.c_rectangle);
    let border = measured.into_iter().map(Measure::border).fold(gauge, usize::max);
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

/// The quark that a measurement asks for.
///
/// # Errors
/// No room, or a clover term that cannot be inverted.
pub fn quark(
    links: &MatrixField,
    fermions: &[Fermion],
    choice: &QuarkChoice,
) -> Result<Box<dyn Quark>, MeasureError> {
    let QuarkChoice { fermion: name, mass, naik_epsilon, residual } = choice;
    let (mass, naik_epsilon, residual) = (mass.unwrap_or_default(), *naik_epsilon, *residual);
    let fermion = fermions.iter().find(|f| f.name() == name).expect("the input was checked");
    match fermion {
        Fermion::Wilson(fermion) => {
            let wanted = Params { residual, max_iterations: fermion.solver.max_iterations };
            let operator = terms::operator(fermion);
            Ok(Box::new(match fermion.stout {
                Some(stout) => WilsonQuark::new(&smeared(links, stout.steps, stout.rho)?, operator, wanted)?,
                None => WilsonQuark::new(links, operator, wanted)?,
            }))
        }
        Fermion::Staggered(fermion) => {
            let smearing = rooted::smearing(fermion.links);
            let params = StaggeredParams { smearing, mass, naik_epsilon, boundary: fermion.boundary };
            let wanted = Params { residual, max_iterations: fermion.solver.max_iterations };
            Ok(Box::new(StaggeredQuark::new(links, params, wanted)?))
        }
        Fermion::DomainWall(fermion) => {
            let wanted = Params { residual, max_iterations: fermion.solver.max_iterations };
            let operator = domain_wall::operator(fermion, mass);
            Ok(Box::new(match fermion.stout {
                Some(stout) => WallQuark::new(&smeared(links, stout.steps, stout.rho)?, &operator, wanted)?,
                None => WallQuark::new(links, &operator, wanted)?,
            }))
        }
    }
}
