//! A report over all streams of an ensemble as one HTML page.

use super::digest::{Digest, observables};
use super::merged::{Member, Merged};
use super::page::{
    acceptance, advice, begin, card, drawn, dynamics, escape, input, life, means, number, table,
};
use super::plot::{Line, Marks};
use super::series::column;
use crate::app::report::{span, with_error};
use crate::app::version::PROGRAM;
use crate::lattice::shape;
use std::fmt::Write;

/// The page of the streams and their numbers.
pub(super) fn page(members: &[Member], merged: &Merged) -> String {
    let mut page = begin(&merged.name);
    page += &head(merged);
    page += &advice(&merged.advice);
    page += &means(
        merged.means(),
        "Over all streams, of each the trajectories after its own cut. Q: the probability that means of streams of one distribution \
         scatter more than these.",
    );
    page += &each(merged);
    page += &plots(members, merged);
    for (member, digest) in members.iter().zip(&merged.streams) {
        let _ = writeln!(page, "<h1>Stream {}</h1>", escape(&member.name));
        page += &advice(&digest.advice);
        page += &dynamics(digest);
        page += &life(&member.chain, digest);
        page += &input(&member.chain);
    }
    page + "</html>\n"
}

fn head(merged: &Merged) -> String {
    let running = merged.streams.iter().filter(|digest| digest.running.is_some()).count();
    let mut text = format!(
        "<p class=\"note\">{}; {} of {} streams are running; written by {PROGRAM}</p>\n<div class=\"cards\">\n",
        shape(merged.extents),
        running,
        merged.streams.len(),
    );
    text += &card(&format!("{} / {}", merged.done, merged.planned), "trajectories of all streams");
    text += &card(&number(merged.acceptance, 2), "acceptance");
    for mean in merged.means().filter(|mean| ["<exp(-dH)>", "plaquette"].contains(&mean.name.as_str())) {
        text += &card(&with_error(mean.mean, mean.error), &mean.name);
    }
    let timed = merged.observables.iter().filter(|mean| mean.tau.is_finite());
    if let Some(slowest) = timed.max_by(|a, b| a.tau.total_cmp(&b.tau)) {
        text += &card(
            &with_error(slowest.tau, slowest.tau_error),
            &format!("greatest tau_int: {}", slowest.name),
        );
    }
    let worst = merged.means().filter_map(|mean| Some((mean.q.filter(|q| q.is_finite())?, &mean.name)));
    if let Some((q, name)) = worst.min_by(|a, b| a.0.total_cmp(&b.0)) {
        text += &card(&number(q, 3), &format!("least Q: {name}"));
    }
    text + "</div>\n"
}

/// A row for each stream, with its own mean of the plaquette.
fn each(merged: &Merged) -> String {
    let row = |digest: &Digest| {
        let plaquette = &digest.observables[0];
        vec![
            digest.stream.clone().unwrap_or_default(),
            format!("{} / {}", digest.done, digest.planned),
            digest.from.to_string(),
            number(digest.acceptance, 2),
            with_error(digest.exp_minus_delta_h.mean, digest.exp_minus_delta_h.error),
            with_error(plaquette.mean, plaquette.error),
            number(plaquette.tau, 2),
            span(digest.forecast.seconds),
        ]
    };
    let head =
        ["", "trajectories", "cut", "acceptance", "<exp(-dH)>", "plaquette", "its tau_int", "a trajectory"];
    format!("<h2>Streams</h2>\n{}", table(&head, merged.streams.iter().map(row)))
}

/// The histories of all streams in one plot of each observable.
fn plots(members: &[Member], merged: &Merged) -> String {
    let marks = Marks {
        from: merged.streams.iter().map(|digest| digest.from).max().unwrap_or(0) as f64,
        tunings: Vec::new(),
    };
    let mut groups: Vec<(String, Vec<Line>, bool)> = Vec::new();
    for member in members {
        for series in observables(&member.chain) {
            let line = Line { name: member.name.clone(), points: series.points() };
            match groups.iter_mut().find(|(title, ..)| *title == series.name) {
                Some((_, lines, _)) => lines.push(line),
                None => groups.push((series.name, vec![line], false)),
            }
        }
    }
    let of_all = |name: &str| -> Vec<Line> {
        let line = |member: &Member| Line {
            name: member.name.clone(),
            points: column(&member.chain, name, name, |x| x).points(),
        };
        members.iter().map(line).collect()
    };
    groups.extend([
        ("dH".to_owned(), of_all("delta_h"), false),
        (
            "acceptance so far".to_owned(),
            members.iter().map(|member| acceptance(&member.chain, &member.name)).collect(),
            false,
        ),
        ("seconds of a trajectory".to_owned(), of_all("seconds"), false),
    ]);
    let note = "Each stream by its own trajectories. Shaded: left out of the mean of the stream with the greatest cut.";
    drawn(&format!("<h2>Along the streams</h2>\n<p class=\"note\">{note}</p>\n"), groups, &marks)
}
