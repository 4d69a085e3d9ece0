//! A report as one HTML page that needs nothing else: plots are SVG inside.

use super::Ensemble;
use super::derived::Curve;
use super::digest::{Digest, Tuning, observables};
use super::mean::Mean;
use super::plot::{Line, Marks, Plot, escape};
use super::series::{Series, column};
use crate::app::output::megabytes;
use crate::app::output::{span, with_error};
use crate::app::version::PROGRAM;
use crate::lattice::shape;
use std::fmt::Write;

const STYLE: &str = ":root{color-scheme:light dark;--ink:#222;--paper:#fff;--soft:#666;--rule:#ddd;--block:#f6f6f6;\
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#e69f00;--c5:#56b4e9;--c6:#5a5a5a}\
@media(prefers-color-scheme:dark){:root{--ink:#ddd;--paper:#16181c;--soft:#9aa0a6;--rule:#3a3d42;--block:#22252a;\
--c0:#4aa8e0;--c1:#ff8a3d;--c2:#2fc79b;--c6:#aaa}}\
body{font:15px/1.5 system-ui,sans-serif;max-width:1180px;margin:2em auto;padding:0 1em;color:var(--ink);background:var(--paper)}\
h1{font-size:1.6em;margin-bottom:.2em}h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid var(--rule)}\
h3{font-size:1em;margin:.6em 0 0}.scroll{overflow-x:auto}table{border-collapse:collapse;margin:.6em 0}\
td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid var(--rule);font-variant-numeric:tabular-nums;white-space:nowrap}\
td:first-child,th:first-child{text-align:left}.cards{display:flex;flex-wrap:wrap;gap:.8em;margin:1em 0}\
.card{border:1px solid var(--rule);border-radius:6px;padding:.5em 1em;min-width:7em}.card b{display:block;font-size:1.25em}\
.card span,.note,.legend{color:var(--soft);font-size:.88em}pre{background:var(--block);padding:1em;overflow:auto}\
.advice li{margin:.3em 0}.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,28em),1fr));gap:.4em 1.2em}\
figure{margin:0}.legend{margin:0}.legend span{margin-right:1em;white-space:nowrap}\
.legend i{display:inline-block;width:.7em;height:.7em;border-radius:50%;margin-right:.3em}\
svg{width:100%;height:auto;display:block}svg path{fill:none}svg .t{font:14px system-ui,sans-serif;fill:var(--ink)}\
svg .m{text-anchor:middle}svg .e{text-anchor:end}svg .g{stroke:var(--rule)}svg .shade{fill:var(--soft);opacity:.16}\
svg .tuning{stroke:var(--soft);stroke-dasharray:5 4}svg .mean{stroke:var(--ink);stroke-width:1.2}\
svg .way{opacity:.35}svg .bar{stroke-width:1.5}svg .dots{stroke-linecap:round}\
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}.c5{stroke:var(--c5)}\
.c6{stroke:var(--c6)}.b0{background:var(--c0)}.b1{background:var(--c1)}.b2{background:var(--c2)}.b3{background:var(--c3)}\
.b4{background:var(--c4)}.b5{background:var(--c5)}.b6{background:var(--c6)}\
@media(max-width:600px){svg .t{font-size:19px}}";

/// A number that may be unknown.
pub(super) fn number(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}") } else { "-".to_owned() }
}

/// A number of any size that may be unknown.
pub(super) fn size(value: f64) -> String {
    if value.is_finite() { format!("{value:.2e}") } else { "-".to_owned() }
}

pub(super) fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let row = |cells: &[String], tag: &str| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    let rows: String = rows.into_iter().map(|cells| row(&cells, "td")).collect();
    format!("<div class=\"scroll\"><table>\n{}{rows}</table></div>\n", row(&head, "th"))
}

/// The beginning of a page.
pub(super) fn begin(title: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n"
    )
}

/// The page of an ensemble and its numbers.
pub(super) fn page(ensemble: &Ensemble, digest: &Digest) -> String {
    let mut page = begin(&digest.title());
    page += &head(ensemble, digest);
    page += &advice(&digest.advice);
    page += &means(
        std::iter::once(&digest.exp_minus_delta_h).chain(&digest.observables),
        &match &digest.in_thermalisation {
            Some(state) => format!(
                "The chain is {state}: of all trajectories so far, which are not those of the ensemble."
            ),
            None => format!("Of trajectories after {}. Proposed cut: {}.", digest.from, digest.proposed_cut),
        },
    );
    page += &curves(&digest.curves);
    page += &plots(ensemble, digest);
    page += &dynamics(digest);
    page += &life(ensemble, digest);
    page += &input(ensemble);
    page + "</html>\n"
}

/// The input in force.
pub(super) fn input(ensemble: &Ensemble) -> String {
    let text = ensemble.inputs.last().and_then(|kept| kept.input.as_ref()).map_or("", |input| &input.text);
    format!("<h2>Input in force</h2>\n<pre>{}</pre>\n", escape(text))
}

fn head(ensemble: &Ensemble, digest: &Digest) -> String {
    let running =
        digest.running.as_ref().map_or("no job works on it now".to_owned(), |who| format!("running: {who}"));
    let mut text = format!(
        "<p class=\"note\">{}, tau = {}; {}; written by {PROGRAM}</p>\n<div class=\"cards\">\n",
        shape(digest.extents),
        ensemble.input.hmc.tau,
        escape(&running)
    );
    let mut card = |value: String, name: &str| text += &card(&value, name);
    card(format!("{} / {}", digest.done, digest.planned), "trajectories");
    let plaquette = &digest.observables[0];
    if let Some(state) = &digest.in_thermalisation {
        card(
            format!("{} of {}", digest.done, digest.thermalisation),
            state.split(',').next().unwrap_or(state),
        );
    } else if digest.done > 0 {
        let expected = Some(digest.expected_acceptance).filter(|expected| expected.is_finite());
        let expected = expected.map_or(String::new(), |expected| format!(" (erfc: {expected:.2})"));
        card(number(digest.acceptance, 2), &format!("acceptance{expected}"));
        card(with_error(digest.exp_minus_delta_h.mean, digest.exp_minus_delta_h.error), "<exp(-dH)>");
        let known = digest.observables.iter().filter(|mean| mean.tau_error > 0.0);
        if let Some(slowest) = known.max_by(|a, b| a.tau.total_cmp(&b.tau)) {
            card(with_error(slowest.tau, slowest.tau_error), &format!("greatest tau_int: {}", slowest.name));
        }
    }
    if digest.done > 0 {
        card(with_error(plaquette.mean, plaquette.error), "plaquette");
        card(span(digest.forecast.seconds), "a trajectory");
        if digest.done < digest.planned {
            card(span(digest.forecast.seconds_left), "left");
        }
    }
    card(
        megabytes(digest.forecast.bytes as usize),
        &format!("of links; {} at the end", megabytes(digest.forecast.bytes_at_end as usize)),
    );
    text + "</div>\n"
}

/// A number with its name below.
pub(super) fn card(value: &str, name: &str) -> String {
    format!("<div class=\"card\"><b>{}</b><span>{}</span></div>\n", escape(value), escape(name))
}

/// What a user may want to change, if there is anything.
pub(super) fn advice(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
    format!("<h2>Advice</h2>\n<ul class=\"advice\">\n{items}</ul>\n")
}

/// A table of means; `of` says what they are taken over.
pub(super) fn means<'a>(means: impl Iterator<Item = &'a Mean> + Clone, of: &str) -> String {
    let over_streams = means.clone().any(|mean| mean.q.is_some());
    let row = |mean: &Mean| {
        let alone = mean.reached.filter(|reached| *reached < mean.count);
        let reached = alone.map_or(String::new(), |reached| format!(", {reached} reach it alone"));
        let mut row = vec![
            mean.name.clone(),
            with_error(mean.mean, mean.error),
            if mean.tau_error > 0.0 { with_error(mean.tau, mean.tau_error) } else { "-".to_owned() },
            mean.window.to_string(),
            format!("{} every {}{reached}", mean.count, mean.spacing),
        ];
        row.extend(mean.q.filter(|_| over_streams).map(|q| number(q, 3)));
        row
    };
    let mut head = vec!["", "mean", "tau_int", "window", "values"];
    head.extend(over_streams.then_some("Q"));
    format!(
        "<h2>Means</h2>\n<p class=\"note\">{} Errors and integrated autocorrelation times tau_int (in trajectories) by the Gamma \
         method, U. Wolff, hep-lat/0306017, S = 1.5. t0 and w0 are of the mean of E(t).</p>\n{}",
        escape(of),
        table(&head, means.map(row))
    )
}

fn plots(ensemble: &Ensemble, digest: &Digest) -> String {
    let marks = Marks {
        from: digest.from as f64,
        tunings: digest.tunings.iter().map(|t| t.after as f64).filter(|after| *after > 0.0).collect(),
    };
    let own =
        |column_name: &str, name: &str| Line::new(name, column(ensemble, column_name, name, |x| x).points());
    let of_terms = |title: &str, axis: &str, what: &str| {
        let prefix = format!("{what}_of_");
        let names = ensemble.history.columns.iter().filter_map(|(name, _)| name.strip_prefix(&prefix));
        let lines = names.map(|term| own(&format!("{prefix}{term}"), term)).collect();
        Plot { logarithm: true, ..Plot::along_chain(title, axis, lines) }
    };
    let observable = |series: Series| {
        let mean = digest.observables.iter().find(|mean| mean.name == series.name);
        let level =
            mean.map(|mean| [mean.mean, mean.error]).filter(|level| level.iter().all(|x| x.is_finite()));
        let line = Line::new(&series.name, series.points());
        Plot { level, ..Plot::along_chain(&series.name, &series.axis, vec![line]) }
    };
    let mut plots: Vec<Plot> = observables(ensemble).into_iter().map(observable).collect();
    plots.extend([
        Plot { level: Some([0.0; 2]), ..Plot::along_chain("dH", "dH", vec![own("delta_h", "dH")]) },
        Plot {
            range: Some([0.0, 1.05]),
            ..Plot::along_chain("acceptance so far", "acceptance", vec![acceptance(ensemble, "")])
        },
        of_terms("force of each term, root mean square", "|F|", "force"),
        of_terms("iterations for forces of each term", "iterations", "iterations"),
        of_terms("seconds of each term", "time [s]", "seconds"),
        Plot::along_chain("seconds of a trajectory", "time [s]", vec![own("seconds", "")]),
    ]);
    let note = "Shaded: left out of means, and around a mean its error. Dashed: another tuning.";
    drawn(&format!("<h2>Along the chain</h2>\n<p class=\"note\">{note}</p>\n"), &plots, &marks)
}

/// Plots of what follows from means, those of one title together.
pub(super) fn curves(curves: &[Curve]) -> String {
    let mut plots: Vec<Plot> = Vec::new();
    for curve in curves {
        let line = Line {
            name: curve.name.clone(),
            points: curve.points.iter().map(|[x, y, _]| (*x, *y)).collect(),
            errors: curve.points.iter().map(|[.., error]| *error).collect(),
        };
        match plots.iter_mut().find(|plot| plot.title == curve.title) {
            Some(plot) => plot.lines.push(line),
            None => plots.push(Plot {
                axes: curve.axes.map(str::to_owned),
                logarithm: curve.title.starts_with("correlators"),
                level: (curve.title == "t^2 E").then_some([0.3, 0.0]),
                ..Plot::along_chain(&curve.title, "", vec![line])
            }),
        }
    }
    let head = "<h2>Measured</h2>\n<p class=\"note\">Of the same trajectories as the means, with errors. Across t^2 E: 0.3.</p>\n";
    if plots.is_empty() { String::new() } else { drawn(head, &plots, &Marks::default()) }
}

/// The acceptance of trajectories so far, without those of the thermalisation.
pub(super) fn acceptance(ensemble: &Ensemble, name: &str) -> Line {
    let (mut sum, mut count) = (0.0, 0.0);
    let mut points = column(ensemble, "accepted", name, |x| x).points();
    points.retain(|(trajectory, _)| *trajectory > ensemble.input.run.thermalisation as f64);
    for (_, value) in &mut points {
        (sum, count) = (sum + *value, count + 1.0);
        *value = sum / count;
    }
    Line::new(name, points)
}

/// Plots after a head.
pub(super) fn drawn(head: &str, plots: &[Plot], marks: &Marks) -> String {
    let figures: String = plots.iter().map(|plot| plot.figure(marks)).collect();
    format!("{head}<div class=\"plots\">\n{figures}</div>\n")
}

pub(super) fn dynamics(digest: &Digest) -> String {
    let rows = digest.terms.iter().map(|term| {
        vec![
            term.name.clone(),
            term.level.to_string(),
            size(term.variance_of_ds),
            number(term.force, 4),
            number(term.force_max, 3),
            number(term.iterations, 0),
            number(term.seconds, 3),
        ]
    });
    let head = ["term", "level", "var dS", "|F|", "max |F|", "iterations", "seconds"];
    format!(
        "<h2>Molecular dynamics</h2>\n<p class=\"note\">Of the present tuning, a trajectory.</p>\n{}",
        table(&head, rows)
    )
}

pub(super) fn life(ensemble: &Ensemble, digest: &Digest) -> String {
    let row = |tuning: &Tuning| {
        let changes =
            if tuning.changes.is_empty() { "the beginning".to_owned() } else { tuning.changes.join("; ") };
        vec![
            format!("after {}: {changes}", tuning.after),
            tuning.trajectories.to_string(),
            number(tuning.acceptance, 2),
            size(tuning.delta_h),
            span(tuning.seconds),
        ]
    };
    let mut text = format!(
        "<h2>Tuning</h2>\n{}",
        table(&["", "trajectories", "acceptance", "rms dH", "a trajectory"], digest.tunings.iter().map(row))
    );
    let verified = &digest.verification;
    let _ = write!(
        text,
        "<h2>Verification</h2>\n<p>{} trajectories were walked twice with the same bits. Reversibility was measured {} times",
        verified.walked_twice, verified.reversibility
    );
    if verified.reversibility > 0 {
        let _ = write!(
            text,
            ": at most {:.1e} in a link and {:.1e} in H there and back",
            verified.distance, verified.delta_h
        );
    }
    let _ = write!(
        text,
        ". {} of {} jobs began with a self-test of their devices",
        verified.tested_jobs, verified.jobs
    );
    text += ". Every line of the history and of the measurements has a checksum, every configuration its own.</p>\n";
    if !verified.accepted.is_empty() {
        let _ = writeln!(text, "<p>Options let pass: {}.</p>", escape(&verified.accepted.join(", ")));
    }
    let jobs = ensemble.jobs.iter().map(|job| vec![job.to_string()]);
    text + "<h2>Jobs</h2>\n" + &table(&[""], jobs)
}
