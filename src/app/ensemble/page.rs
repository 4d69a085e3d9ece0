//! A report as one HTML page that needs nothing else: plots are SVG inside.

use super::Ensemble;
use super::digest::{Digest, Tuning, observables};
use super::mean::Mean;
use super::plot::{Line, Marks, plot};
use super::series::column;
use crate::app::plan::megabytes;
use crate::app::report::{span, with_error};
use crate::app::version::PROGRAM;
use crate::lattice::shape;
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:940px;margin:2em auto;padding:0 1em;color:#222;background:#fff}\
h1{font-size:1.6em;margin-bottom:.2em}h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid #ddd}\
h3{font-size:1em;margin:1.2em 0 0}table{border-collapse:collapse;margin:.6em 0}\
td,th{padding:.2em .8em;text-align:right;border-bottom:1px solid #eee;font-variant-numeric:tabular-nums}\
td:first-child,th:first-child{text-align:left}.cards{display:flex;flex-wrap:wrap;gap:.8em;margin:1em 0}\
.card{border:1px solid #ddd;border-radius:6px;padding:.5em 1em;min-width:7em}.card b{display:block;font-size:1.25em}\
.card span,.note{color:#666;font-size:.88em}svg{max-width:100%;height:auto}pre{background:#f6f6f6;padding:1em;overflow:auto}\
.advice li{margin:.3em 0}";

/// Text in HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

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
    format!("<table>\n{}{rows}</table>\n", row(&head, "th"))
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
        &format!("Of trajectories after {}. Proposed cut: {}.", digest.from, digest.proposed_cut),
    );
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
    card(
        number(digest.acceptance, 2),
        &format!("acceptance (erfc: {})", number(digest.expected_acceptance, 2)),
    );
    card(with_error(digest.exp_minus_delta_h.mean, digest.exp_minus_delta_h.error), "<exp(-dH)>");
    let plaquette = &digest.observables[0];
    card(with_error(plaquette.mean, plaquette.error), "plaquette");
    let slowest =
        digest.observables.iter().filter(|mean| mean.tau.is_finite()).max_by(|a, b| a.tau.total_cmp(&b.tau));
    if let Some(slowest) = slowest {
        card(with_error(slowest.tau, slowest.tau_error), &format!("greatest tau_int: {}", slowest.name));
    }
    card(span(digest.forecast.seconds), "a trajectory");
    card(span(digest.forecast.seconds_left), "left");
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
        let mut row = vec![
            mean.name.clone(),
            with_error(mean.mean, mean.error),
            if mean.tau.is_finite() { with_error(mean.tau, mean.tau_error) } else { "-".to_owned() },
            mean.window.to_string(),
            format!("{} every {}", mean.count, mean.spacing),
        ];
        row.extend(mean.q.filter(|_| over_streams).map(|q| number(q, 3)));
        row
    };
    let mut head = vec!["", "mean", "tau_int", "window", "values"];
    head.extend(over_streams.then_some("Q"));
    format!(
        "<h2>Means</h2>\n<p class=\"note\">{} Errors and integrated autocorrelation times tau_int (in trajectories) by the Gamma \
         method, U. Wolff, hep-lat/0306017, S = 1.5.</p>\n{}",
        escape(of),
        table(&head, means.map(row))
    )
}

fn plots(ensemble: &Ensemble, digest: &Digest) -> String {
    let marks = Marks {
        from: digest.from as f64,
        tunings: digest.tunings.iter().map(|t| t.after as f64).filter(|after| *after > 0.0).collect(),
    };
    let own = |column_name: &str, name: &str| Line {
        name: name.to_owned(),
        points: column(ensemble, column_name, name, |x| x).points(),
    };
    let of_terms = |what: &str| -> Vec<Line> {
        let prefix = format!("{what}_of_");
        let names = ensemble.history.columns.iter().filter_map(|(name, _)| name.strip_prefix(&prefix));
        names.map(|term| own(&format!("{prefix}{term}"), term)).collect()
    };
    let mut groups: Vec<(String, Vec<Line>, bool)> = observables(ensemble)
        .into_iter()
        .map(|series| (series.name.clone(), vec![Line { points: series.points(), name: series.name }], false))
        .collect();
    groups.extend([
        ("dH".to_owned(), vec![own("delta_h", "dH")], false),
        ("acceptance so far".to_owned(), vec![acceptance(ensemble, "")], false),
        ("force of each term, root mean square".to_owned(), of_terms("force"), true),
        ("iterations for forces of each term".to_owned(), of_terms("iterations"), true),
        ("seconds of each term".to_owned(), of_terms("seconds"), true),
        ("seconds of a trajectory".to_owned(), vec![own("seconds", "")], false),
    ]);
    let note = "Shaded: left out of means. Dashed: another tuning.";
    drawn(&format!("<h2>Along the chain</h2>\n<p class=\"note\">{note}</p>\n"), groups, &marks)
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
    Line { name: name.to_owned(), points }
}

/// Plots with a title each, after a head: lines, and whether they may be logarithmic.
pub(super) fn drawn(head: &str, groups: Vec<(String, Vec<Line>, bool)>, marks: &Marks) -> String {
    let mut text = head.to_owned();
    for (title, lines, logarithm) in groups {
        let drawn = plot(&lines, marks, logarithm);
        if !drawn.is_empty() {
            let _ = write!(text, "<h3>{}</h3>\n{drawn}\n", escape(&title));
        }
    }
    text
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
