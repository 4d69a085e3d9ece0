//! A configuration in host memory, its files, and what is measured on it.

use super::{Session, require_reals};
use crate::action::{Action, GaugeAction};
use crate::app::AppError;
use crate::app::chain::assemble::{self, Layers};
use crate::app::chain::measure::{Line, observables};
use crate::app::commands::files;
use crate::app::output::json;
use crate::comm::agree;
use crate::field::{AlgebraField, Domain, HostLinks, LINK_REALS, MatrixField};
use crate::input;
use crate::io::{self, Format, Header, Meta, Precision};
use crate::lattice::{Extents, Partition, volume};
use crate::measure::Noise;
use crate::operator::GaugeLoops;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The greatest deviation from SU(3) of links that are accepted, as for files.
const UNITARITY: f64 = 1e-4;

/// This rank's box of a configuration.
pub struct Links {
    session: Arc<Session>,
    partition: Partition,
    host: HostLinks,
    /// The file and its header.
    file: Option<(PathBuf, Header)>,
}

/// What is said of links without a file.
#[derive(Serialize)]
struct Described {
    /// x to t.
    extents: Extents,
    /// Mean of Re tr P / 3.
    plaquette: f64,
    /// [`io::links_checksum`].
    links_checksum: String,
}

impl Links {
    /// Reads a configuration of any format.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn read(session: &Arc<Session>, path: &Path) -> Result<Self, AppError> {
        let comm = &*session.comm;
        let header = io::header_on(path, &io::Told::default(), comm)?;
        let partition = session.partition(header.extents)?;
        let (host, header) = session.pool.install(|| io::read_links(path, &partition, comm))?;
        let partition = partition.with_time(header.time);
        session.remember(header.doubts(path));
        let file = Some((path.to_owned(), header));
        Ok(Self { session: Arc::clone(session), partition, host, file })
    }

    /// The links of a program, in the order of [`HostLinks`].
    ///
    /// # Errors
    /// Their number is not that of the box, or they are not in SU(3).
    pub fn new(session: &Arc<Session>, extents: Extents, reals: &[f64]) -> Result<Self, AppError> {
        let partition = session.partition(extents)?;
        let local = partition.local();
        partition.check_sites(0)?;
        require_reals("links", reals.len(), volume(local) * 4 * LINK_REALS)?;
        let host = HostLinks { local, reals: reals.to_vec() };
        let partition = partition.with_time(io::time_boundary(&host, &partition, &*session.comm));
        let new = Self { session: Arc::clone(session), partition, host, file: None };
        let deviation = new.domain(Layers::of_links(1)).and_then(|domain| {
            let mut field = MatrixField::from_host(&domain, &new.host)?;
            Ok(field.unitarity(false)?)
        })?;
        if deviation <= UNITARITY {
            return Ok(new);
        }
        Err(AppError::Refused(format!(
            "links: not in SU(3): the greatest deviation is {deviation:.1e}, {UNITARITY:.0e} is the most"
        )))
    }

    /// Writes them; `format` follows from the ending if it is `None`.
    ///
    /// # Errors
    /// The ending is no format, the path exists and is not to be overwritten, or the file cannot be written.
    pub fn write(&self, path: &Path, format: Option<Format>, overwrite: bool) -> Result<(), AppError> {
        let format = format.map_or_else(|| Format::of_name(path).map_err(AppError::Refused), Ok)?;
        let (comm, session) = (&*self.session.comm, &self.session);
        // A dangling symbolic link also counts as existing.
        let exists = comm.rank() == 0 && !overwrite && path.symlink_metadata().is_ok();
        let refusal = || AppError::Refused(format!("{}: exists already", path.display()));
        agree(comm, if exists { Err(refusal()) } else { Ok(()) })?;
        let header = self.file.as_ref().map(|(_, header)| header);
        let meta = Meta {
            trajectory: header.and_then(|header| header.trajectory),
            plaquette: self.plaquette()?,
            input: header.and_then(|header| header.input.clone()).unwrap_or_default(),
            solvers: header.and_then(|header| header.solvers.clone()),
            logical_name: None,
        };
        let write = || io::write_links(path, format, &self.host, &self.partition, comm, &meta);
        Ok(session.pool.install(write)?)
    }

    /// The session.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The lattice and this rank's box.
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// The reals, as the file or the program gave them.
    pub fn reals(&self) -> &[f64] {
        &self.host.reals
    }

    /// The mean of Re tr P / 3.
    ///
    /// # Errors
    /// The device failed.
    pub fn plaquette(&self) -> Result<f64, AppError> {
        let domain = self.domain(Layers::of_links(1))?;
        Ok(GaugeLoops::traces(&MatrixField::from_host(&domain, &self.host)?)?.plaquette())
    }

    /// [`io::links_checksum`].
    pub fn checksum(&self) -> u64 {
        let (session, partition) = (&self.session, &self.partition);
        session.pool.install(|| io::links_checksum(&self.host, partition, &*session.comm))
    }

    /// One JSON object; for links of a file it is that of `hmc info --json`.
    ///
    /// # Errors
    /// The device failed.
    pub fn info(&self) -> Result<String, AppError> {
        let (plaquette, links_checksum) = (self.plaquette()?, format!("{:016x}", self.checksum()));
        Ok(match &self.file {
            Some((path, header)) => files::described(path, header, plaquette, &links_checksum),
            None => json(&Described { extents: self.partition.global, plaquette, links_checksum }),
        })
    }

    /// The value of the gauge action of a text with `[gauge]`, and its force on every link: `[t][z][y][x][mu][a]`.
    ///
    /// # Errors
    /// Mistakes in the text; the device failed.
    pub fn gauge(&self, text: &str, force: bool) -> Result<(f64, Vec<f64>), AppError> {
        let gauge = self.session.checked(input::parse_gauge(text, "gauge")?);
        let domain = self.domain(Layers::of_links(GaugeLoops::reach(gauge.coefficients[1])))?;
        let links = self.field(&domain)?;
        let mut action = GaugeAction::new(&domain, gauge.beta, gauge.coefficients)?;
        let value = action.value(&links)?.value();
        if !force {
            return Ok((value, Vec::new()));
        }
        let mut field = AlgebraField::new(&domain)?;
        action.add_force(&links, &mut field)?;
        Ok((value, field.to_host()?))
    }

    /// The measurements of a text, as a line of `hmc measure --json` without the file's name.
    ///
    /// # Errors
    /// Mistakes in the text; a solve failed.
    pub fn measure(&self, text: &str) -> Result<String, AppError> {
        let input = self.session.checked(input::parse_measure(text, "measure")?);
        let measure = input.measure.with_loops();
        let trajectory = self.file.as_ref().and_then(|(_, header)| header.trajectory);
        let noise = Noise { seed: input.seed, trajectory: trajectory.unwrap_or(1) };
        let session = &self.session;
        let layers = Layers::of_links(measure.border()).with(&input.fermions);
        session.pool.install(|| {
            let domain =
                assemble::domain(&session.parallel, self.partition.lattice(), layers, &session.comm)?;
            let found = observables(&self.field(&domain)?, &measure, &input.fermions, noise, &|| false)?;
            Ok(json(&Line { file: None, trajectory, observables: found.object() }))
        })
    }

    /// A device for these links.
    pub(super) fn domain(&self, layers: Layers) -> Result<Arc<Domain>, AppError> {
        let session = &self.session;
        let lattice = self.partition.lattice();
        session.pool.install(|| assemble::domain(&session.parallel, lattice, layers, &session.comm))
    }

    /// The links on a device. Those of other programs' files in single precision are made special unitary, as for
    /// measurements.
    pub(super) fn field(&self, domain: &Arc<Domain>) -> Result<MatrixField, AppError> {
        let mut links = MatrixField::from_host(domain, &self.host)?;
        let header = self.file.as_ref().map(|(_, header)| header);
        if header.is_some_and(|h| h.format != Format::Hdf5 && h.precision == Precision::Single) {
            links.unitarity(true)?;
        }
        Ok(links)
    }
}
