//! What follows from means over configurations: t0 and w0 of E(t), effective masses of correlators, V(R) of Wilson loops, with
//! errors by the Gamma method.
//!
//! A function f of means a_k has on configuration i the value f + sum_k df/da_k (a_k,i - a_k), whose mean is f and whose
//! autocorrelation is that of f (U. Wolff, hep-lat/0306017, section 2). The sum is the derivative of f towards the configuration.

use super::Ensemble;
use super::mean::Mean;
use super::series::numbers;
use crate::math::ChainMean;
use crate::measure::{Reweighting, reference_scales};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashSet;

/// A derivative is the difference over so much of the way to a configuration, to either side.
const STEP: f64 = 1e-3;
/// Points of the flow in a plot.
const FLOW_POINTS: usize = 60;

/// Chains of one ensemble, each with the trajectory after which means begin.
pub(super) type Chains<'a> = [(&'a Ensemble, u64)];

/// A derived quantity at several places.
#[derive(Serialize)]
pub(super) struct Curve {
    /// What it is, and which of several.
    pub title: String,
    pub name: String,
    /// Titles of the axes, with units.
    pub axes: [&'static str; 2],
    /// Place, mean, error.
    pub points: Vec<[f64; 3]>,
}

/// All that follows from means.
#[derive(Default)]
pub(super) struct Derived {
    pub means: Vec<Mean>,
    pub curves: Vec<Curve>,
    /// What a user may want to change.
    pub advice: Vec<String>,
}

impl Derived {
    /// Of chains of one ensemble; `are_streams`: with the goodness of fit of one mean to all.
    pub(super) fn of(chains: &Chains, are_streams: bool) -> Self {
        let mut found = Self::default();
        found.flow(chains, are_streams);
        for (name, read) in correlators(chains) {
            found.correlator(&name, &Rows::of(chains, read));
        }
        found.potential(chains);
        found.reweighted(chains, are_streams);
        found
    }

    /// `<W x> / <W>` of the plaquette and all numbers x beside which a reweighting factor W was measured, and of the product of
    /// all factors, if no two are of the same part of a determinant.
    fn reweighted(&mut self, chains: &Chains, are_streams: bool) {
        let weights = |line: &Value| -> Vec<(String, f64)> {
            let own = |one: &Value| Some((one["name"].as_str()?.to_owned(), one["ln_w"].as_f64()?));
            listed(line, "reweighting").iter().filter_map(own).collect()
        };
        let sign = |line: &Value, name: &str| {
            let own = listed(line, "reweighting").iter().find(|one| one["name"] == name);
            own.and_then(|one| one["sign"].as_f64()).unwrap_or(1.0)
        };
        let values = |line: &Value| -> Vec<(String, f64)> {
            let plaquette = line["plaquette"].as_f64().map(|value| ("plaquette".to_owned(), value));
            let all = numbers(line)
                .into_iter()
                .filter(|number| !["ln W ", "sign "].iter().any(|own| number.name.starts_with(own)));
            plaquette.into_iter().chain(all.map(|number| (number.name, number.value))).collect()
        };
        let of =
            |all: Vec<(String, f64)>, name: &str| all.into_iter().find(|own| own.0 == name).map(|own| own.1);
        let names =
            last(chains, |line| Some(weights(line)).filter(|all| !all.is_empty())).unwrap_or_default();
        let beside =
            last(chains, |line| Some(values(line)).filter(|all| !all.is_empty())).unwrap_or_default();
        let mut products: Vec<Vec<(String, f64)>> = names.iter().map(|one| vec![one.clone()]).collect();
        let measured = chains[0].0.input.measure.of_kind::<Reweighting>();
        let parts: HashSet<(&str, u8)> = measured.iter().map(|one| one.part()).collect();
        let are_now = names.iter().map(|(name, _)| name).eq(measured.iter().map(|one| &one.name));
        if names.len() > 1 && are_now && parts.len() == names.len() {
            products.push(names);
        }
        for factors in products {
            let title = factors.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" and ");
            for (what, _) in &beside {
                let rows = Rows::of(chains, |line| {
                    let mut weight = 1.0;
                    for (name, scale) in &factors {
                        // A common factor of all weights drops out.
                        weight *= sign(line, name) * (of(weights(line), name)? - scale).exp();
                    }
                    Some(vec![weight * of(values(line), what)?, weight])
                });
                let title = format!("{what}, reweighted by {title}");
                self.means.extend(rows.mean(&title, are_streams, |mean| Some(mean[0] / mean[1])));
            }
        }
    }

    fn flow(&mut self, chains: &Chains, are_streams: bool) {
        let Some(times) = last(chains, |line| flow(line, "t")) else { return };
        let same = |line: &Value| flow(line, "t").is_some_and(|own| close(&own, &times));
        let rows = Rows::of(chains, |line| same(line).then(|| flow(line, "e_clover")).flatten());
        let all: Vec<&Vec<f64>> = rows.chains.iter().flatten().collect();
        let Some(end) = times.last().filter(|_| !all.is_empty()) else { return };
        let curve = |energies: &[f64]| -> Vec<(f64, f64)> {
            times.iter().copied().zip(energies.iter().copied()).collect()
        };
        for (place, name) in ["t0", "w0"].into_iter().enumerate() {
            let scale = |energies: &[f64]| <[_; 2]>::from(reference_scales(&curve(energies)))[place];
            let reached = all.iter().filter(|own| scale(own).is_some()).count();
            if let Some(mean) = rows.mean(name, are_streams, scale) {
                self.means.push(Mean { reached: Some(reached), ..mean });
            } else {
                self.advice.push(format!(
                    "No {name}: {} of {} configurations do not reach {name} before t_max = {end}; raise it in [measure.flow].",
                    all.len() - reached,
                    all.len()
                ));
            }
        }
        let apart = times.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        if let Some(t0) = self.means.iter().find(|mean| mean.name == "t0").filter(|t0| 3.0 * apart > t0.mean)
        {
            self.advice.push(format!(
                "Flow times are {apart:.3} apart, t0 is {:.3}: it is interpolated to some 1% only; take a smaller 'every' in [measure.flow].",
                t0.mean
            ));
        }
        let thinned = times.iter().enumerate().step_by(times.len().div_ceil(FLOW_POINTS));
        let points = thinned.filter_map(|(n, t)| rows.point(*t, |energies| Some(t * t * energies[n])));
        let volume: f64 = chains[0].0.input.extents.iter().map(|extent| *extent as f64).product();
        let charges = Rows::of(chains, |line| Some(vec![flow(line, "q")?.last()?.powi(2)]));
        self.means.extend(charges.mean("chi_top = <Q^2> / V", are_streams, |mean| Some(mean[0] / volume)));
        self.add("t^2 E", "", ["t [a^2]", "t^2 E"], points.collect());
    }

    /// C(t) and its effective mass: cosh m = (C(t - 1) + C(t + 1)) / 2 C(t), for cosh and sinh alike.
    fn correlator(&mut self, name: &str, rows: &Rows) {
        let extent = rows.extent();
        let values = (0..extent).filter_map(|t| rows.point(t as f64, |c| Some(c[t])));
        self.add(
            "correlators C(t)",
            name,
            ["t [a]", "|C(t)|"],
            values.map(|[t, c, e]| [t, c.abs(), e]).collect(),
        );
        let mass = |t: usize| {
            move |c: &[f64]| {
                Some((0.5 * (c[t - 1] + c[t + 1]) / c[t]).acosh()).filter(|mass| mass.is_finite())
            }
        };
        let masses = (1..extent / 2).filter_map(|t| rows.point(t as f64, mass(t)));
        let known = masses.filter(|[_, mass, error]| error < mass);
        self.add("effective masses", name, ["t [a]", "m_eff(t) [a^-1]"], known.collect());
    }

    /// V(R) = ln W(R, T) / W(R, T + 1), for each T.
    fn potential(&mut self, chains: &Chains) {
        let Some(sides) = last(chains, |line| Some(loops(line)?.1)) else { return };
        let rows = Rows::of(chains, |line| loops(line).filter(|(_, own)| *own == sides).map(|(row, _)| row));
        for t in 0..sides.saturating_sub(1) {
            let potential = |r: usize| {
                let at = r * sides + t;
                rows.point((r + 1) as f64, move |w| Some((w[at] / w[at + 1]).ln()).filter(|v| v.is_finite()))
            };
            let known = (0..rows.extent() / sides.max(1)).filter_map(potential);
            let known = known.filter(|[_, v, error]| *error < 0.5 * v.abs());
            self.add(
                "static potential",
                &format!("T = {}", t + 1),
                ["R [a]", "V(R) [a^-1]"],
                known.collect(),
            );
        }
    }

    fn add(&mut self, title: &str, name: &str, axes: [&'static str; 2], points: Vec<[f64; 3]>) {
        if !points.is_empty() {
            self.curves.push(Curve { title: title.to_owned(), name: name.to_owned(), axes, points });
        }
    }
}

/// Numbers of equal length on every configuration after the cut, chain by chain.
struct Rows {
    chains: Vec<Vec<Vec<f64>>>,
    /// Trajectories between them; 0 if chains differ.
    spacing: u64,
}

impl Rows {
    /// What `read` finds in lines of measurements. Of several lengths those of the last line count.
    fn of(chains: &Chains, read: impl Fn(&Value) -> Option<Vec<f64>>) -> Self {
        let own = |(chain, from): &(&Ensemble, u64)| -> (Vec<u64>, Vec<Vec<f64>>) {
            let after = chain.measurements.iter().filter(|(trajectory, _)| trajectory > from);
            after.filter_map(|(trajectory, line)| Some((*trajectory, read(line)?))).unzip()
        };
        let (trajectories, mut rows): (Vec<_>, Vec<_>) = chains.iter().map(own).unzip();
        let extent = rows.iter().rev().find_map(|rows| rows.last()).map_or(0, Vec::len);
        rows.iter_mut().for_each(|rows| rows.retain(|row| row.len() == extent));
        let spacing = |own: &Vec<u64>| {
            let mut steps = own.windows(2).map(|pair| pair[1] - pair[0]);
            let first = steps.next()?;
            Some(if steps.all(|step| step == first) { first } else { 1 })
        };
        let mut spacings = trajectories.iter().filter_map(spacing);
        let first = spacings.next().unwrap_or(1);
        Self { chains: rows, spacing: if spacings.all(|other| other == first) { first } else { 0 } }
    }

    /// The length of a row.
    fn extent(&self) -> usize {
        self.chains.iter().flatten().next().map_or(0, Vec::len)
    }

    /// `of` the means, and what it is on each configuration to first order.
    fn values(&self, of: impl Fn(&[f64]) -> Option<f64>) -> Option<(f64, Vec<Vec<f64>>)> {
        let count = self.chains.iter().flatten().count() as f64;
        let mut mean = vec![0.0; self.extent()];
        for row in self.chains.iter().flatten() {
            mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += x / count);
        }
        let value = of(&mean)?;
        let towards = |row: &Vec<f64>, step: f64| {
            let moved: Vec<f64> = mean.iter().zip(row).map(|(mean, x)| mean + step * (x - mean)).collect();
            of(&moved)
        };
        let deviation = |row: &Vec<f64>| match (towards(row, STEP), towards(row, -STEP)) {
            (Some(up), Some(down)) => (up - down) / (2.0 * STEP),
            (Some(up), None) => (up - value) / STEP,
            (None, Some(down)) => (value - down) / STEP,
            (None, None) => f64::NAN,
        };
        let values = self.chains.iter().map(|rows| rows.iter().map(|row| value + deviation(row)).collect());
        Some((value, values.collect()))
    }

    /// `None` where `of` is unknown, or the chains have no common autocorrelation function.
    fn mean(&self, name: &str, are_streams: bool, of: impl Fn(&[f64]) -> Option<f64>) -> Option<Mean> {
        let (value, values) = self.values(of).filter(|_| self.spacing > 0)?;
        let chains: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
        Some(Mean { mean: value, ..Mean::of_chains(name, self.spacing, &chains, are_streams) })
    }

    /// A point of a curve: at `place`, `of` the means with its error.
    fn point(&self, place: f64, of: impl Fn(&[f64]) -> Option<f64>) -> Option<[f64; 3]> {
        let (value, values) = self.values(of)?;
        let chains: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
        Some([place, value, ChainMean::of_replicas(&chains).error])
    }
}

/// What `read` finds in the last line of measurements that has it.
fn last<T>(chains: &Chains, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
    chains
        .iter()
        .rev()
        .find_map(|(chain, _)| chain.measurements.iter().rev().find_map(|(_, line)| read(line)))
}

/// A column of the flow's points.
fn flow(line: &Value, key: &str) -> Option<Vec<f64>> {
    line["flow"].as_array()?.iter().map(|point| point[key].as_f64()).collect()
}

fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9)
}

/// Wilson loops as one row, R by R, and the number of T.
fn loops(line: &Value) -> Option<(Vec<f64>, usize)> {
    let table = line["wilson_loops"].as_array()?;
    let sides = table.first()?.as_array()?.len();
    let row: Option<Vec<f64>> =
        table.iter().filter_map(Value::as_array).flatten().map(Value::as_f64).collect();
    row.filter(|row| sides > 0 && row.len().is_multiple_of(sides)).map(|row| (row, sides))
}

type Read = Box<dyn Fn(&Value) -> Option<Vec<f64>>>;

/// The list of that name in an object; empty without.
fn listed<'a>(line: &'a Value, key: &str) -> &'a [Value] {
    line[key].as_array().map_or(&[], Vec::as_slice)
}

fn named<'a>(list: &'a [Value], name: &str) -> Option<&'a Value> {
    list.iter().find(|one| one["name"] == name)
}

fn reals(one: &Value) -> Option<Vec<f64>> {
    one["re"].as_array()?.iter().map(Value::as_f64).collect()
}

fn is_at_rest(one: &Value) -> bool {
    one["momentum"].as_array().is_some_and(|n| n.iter().all(|n| *n == 0))
}

/// All correlators, and those of mesons at rest, by name.
fn correlators(chains: &Chains) -> Vec<(String, Read)> {
    let newest = |key: &str| -> Vec<Value> {
        let found = last(chains, |line| Some(listed(line, key).to_vec()).filter(|all| !all.is_empty()));
        found.unwrap_or_default()
    };
    let mut found: Vec<(String, Read)> = Vec::new();
    for name in newest("correlators").iter().filter_map(|one| one["name"].as_str().map(str::to_owned)) {
        let own = name.clone();
        found.push((name, Box::new(move |line| reals(named(listed(line, "correlators"), &own)?))));
    }
    for meson in newest("mesons") {
        for one in listed(&meson, "correlators").iter().filter(|one| is_at_rest(one)) {
            let (Some(name), Some(channel)) = (meson["name"].as_str(), one["channel"].as_str()) else {
                continue;
            };
            let (name, channel) = (name.to_owned(), channel.to_owned());
            let title = format!("{name} {channel}");
            let read = move |line: &Value| {
                let all = listed(named(listed(line, "mesons"), &name)?, "correlators");
                reals(all.iter().find(|one| one["channel"] == *channel && is_at_rest(one))?)
            };
            found.push((title, Box::new(read)));
        }
    }
    found
}
