//! Makes domain, chain and measurements from a checked input.

use crate::action::{Action, GaugeAction};
use crate::app::AppError;
use crate::app::machine::start;
use crate::app::output::warn;
use crate::comm::Comm;
use crate::family::Fermion;
use crate::field::{Domain, MatrixField, Purpose, RandomAddress};
use crate::hmc::Chain;
use crate::input::{self, Hmc, Input, Parallel};
use crate::io::{self, Format};
use crate::lattice::{Lattice, TimeBoundary};
use crate::measure::{Measure, MeasureError, QuarkChoice};
use crate::operator::GaugeLoops;
use crate::quark::{HopDerivative, Inverse, RootError, TwistedInverse};
use std::path::Path;
use std::sync::Arc;

/// Layers of neighbouring sites that a rank needs.
#[derive(Clone, Copy)]
pub(in crate::app) struct Layers {
    /// Layers kept around links.
    pub border: usize,
    /// The most layers of one neighbour that any field or operator needs.
    pub reach: usize,
}

impl Layers {
    /// The layers for links only.
    pub(in crate::app) fn of_links(border: usize) -> Self {
        Self { border, reach: border }
    }

    /// The layers needed also by the quarks of an input.
    #[must_use]
    pub(in crate::app) fn with(self, fermions: &[Fermion]) -> Self {
        let wider = |layers: Self, fermion: &Fermion| Self {
            border: layers.border.max(fermion.border()),
            reach: layers.reach.max(fermion.reach()),
        };
        fermions.iter().fold(self, wider)
    }
}

/// The domain of a lattice, divided as in `parallel`.
///
/// # Errors
/// The device does not exist or is out of memory; a box is too small.
pub(in crate::app) fn domain(
    parallel: &Parallel,
    lattice: impl Into<Lattice>,
    layers: Layers,
    comm: &crate::app::Ranks,
) -> Result<Arc<Domain>, AppError> {
    let partition = start::partition(parallel, lattice, &**comm)?;
    let Layers { border, reach } = layers;
    let device = start::device(parallel, &partition, reach, &**comm)?;
    start::require_lanes(&partition, &device, reach)?;
    let transports = start::transports(parallel, &device, &**comm)?;
    Ok(Domain::new(partition, device, Arc::clone(comm), border, transports)?)
}

/// Layers of neighbouring sites that a run needs, with these measurements.
pub(in crate::app) fn layers<'a>(input: &Input, measured: impl IntoIterator<Item = &'a Measure>) -> Layers {
    let gauge = GaugeLoops::reach(input.gauge.coefficients[1]);
    let border = measured.into_iter().map(Measure::border).fold(gauge, usize::max);
    Layers::of_links(border).with(&input.fermions)
}

/// All terms of the Hamiltonian: the gauge action, then the terms of quarks in the order of the input.
///
/// # Errors
/// A rational function does not exist, or memory runs out.
pub(super) fn terms(domain: &Arc<Domain>, input: &Input) -> Result<Vec<Box<dyn Action>>, AppError> {
    // Each of them adopts the links before it works.
    let _sharing = domain.share();
    let gauge = &input.gauge;
    let gauge = GaugeAction::new(domain, gauge.beta, gauge.coefficients)?.with_c_g(gauge.c_g);
    let mut terms: Vec<Box<dyn Action>> = vec![Box::new(gauge)];
    let pseudofermions: usize = input.fermions.iter().map(|fermion| fermion.pseudofermions()).sum();
    if pseudofermions > Purpose::PSEUDOFERMIONS {
        let most = Purpose::PSEUDOFERMIONS;
        return Err(AppError::Refused(format!(
            "{pseudofermions} pseudofermions: a run can have {most} at most"
        )));
    }
    // They are numbered consecutively through all terms.
    let mut number = 0;
    for fermion in &input.fermions {
        terms.extend(fermion.terms(domain, number)?);
        number += fermion.pseudofermions() as u8;
    }
    Ok(terms)
}

/// The chain of an input, starting from `links`.
///
/// # Errors
/// A rational function does not exist, or memory runs out.
pub(in crate::app) fn chain(input: &Input, links: MatrixField) -> Result<Chain, AppError> {
    let all = terms(links.domain(), input)?;
    // The input was checked: every term is on exactly one level.
    let Hmc { levels, terms, tau, smd, .. } = &input.hmc;
    let chain = Chain::with_parts(links, levels, all, terms, *tau, input.run.seed)?;
    Ok(match smd {
        Some(smd) => chain.with_smd(*smd)?,
        None => chain,
    })
}

/// The links before trajectory 0.
///
/// # Errors
/// The file cannot be read, or its lattice differs.
pub(super) fn first_links(
    input: &Input,
    domain: &Arc<Domain>,
    comm: &dyn Comm,
) -> Result<MatrixField, AppError> {
    let mut links = MatrixField::new(domain, 4)?;
    match &input.run.start {
        input::Start::Cold => links.set_unit()?,
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
            require_time(path, header.time, domain.partition().time)?;
            links.set_host(&host)?;
            links.end_at_walls()?;
            links.unitarity(true)?;
        }
    }
    Ok(links)
}

/// Refuses a file with another boundary in time.
fn require_time(path: &Path, found: TimeBoundary, expected: TimeBoundary) -> Result<(), AppError> {
    if found == expected {
        return Ok(());
    }
    let path = path.display();
    Err(AppError::Refused(format!("{path}: time is {found}, but {expected} by 'time_boundary' in [lattice]")))
}

/// Warns once about a file without a checksum.
fn warn_of_doubt(path: &Path, header: &io::Header, comm: &dyn Comm) {
    header.doubts(path).iter().filter(|_| comm.rank() == 0).for_each(warn);
}

/// A configuration, on a domain of its own lattice, which ends in `time` if its file does not tell. Links from files in single
/// precision are made special unitary, as in MILC.
///
/// # Errors
/// The file cannot be read.
pub(in crate::app) fn configuration(
    path: &Path,
    parallel: &Parallel,
    time: TimeBoundary,
    layers: Layers,
    comm: &crate::app::Ranks,
) -> Result<(MatrixField, io::Header), AppError> {
    let header = io::header_on(path, &io::Told::default(), &**comm)?;
    let partition = start::partition(parallel, header.extents, &**comm)?.with_time(time);
    let (host, header) = io::read_links(path, &partition, &**comm)?;
    let domain = domain(parallel, partition.with_time(header.time).lattice(), layers, comm)?;
    warn_of_doubt(path, &header, &**comm);
    let mut links = MatrixField::from_host(&domain, &host)?;
    links.end_at_walls()?;
    if header.format != Format::Hdf5 && header.precision == io::Precision::Single {
        links.unitarity(true)?;
    }
    Ok((links, header))
}

/// The quark that a measurement chooses.
///
/// # Errors
/// The clover term cannot be inverted, or memory runs out.
pub(super) fn quark(
    links: &MatrixField,
    fermions: &[Fermion],
    choice: &QuarkChoice,
) -> Result<Box<dyn Inverse>, MeasureError> {
    chosen(fermions, choice).inverse(links, choice.wanted)
}

/// The inverse of its even-odd operator with a twisted mass.
///
/// # Errors
/// As [`quark`].
pub(super) fn twisted(
    links: &MatrixField,
    fermions: &[Fermion],
    choice: &QuarkChoice,
    mu: f64,
) -> Result<Box<dyn TwistedInverse>, MeasureError> {
    let found = chosen(fermions, choice).twisted(links, choice.wanted, mu)?;
    Ok(found.expect("the input was checked"))
}

/// What its determinant lacks.
///
/// # Errors
/// As [`quark`].
pub(super) fn root_error(
    links: &MatrixField,
    fermions: &[Fermion],
    choice: &QuarkChoice,
) -> Result<Box<dyn RootError>, MeasureError> {
    let found = chosen(fermions, choice).root_error(links, choice.wanted)?;
    Ok(found.expect("the input was checked"))
}

/// The derivative of its operator of this order in the chemical potential.
///
/// # Errors
/// Memory runs out.
pub(super) fn derivative(
    links: &MatrixField,
    fermions: &[Fermion],
    choice: &QuarkChoice,
    order: u32,
) -> Result<Box<dyn HopDerivative>, MeasureError> {
    let found = chosen(fermions, choice).derivative(links, choice.wanted, order)?;
    Ok(found.expect("the input was checked"))
}

fn chosen<'a>(fermions: &'a [Fermion], choice: &QuarkChoice) -> &'a Fermion {
    let named = |fermion: &&Fermion| fermion.name() == choice.fermion;
    fermions.iter().find(named).expect("the input was checked")
}
