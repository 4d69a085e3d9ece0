//! Observables along a chain, as series with the trajectories to which they belong.

use super::Ensemble;
use serde_json::Value;

/// The values of an observable, in the order of trajectories.
pub(super) struct Series {
    pub name: String,
    /// Of its axis in a plot, with the unit.
    pub axis: String,
    pub trajectories: Vec<u64>,
    pub values: Vec<f64>,
}

impl Series {
    /// The values after trajectory `first`.
    pub(super) fn after(&self, first: u64) -> &[f64] {
        &self.values[self.trajectories.partition_point(|number| *number <= first)..]
    }

    /// Trajectories between values; 1 if they are not equally far from each other.
    pub(super) fn spacing(&self) -> u64 {
        let mut steps = self.trajectories.windows(2).map(|pair| pair[1] - pair[0]);
        let first = steps.next().unwrap_or(1);
        if steps.all(|step| step == first) { first.max(1) } else { 1 }
    }

    /// Its points in a plot.
    pub(super) fn points(&self) -> Vec<(f64, f64)> {
        self.trajectories.iter().map(|n| *n as f64).zip(self.values.iter().copied()).collect()
    }
}

/// A column of the history, without empty fields; `value` is applied to its numbers.
pub(super) fn column(of: &Ensemble, column: &str, name: &str, value: impl Fn(f64) -> f64) -> Series {
    let numbers = of.history.reals("trajectory").into_iter();
    let (trajectories, values) = numbers
        .zip(of.history.reals(column))
        .filter(|(_, x)| !x.is_nan())
        .map(|(n, x)| (n as u64, value(x)))
        .unzip();
    Series { name: name.to_owned(), axis: name.to_owned(), trajectories, values }
}

/// All that was measured and is one number a trajectory.
pub(super) fn measured(of: &Ensemble) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (trajectory, line) in &of.measurements {
        for Number { name, axis, value } in numbers(line).into_iter().filter(|one| one.value.is_finite()) {
            let place = all.iter().position(|series| series.name == name).unwrap_or_else(|| {
                all.push(Series { name, axis, trajectories: Vec::new(), values: Vec::new() });
                all.len() - 1
            });
            all[place].trajectories.push(*trajectory);
            all[place].values.push(value);
        }
    }
    all
}

/// A number of a line of measurements.
pub(super) struct Number {
    pub name: String,
    axis: String,
    pub value: f64,
}

/// The numbers of a line of measurements. t0 and w0 are not among them: those of an ensemble are of the mean of E.
pub(super) fn numbers(line: &Value) -> Vec<Number> {
    let mut found = Vec::new();
    let mut add = |name: String, axis: &str, value: Option<f64>| {
        found.extend(value.map(|value| Number { name, axis: axis.to_owned(), value }));
    };
    add("rectangle".to_owned(), "rectangle", line["rectangle"].as_f64());
    if let (Some(re), Some(im)) = (line["polyakov"][0].as_f64(), line["polyakov"][1].as_f64()) {
        add("|Polyakov loop|".to_owned(), "|P|", Some(re.hypot(im)));
    }
    if let Some(last) = line["flow"].as_array().and_then(|points| points.last()) {
        let (time, q) = (last["t"].as_f64().unwrap_or_default(), last["q"].as_f64());
        let energy = last["e_clover"].as_f64().map(|e| time * time * e);
        add(format!("t^2 E, flow time {time}"), "t^2 E", energy);
        add(format!("topological charge, flow time {time}"), "Q", q);
        add(format!("Q^2, flow time {time}"), "Q^2", q.map(|q| q * q));
    }
    for condensate in line["condensates"].as_array().into_iter().flatten() {
        let mass = condensate["mass"].as_f64().map_or(String::new(), |mass| format!(", mass {mass}"));
        let name = condensate["name"].as_str().unwrap_or_default();
        add(format!("condensate {name}{mass}"), "condensate [a^-3]", condensate["re"].as_f64());
        let twisted = condensate["pseudoscalar"].as_f64();
        add(format!("pseudoscalar condensate {name}"), "condensate [a^-3]", twisted);
    }
    for factor in line["reweighting"].as_array().into_iter().flatten() {
        let name = factor["name"].as_str().unwrap_or_default();
        match factor["sign"].as_f64() {
            Some(sign) => add(format!("sign {name}"), "sign", Some(sign)),
            None => add(format!("ln W {name}"), "ln W", factor["ln_w"].as_f64()),
        }
    }
    for spectrum in line["spectra"].as_array().into_iter().flatten() {
        let name = spectrum["name"].as_str().unwrap_or_default();
        add(format!("gap {name}"), "least |gamma_5 Mhat|", spectrum["least"].as_f64());
    }
    for meson in line["mesons"].as_array().into_iter().flatten() {
        let name = meson["name"].as_str().unwrap_or_default();
        add(format!("PCAC mass {name}"), "m_PCAC [a^-1]", meson["pcac_mean"].as_f64());
    }
    for correlator in line["correlators"].as_array().into_iter().flatten() {
        let name = correlator["name"].as_str().unwrap_or_default();
        let values = correlator["re"].as_array().map_or(&[][..], Vec::as_slice);
        let middle = values.len() / 2;
        let value = values.get(middle).and_then(Value::as_f64);
        add(format!("correlator {name}, t = {middle}"), &format!("C({middle})"), value);
        add(format!("residual mass {name}"), "m_res [a^-1]", correlator["m_res_mean"].as_f64());
    }
    found
}
