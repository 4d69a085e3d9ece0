//! Measurements of configurations: in a run, and by `hmc measure`.

use super::assemble::Layers;
use super::report::{complain, json, say};
use super::{AppError, assemble, inputs, start};
use crate::family::Fermion;
use crate::field::MatrixField;
use crate::input;
use crate::measure::{Context, Fermions, Found, Measure, MeasureError, Measured, Noise, QuarkChoice, Stop};
use crate::quark::{HopDerivative, Inverse};
use crate::solver::SolverError;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What was measured on a configuration: a line of `measurements.jsonl`, before its checksum, or of `hmc measure --json`.
#[derive(Serialize)]
pub(super) struct Line {
    /// The configuration, as it was named; only in `hmc measure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Trajectories done; `null` if the file does not say.
    pub trajectory: Option<u64>,
    /// Fields of the line itself, of one observable after the other.
    #[serde(flatten)]
    pub observables: Found,
}

/// The quarks of an input on the links of one configuration.
struct Quarks<'a> {
    links: &'a MatrixField,
    fermions: &'a [Fermion],
}

impl Fermions for Quarks<'_> {
    fn inverse(&mut self, choice: &QuarkChoice) -> Result<Box<dyn Inverse>, MeasureError> {
        assemble::quark(self.links, self.fermions, choice)
    }

    fn derivative(
        &mut self,
        choice: &QuarkChoice,
        order: u32,
    ) -> Result<Box<dyn HopDerivative>, MeasureError> {
        assemble::derivative(self.links, self.fermions, choice, order)
    }
}

/// Makes the measurements of `measure`; `noise` is the key of random sources.
///
/// # Errors
/// A solve failed, or `stop` requested a stop.
pub(super) fn observables(
    links: &MatrixField,
    measure: &Measure,
    fermions: &[Fermion],
    noise: Noise,
    stop: Stop,
) -> Result<Measured, AppError> {
    let mut fermions = Quarks { links, fermions };
    Ok(measure.run(&mut Context { links, fermions: &mut fermions, noise, stop })?)
}

/// `hmc measure --input M.toml [--json] CFG...`: plaquette, rectangle and Polyakov loop, and the measurements of the
/// input. Files that cannot be measured are reported and skipped.
///
/// # Errors
/// The input is wrong, or some files were not measured.
pub fn measure_files(
    input: &Path,
    files: &[PathBuf],
    as_json: bool,
    comm: &super::Ranks,
) -> Result<(), AppError> {
    let (root, input) = (comm.rank() == 0, inputs::load(input, comm, input::parse_measure)?.input);
    let measure = input.measure.with_loops();
    let layers = Layers::of_links(measure.border()).with(&input.fermions);
    let one = |file: &Path, place: u64| -> Result<String, AppError> {
        let (links, header) = assemble::configuration(file, &input.parallel, layers, comm)?;
        let noise = Noise { seed: input.seed, trajectory: header.trajectory.unwrap_or(place) };
        let found = observables(&links, &measure, &input.fermions, noise, &|| false)?;
        if !as_json {
            let number = header.trajectory.map_or_else(|| "-".to_owned(), |number| number.to_string());
            let text = format!("{}\n  {:<16} {number}\n{}", file.display(), "trajectory", found.table());
            return Ok(text.trim_end().to_owned());
        }
        Ok(json(&Line {
            file: Some(file.display().to_string()),
            trajectory: header.trajectory,
            observables: found.object(),
        }))
    };
    let mut failed = 0;
    start::in_pool(&input.parallel, &**comm, || {
        for (file, place) in files.iter().zip(1..) {
            match one(file, place) {
                Ok(text) if root => say(text)?,
                Ok(_) => {}
                // Errors of a single file, which are the same on all ranks.
                Err(
                    error @ (AppError::Io(_)
                    | AppError::Partition(_)
                    | AppError::Measure(MeasureError::Solver(SolverError::NotConverged { .. }))),
                ) => {
                    failed += 1;
                    if root {
                        complain(format_args!("error: {error}"));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })?;
    if failed == 0 { Ok(()) } else { Err(AppError::Files { failed, all: files.len() }) }
}
