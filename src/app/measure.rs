//! Observables as JSON: one object a configuration.

use super::{AppError, assemble, start};
use crate::config::{self, Fermion, Measure};
use crate::field::MatrixField;
use crate::measure::{flow, pion, polyakov, reference_scales};
use crate::operator::{GaugeLoops, smeared};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// Measures what `measure` asks for.
///
/// # Errors
/// A solve failed.
pub fn observables(
    links: &MatrixField,
    measure: &Measure,
    fermions: &[Fermion],
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
        let points =
            flow(links, assemble::flow_kernel(wanted.kernel), wanted.step, wanted.t_max, wanted.every)?;
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
    for (name, params, stout) in assemble::correlators(measure, fermions, links.domain().partition().global)?
    {
        let correlator = match stout {
            Some(stout) => pion(&smeared(links, stout.steps, stout.rho)?, &params)?,
            None => pion(links, &params)?,
        };
        correlators.push(json!({ "name": name, "re": correlator }));
    }
    if !correlators.is_empty() {
        found.insert("correlators".into(), json!(correlators));
    }
    Ok(found)
}

/// `hmc measure --input M.toml [--json] CFG...`: plaquette, rectangle and Polyakov loop always, the rest as
/// the input asks.
///
/// # Errors
/// Wrong input, unreadable files, a solve that failed.
pub fn measure_files(
    input: &Path,
    files: &[PathBuf],
    as_json: bool,
    comm: &super::Ranks,
) -> Result<(), AppError> {
    let loaded = config::load_measure(input)?;
    let (root, input) = (comm.rank() == 0, loaded.input);
    if root {
        loaded.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    }
    let measure = Measure { loops: true, polyakov: true, ..input.measure };
    let threads = start::threads(&input.parallel, &**comm);
    super::run::with_threads(threads, || {
        for file in files {
            let (links, header) = assemble::configuration(file, &input.parallel, 2, comm)?;
            let mut object = Map::new();
            object.insert("file".into(), json!(file.display().to_string()));
            object.insert("trajectory".into(), json!(header.trajectory));
            object.append(&mut observables(&links, &measure, &input.fermions)?);
            if root {
                let object = Value::Object(object);
                println!("{}", if as_json { object.to_string() } else { format!("{object:#}") });
            }
        }
        Ok(())
    })
}
