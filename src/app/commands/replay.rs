//! `hmc replay`: one trajectory from a state, without random numbers and without the Metropolis step.

use super::files::require_new;
use crate::app::chain::assemble;
use crate::app::machine::start;
use crate::app::output::{json, say, shown, warn};
use crate::app::{AppError, Ranks};
use crate::comm::agree;
use crate::field::{FieldError, MatrixField};
use crate::hmc::{Chain, Energies};
use crate::input;
use crate::io::{self, Place, State};
use crate::lattice::{shape, volume};
use crate::math::ExactSum;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};

/// The output file for the state after a trajectory.
pub struct Out {
    /// The file.
    pub path: PathBuf,
    /// Whether an existing file may be replaced.
    pub force: bool,
}

/// `hmc replay [--json] [--out FILE [--force]] STATE`: the energies before and after, and dH. Writes the new state to
/// `out`.
///
/// The grid of the stored input is used if it has the current number of ranks.
///
/// # Errors
/// The state cannot be read, its input is wrong, `out` exists already, or a term fails.
pub fn replay(path: &Path, out: Option<&Out>, as_json: bool, comm: &Ranks) -> Result<(), AppError> {
    if let Some(Out { path, force }) = out {
        agree(&**comm, if comm.rank() == 0 { require_new(path, *force) } else { Ok(()) })?;
    }
    let text = agree(&**comm, io::state_input(path))?;
    let loaded = input::parse_stored(&text, &format!("{} (input)", path.display()))?;
    let root = comm.rank() == 0;
    if root {
        loaded.warnings.iter().for_each(warn);
    }
    let mut input = loaded.input;
    if let Some((term, _)) = input.open_choices().first() {
        return Err(AppError::Refused(format!(
            "{}: the method of term '{term}' is \"auto\", and a state does not say which was chosen: name it in the state's \
             input",
            path.display()
        )));
    }
    if input.parallel.grid.is_some_and(|grid| volume(grid) != comm.size()) {
        input.parallel.grid = None;
    }
    start::in_pool(&input.parallel, &**comm, || {
        let domain =
            assemble::domain(&input.parallel, input.lattice(), assemble::layers(&input, None), comm)?;
        let mut chain = assemble::chain(&input, MatrixField::new(&domain, 4)?)?;
        let state = io::read_state(path, domain.partition(), &**comm, &places(&mut chain))?;
        set_state(&mut chain, &state)?;
        let [before, after] = chain.replay().map_err(AppError::Replay)?;
        if let Some(out) = out {
            io::write_state(&out.path, &state_of(&mut chain, text)?, domain.partition(), &**comm)?;
        }
        if root && as_json {
            say(json(&replayed(path, &before, &after)))?;
        } else if root {
            say(format_args!("{}: {}, tau {}", path.display(), shape(input.extents), input.hmc.tau))?;
            say(table(&before, &after).trim_end())?;
        }
        Ok(())
    })
}

/// The current state of a chain. `input` is the text of its run's input.
pub fn state_of(chain: &mut Chain, input: String) -> Result<State, FieldError> {
    let (links, momenta) = (chain.links.to_host()?, chain.momenta.to_matrices()?);
    let sites = volume(links.local);
    let places = places(chain);
    let fields = chain.pseudofermions().into_iter().flat_map(|(_, fields)| fields);
    let pseudofermions = places.into_iter().zip(fields).map(|(place, pseudofermion)| {
        let mut reals = vec![0.0; sites * place.site_reals()];
        pseudofermion.field.write_host(place.parity, &mut reals)?;
        let reals = exchanged(&reals, [place.slices, sites], place.slice_reals);
        Ok((place, reals))
    });
    let pseudofermions = pseudofermions.collect::<Result<_, FieldError>>()?;
    Ok(State { input, links, momenta, pseudofermions })
}

/// Sets a chain to a state, whose pseudofermions must be those of the chain's terms.
pub fn set_state(chain: &mut Chain, state: &State) -> Result<(), FieldError> {
    chain.links.set_host(&state.links)?;
    chain.momenta.set_matrices(&state.momenta)?;
    let fields = chain.pseudofermions().into_iter().flat_map(|(_, fields)| fields);
    fields.zip(&state.pseudofermions).try_for_each(|(pseudofermion, (place, reals))| {
        let sites = reals.len() / place.site_reals();
        pseudofermion
            .field
            .read_host(place.parity, &exchanged(reals, [sites, place.slices], place.slice_reals))
    })
}

/// Exchanges rows and columns of `shape`, with `entry` reals per entry. In files, all slices of a site are together; in
/// fields, all sites of a slice.
fn exchanged(reals: &[f64], [rows, columns]: [usize; 2], entry: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(reals.len());
    for column in 0..columns {
        for row in 0..rows {
            out.extend_from_slice(&reals[(row * columns + column) * entry..][..entry]);
        }
    }
    out
}

/// The pseudofermions of a chain, in the order of its terms.
pub fn places(chain: &mut Chain) -> Vec<Place> {
    let mut places = Vec::new();
    for (term, fields) in chain.pseudofermions() {
        places.extend(fields.iter().enumerate().map(|(number, pseudofermion)| Place {
            term: term.clone(),
            number,
            parity: pseudofermion.parity,
            slice_reals: pseudofermion.field.kind().reals(),
            slices: pseudofermion.field.kind().slices(),
        }));
    }
    places
}

/// The terms of quarks.
fn quarks(energies: &Energies) -> impl Iterator<Item = &(String, ExactSum)> {
    energies.terms.iter().filter(|(name, _)| name != "gauge")
}

/// g, h, the sum of all f, H.
fn sums(energies: &Energies) -> [ExactSum; 4] {
    let sum = |values: &mut dyn Iterator<Item = &(String, ExactSum)>| {
        values.fold(ExactSum::default(), |sum, (_, value)| sum + *value)
    };
    let f = sum(&mut quarks(energies));
    let g = sum(&mut energies.terms.iter().filter(|(name, _)| name == "gauge"));
    [g, energies.momenta, f, energies.total()]
}

/// Values before, after, and their exact difference.
type Row = [f64; 3];

fn row(before: ExactSum, after: ExactSum) -> Row {
    [before, after, after - before].map(ExactSum::value)
}

/// The rows of g, h, f and H, and of each term of quarks by its name.
fn rows(before: &Energies, after: &Energies) -> ([Row; 4], Vec<(String, Row)>) {
    let (sums_before, sums_after) = (sums(before), sums(after));
    let terms = quarks(before).zip(quarks(after));
    (
        std::array::from_fn(|n| row(sums_before[n], sums_after[n])),
        terms.map(|((name, before), (_, after))| (name.clone(), row(*before, *after))).collect(),
    )
}

/// What `hmc replay --json` prints.
#[derive(Serialize)]
struct Replayed<'a> {
    /// The state, as it was named.
    #[serde(serialize_with = "shown")]
    file: std::path::Display<'a>,
    /// Before the trajectory.
    before: Sums,
    /// After it.
    after: Sums,
    /// After less before: exact sums, rounded once.
    change: Sums,
    /// The change of H.
    delta_h: f64,
}

/// The parts of H.
#[derive(Serialize)]
struct Sums {
    /// The gauge action.
    g: f64,
    /// sum tr P^2.
    h: f64,
    /// The terms of quarks by their names, in the order of the Hamiltonian.
    #[serde(serialize_with = "by_name")]
    f: Vec<(String, f64)>,
    /// Their sum.
    f_sum: f64,
    /// H.
    total: f64,
}

/// An object with these fields in this order.
fn by_name<S: Serializer>(fields: &[(String, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(fields.iter().map(|(name, value)| (name, value)))
}

fn replayed<'a>(path: &'a Path, before: &Energies, after: &Energies) -> Replayed<'a> {
    let ([g, h, f, total], terms) = rows(before, after);
    let column = |n: usize| Sums {
        g: g[n],
        h: h[n],
        f: terms.iter().map(|(name, row)| (name.clone(), row[n])).collect(),
        f_sum: f[n],
        total: total[n],
    };
    Replayed {
        file: path.display(),
        before: column(0),
        after: column(1),
        change: column(2),
        delta_h: total[2],
    }
}

fn table(before: &Energies, after: &Energies) -> String {
    let ([g, h, f, total], terms) = rows(before, after);
    let line = |name: &str, row: Row| {
        let [before, after, change] = row;
        format!("{name:<16} {before:>24.15e} {after:>24.15e} {change:>24.15e}\n")
    };
    let mut text = format!("{:<16} {:>24} {:>24} {:>24}\n", "", "before", "after", "change");
    text += &(line("g", g) + &line("h", h));
    for (name, row) in &terms {
        text += &line(&format!("f {name}"), *row);
    }
    text + &line("f", f) + &line("H", total) + &format!("dH {:e}\n", total[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_has_its_fields_in_order_and_null_for_nan() {
        let energies = |momenta: f64, terms: [f64; 3]| Energies {
            momenta: std::iter::once(momenta).collect(),
            terms: ["strange", "gauge", "light"]
                .iter()
                .zip(terms)
                .map(|(name, value)| ((*name).to_owned(), std::iter::once(value).collect()))
                .collect(),
        };
        let (before, after) = (energies(2.0, [0.25, 1.5, 0.1]), energies(3.0, [0.5, 1024.5, f64::NAN]));
        let text = json(&replayed(Path::new("a \"b\".h5"), &before, &after));
        let expected = concat!(
            r#"{"file":"a \"b\".h5","#,
            r#""before":{"g":1.5,"h":2.0,"f":{"strange":0.25,"light":0.1},"f_sum":0.35,"total":3.85},"#,
            r#""after":{"g":1024.5,"h":3.0,"f":{"strange":0.5,"light":null},"f_sum":null,"total":null},"#,
            r#""change":{"g":1023.0,"h":1.0,"f":{"strange":0.25,"light":null},"f_sum":null,"total":null},"#,
            r#""delta_h":null}"#
        );
        assert_eq!(text, expected);
    }
}
