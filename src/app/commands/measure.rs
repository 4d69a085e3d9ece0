//! `hmc measure`: observables on configurations.

use crate::app::AppError;
use crate::app::chain::assemble::Layers;
use crate::app::chain::measure::{Line, observables};
use crate::app::chain::{assemble, inputs};
use crate::app::machine::start;
use crate::app::output::{complain, json, say};
use crate::input;
use crate::measure::{MeasureError, Noise};
use crate::solver::SolverError;
use std::path::{Path, PathBuf};

/// `hmc measure --input M.toml [--json] CFG...`: plaquette, rectangle and Polyakov loop, and the measurements of the
/// input. Files that cannot be measured are reported and skipped.
///
/// # Errors
/// The input is wrong, or some files were not measured.
pub fn measure_files(
    input: &Path,
    files: &[PathBuf],
    as_json: bool,
    comm: &crate::app::Ranks,
) -> Result<(), AppError> {
    let (root, input) = (comm.rank() == 0, inputs::load(input, comm, input::parse_measure)?.input);
    let measure = input.measure.with_loops();
    let layers = Layers::of_links(measure.border()).with(&input.fermions);
    let one = |file: &Path, place: u64| -> Result<String, AppError> {
        let (links, header) = assemble::configuration(file, &input.parallel, input.time, layers, comm)?;
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
