//! Observables as JSON: one object a configuration.

use super::assemble::Layers;
use super::report::{say, warn};
use super::{AppError, assemble, start};
use crate::field::MatrixField;
use crate::input::{self, Fermion, Measure};
use crate::measure::{
    self, Condensate, MeasureError, Noise, ResidualMass, Stop, condensate, flow, polyakov, reference_scales,
};
use crate::operator::GaugeLoops;
use crate::solver::SolverError;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Measures what `measure` asks for, with random sources by `noise`.
///
/// # Errors
/// A solve failed, or `stop` said so.
pub fn observables(
    links: &MatrixField,
    measure: &Measure,
    fermions: &[Fermion],
    noise: Noise,
    stop: Stop,
) -> Result<Map<String, Value>, AppError> {
    let mut found = Map::new();
    if measure.loops {
        let traces = GaugeLoops::traces(links)?;
        found.insert("plaquette".into(), json!(traces.plaquette()));
        found.insert("plaquette_space".into(), json!(traces.plaquette_space));
        found.insert("plaquette_time".into(), json!(traces.plaquette_time));
        found.insert("rectangle".into(), json!(traces.rectangle));
    }
    if measure.polyakov {
        let line = polyakov(links)?;
        found.insert("polyakov".into(), json!([line.re, line.im]));
    }
    if let Some(wanted) = measure.flow {
        let points = flow(links, wanted.kernel, wanted.step, wanted.t_max, wanted.every, stop)?;
        let (t0, w0) = reference_scales(&points);
        let rows: Vec<Value> = points
            .iter()
            .map(|p| json!({ "t": p.t, "e_plaquette": p.e_plaquette, "e_clover": p.e_clover, "q": p.q }))
            .collect();
        found.insert("flow".into(), json!(rows));
        found.insert("t0".into(), json!(t0));
        found.insert("w0".into(), json!(w0));
    }
    let mut correlators = Vec::new();
    for correlator in &measure.correlators {
        let source = assemble::source(correlator, links.domain().partition().global)?;
        let mut quark = assemble::quark(links, fermions, &correlator.fermion, correlator.wanted)?;
        let found = measure::correlators(&mut *quark, source, stop)?;
        let mut entry = json!({ "name": correlator.name, "re": found.pion });
        if let Some(ResidualMass { ratio, mean }) = found.residual_mass() {
            entry["midpoint"] = json!(found.midpoint);
            entry["m_res"] = json!(ratio);
            entry["m_res_mean"] = json!(mean);
        }
        correlators.push(entry);
    }
    if !correlators.is_empty() {
        found.insert("correlators".into(), json!(correlators));
    }
    let mut condensates = Vec::new();
    for wanted in &measure.condensates {
        let mut quark = assemble::quark(links, fermions, &wanted.fermion, wanted.wanted)?;
        let Condensate { mean, error, even, odd } = condensate(&mut *quark, wanted.sources, noise, stop)?;
        condensates.push(json!({
            "name": wanted.name, "mass": wanted.wanted.mass, "re": mean, "error": error, "even": even, "odd": odd,
            "sources": wanted.sources,
        }));
    }
    if !condensates.is_empty() {
        found.insert("condensates".into(), json!(condensates));
    }
    Ok(found)
}

/// `hmc measure --input M.toml [--json] CFG...`: plaquette, rectangle and Polyakov loop always, the rest as
/// the input asks. A file that cannot be measured is told, and the others follow.
///
/// # Errors
/// Wrong input; some files were not measured.
pub fn measure_files(
    input: &Path,
    files: &[PathBuf],
    as_json: bool,
    comm: &super::Ranks,
) -> Result<(), AppError> {
    let loaded = input::load_measure(input)?;
    let (root, input) = (comm.rank() == 0, loaded.input);
    if root {
        loaded.warnings.iter().for_each(warn);
    }
    let measure = Measure { loops: true, polyakov: true, ..input.measure };
    let threads = start::threads(&input.parallel, &**comm);
    let layers = Layers::of_links(2).with(&input.fermions);
    let one = |file: &Path, place: u64| -> Result<Map<String, Value>, AppError> {
        let (links, header) = assemble::configuration(file, &input.parallel, layers, comm)?;
        let mut object = Map::new();
        object.insert("file".into(), json!(file.display().to_string()));
        object.insert("trajectory".into(), json!(header.trajectory));
        let noise = Noise { seed: input.seed, trajectory: header.trajectory.unwrap_or(place) };
        object.append(&mut observables(&links, &measure, &input.fermions, noise, &|| false)?);
        Ok(object)
    };
    let mut failed = 0;
    start::in_pool(threads, || {
        for (file, place) in files.iter().zip(1..) {
            match one(file, place) {
                Ok(object) if root && as_json => say(Value::Object(object))?,
                Ok(object) if root => say(table(&object).trim_end())?,
                Ok(_) => {}
                // What is one file's own fault, and the same on all ranks.
                Err(
                    error @ (AppError::Io(_)
                    | AppError::Partition(_)
                    | AppError::Measure(MeasureError::Solver(SolverError::NotConverged { .. }))),
                ) => {
                    failed += 1;
                    if root {
                        let _ = writeln!(std::io::stderr(), "error: {error}");
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    })?;
    if failed == 0 { Ok(()) } else { Err(AppError::Files { failed, all: files.len() }) }
}

/// Observables as a person reads them: a line a number, a list in rows below its name.
fn table(object: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (name, value) in object {
        match value {
            Value::Array(rows) if rows.iter().any(Value::is_object) => {
                for row in rows.iter().filter_map(Value::as_object) {
                    let cells: Vec<String> = row.iter().map(|(key, value)| cell(key, value)).collect();
                    text += &format!("  {name:<16} {}\n", cells.join("  "));
                }
            }
            Value::String(file) => text += &format!("{file}\n"),
            _ => text += &format!("  {name:<16} {}\n", number(value)),
        }
    }
    text
}

/// One entry of a row: a list starts lines of its own.
fn cell(key: &str, value: &Value) -> String {
    match value {
        Value::Array(values) => {
            let lines = values.iter().enumerate().map(|(n, x)| format!("\n  {n:>16} {}", number(x)));
            format!("{key}{}", lines.collect::<String>())
        }
        Value::String(text) => text.clone(),
        _ => format!("{key} {}", number(value)),
    }
}

/// A number with the digits that are worth reading; all of them are in the JSON.
fn number(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Array(parts) => parts.iter().map(number).collect::<Vec<_>>().join(" "),
        Value::Number(n) if n.is_f64() => {
            let x = n.as_f64().unwrap_or(f64::NAN);
            if x == 0.0 || (1e-3..1e6).contains(&x.abs()) { format!("{x:.10}") } else { format!("{x:.9e}") }
        }
        _ => value.to_string(),
    }
}
