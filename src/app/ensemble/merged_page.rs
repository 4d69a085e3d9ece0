//! A report over all streams of an ensemble as one HTML page.

use super::digest::{Digest, observables};
use super::merged::{Member, Merged};
use super::page::{
    acceptance, advice, begin, card, curves, drawn, dynamics, input, life, means, number, table,
};
use super::plot::escape;
use super::plot::{Line, Marks, Plot};
use super::series::column;
use crate::app::output::{span, with_error};
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
    page += &curves(&merged.curves);
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
    let known = merged.means().filter(|mean| mean.mean.is_finite());
    for mean in known.filter(|mean| ["<exp(-dH)>", "plaquette"].contains(&mean.name.as_str())) {
        text += &card(&with_error(mean.mean, mean.error), &mean.name);
    }
    let timed = merged.observables.iter().filter(|mean| mean.tau_error > 0.0);
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
            if digest.done > 0 { span(digest.forecast.seconds) } else { "-".to_owned() },
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
    let mut plots: Vec<Plot> = Vec::new();
    for member in members {
        for series in observables(&member.chain) {
            let line = Line::new(&member.name, series.points());
            match plots.iter_mut().find(|plot| plot.title == series.name) {
                Some(plot) => plot.lines.push(line),
                None => plots.push(Plot::along_chain(&series.name, &series.axis, vec![line])),
            }
        }
    }
    for plot in &mut plots {
        let mean = merged.observables.iter().find(|mean| mean.name == plot.title);
        plot.level =
            mean.map(|mean| [mean.mean, mean.error]).filter(|level| level.iter().all(|x| x.is_finite()));
    }
    let of_all = |name: &str| -> Vec<Line> {
        let line =
            |member: &Member| Line::new(&member.name, column(&member.chain, name, name, |x| x).points());
        members.iter().map(line).collect()
    };
    let accepted = members.iter().map(|member| acceptance(&member.chain, &member.name)).collect();
    plots.extend([
        Plot { level: Some([0.0; 2]), ..Plot::along_chain("dH", "dH", of_all("delta_h")) },
        Plot { range: Some([0.0, 1.05]), ..Plot::along_chain("acceptance so far", "acceptance", accepted) },
        Plot::along_chain("seconds of a trajectory", "time [s]", of_all("seconds")),
    ]);
    let note = "Each stream by its own trajectories. Shaded: left out of the mean of the stream with the greatest cut, and around a mean its error.";
    drawn(&format!("<h2>Along the streams</h2>\n<p class=\"note\">{note}</p>\n"), &plots, &marks)
}
