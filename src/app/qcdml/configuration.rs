//! One configuration in QCDml: its file, its place in the chain, how it was made.

use super::{Qcdml, parameters};
use crate::app::AppError;
use crate::app::chain::jobs::Recorded;
use crate::app::machine::job::utc;
use crate::app::version::PROGRAM;
use crate::input::Input;
use crate::io::Element;
use crate::io::{self, Header, IoError};
use crate::lattice::Extents;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const CONFIGURATION: &str = "http://www.lqcd.org/ildg/QCDml/config2.0";

/// An ILDG file of the chain.
pub(super) struct Configuration {
    number: u64,
    header: Header,
    cksum: u32,
    /// When it was written, in UTC.
    date: String,
}

impl Configuration {
    /// Reads all of the file, which must be of this lattice.
    pub(super) fn read(number: u64, path: &Path, extents: Extents) -> Result<Self, AppError> {
        let (header, cksum) = io::ildg_cksum(path)?;
        if header.extents != extents {
            let (found, expected) = (header.extents, extents);
            return Err(IoError::WrongLattice { path: path.into(), found, expected }.into());
        }
        let malformed = |what: String| IoError::Malformed { path: path.into(), what };
        if header.trajectory != Some(number) {
            return Err(malformed("does not say the trajectory of its name".to_owned()).into());
        }
        if header.logical_name.is_none() || header.plaquette.is_none() {
            return Err(malformed("has no logical name or no plaquette".to_owned()).into());
        }
        let looked = |source| IoError::System { path: path.into(), action: "look at", source };
        let written = fs::metadata(path).and_then(|data| data.modified()).map_err(looked)?;
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |past| past.as_secs());
        Ok(Self { number, header, cksum, date: utc(seconds(written)) })
    }

    fn logical_name(&self) -> &str {
        self.header.logical_name.as_deref().unwrap_or_default()
    }

    /// Whether no grid knows its logical name.
    pub(super) fn is_local(&self) -> bool {
        self.logical_name().starts_with("lfn://hmc/")
    }

    /// `<gaugeConfiguration>`, made by the input in force and one of the chain's jobs.
    pub(super) fn document(&self, told: &Qcdml, input: &Input, jobs: &[Recorded]) -> String {
        let job = jobs.iter().rev().find(|job| job.after.is_some_and(|after| after < self.number));
        let of_job = |value: fn(&Recorded) -> &Option<String>| job.and_then(|job| value(job).clone());
        let program = of_job(|job| &job.program).unwrap_or_else(|| PROGRAM.to_owned());
        let (code, version) = program.split_once(' ').unwrap_or((&program, "unknown"));
        let host = || of_job(|job| &job.host);
        let unknown = || "unknown".to_owned();
        let machine = [
            Element::text("name", told.machine.clone().or_else(host).unwrap_or_else(unknown)),
            Element::text("institution", &told.institution),
            Element::text("machineType", of_job(|job| &job.device).unwrap_or_else(unknown)),
        ];
        let code = [
            Element::text("annotation", "the date is that of the job's start"),
            Element::text("name", code),
            Element::text("version", version),
            Element::text("date", of_job(|job| &job.since).unwrap_or_else(|| self.date.clone())),
        ];
        let record = [
            Element::text("field", "su3gauge"),
            Element::text("crcCheckSum", self.cksum),
            Element::text("avePlaquette", self.header.plaquette.unwrap_or(f64::NAN)),
        ];
        let step = [Element::text("update", self.number), Element::of("record", record)];
        let sequence = [
            Element::text("markovChainURI", &told.uri),
            Element::text("series", told.series.as_deref().or(input.run.stream.as_deref()).unwrap_or("1")),
            Element::of("markovStep", step),
        ];
        let history = Element::of("archiveHistory", [told.event("generate", &self.date)]);
        Element::of(
            "gaugeConfiguration",
            [
                Element::text("dataLFN", self.logical_name()),
                Element::of("management", [history]),
                Element::of("implementation", [Element::of("machine", machine), Element::of("code", code)]),
                Element::of("algorithm", [parameters(input)]),
                Element::text("precision", "double"),
                Element::of("markovSequence", sequence),
            ],
        )
        .document(CONFIGURATION)
    }
}
