//! A plot along the chain as SVG.

use plotters::coord::Shift;
use plotters::prelude::*;

const SIZE: (u32, u32) = (880, 240);
/// Okabe and Ito's colours, which most eyes tell apart.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];
const GREY: RGBColor = RGBColor(140, 140, 140);
/// More points than this are thinned: the page stays small, and nobody sees more.
const MOST_POINTS: usize = 2000;

/// Values over trajectories; the name is shown where there are several.
pub(super) struct Line {
    pub name: String,
    /// Trajectory and value.
    pub points: Vec<(f64, f64)>,
}

/// What is marked along the chain.
pub(super) struct Marks {
    /// Means begin after this trajectory; what is before is shaded.
    pub from: f64,
    /// Another tuning came into force after these.
    pub tunings: Vec<f64>,
}

/// Lines as points over trajectories; with `logarithm`, of the values if they extend over more than a decade. Empty without a
/// value that can be shown.
pub(super) fn plot(lines: &[Line], marks: &Marks, logarithm: bool) -> String {
    let values = || lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y).filter(|y| *y > 0.0);
    let logarithm = logarithm && values().fold(0.0, f64::max) > 10.0 * values().fold(f64::MAX, f64::min);
    let height = |y: f64| if logarithm { y.log10() } else { y };
    let thin = |line: &Line| {
        let shown = line.points.iter().map(|(x, y)| (*x, height(*y))).filter(|(_, y)| y.is_finite());
        let shown: Vec<_> = shown.collect();
        let step = shown.len().div_ceil(MOST_POINTS).max(1);
        shown.into_iter().step_by(step).collect::<Vec<_>>()
    };
    let shown: Vec<Vec<(f64, f64)>> = lines.iter().map(thin).collect();
    let Some([low, high]) = range(&shown, marks.from) else { return String::new() };
    let margin = (0.08 * (high - low)).max(1e-6 * high.abs()).max(1e-9);
    let shown: Vec<Vec<_>> = shown
        .into_iter()
        .map(|line| line.into_iter().filter(|(_, y)| (low..=high).contains(y)).collect())
        .collect();
    let last = shown.iter().flatten().map(|(x, _)| *x).fold(1.0, f64::max);
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
    let named: Vec<_> = lines.iter().map(|line| line.name.as_str()).zip(&shown).collect();
    // It is memory that is written to, and the ranges have an extent: an error is one of this program.
    draw(&area, &named, marks, [0.0..1.02 * last, low - margin..high + margin], logarithm).expect("memory");
    drop(area);
    text
}

/// The range of values after the cut. Those before it may make it twice as large in either direction: a start far away is not
/// to flatten all that follows.
fn range(lines: &[Vec<(f64, f64)>], from: f64) -> Option<[f64; 2]> {
    let ends = |counts: &dyn Fn(f64) -> bool| {
        let heights = lines.iter().flatten().filter(|(x, _)| counts(*x)).map(|(_, y)| *y);
        let ends = heights.fold([f64::MAX, f64::MIN], |[low, high], y| [low.min(y), high.max(y)]);
        (ends[0] <= ends[1]).then_some(ends)
    };
    let all = ends(&|_| true)?;
    let Some([low, high]) = ends(&|x| x > from) else { return Some(all) };
    let extent = high - low;
    if extent == 0.0 { Some(all) } else { Some([all[0].max(low - extent), all[1].min(high + extent)]) }
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(
    area: &DrawingArea<SVGBackend, Shift>,
    lines: &[(&str, &Vec<(f64, f64)>)],
    marks: &Marks,
    [along, across]: [std::ops::Range<f64>; 2],
    logarithm: bool,
) -> Drawn {
    let [low, high] = [across.start, across.end];
    let mut chart = ChartBuilder::on(area)
        .margin(6)
        .x_label_area_size(26)
        .y_label_area_size(80)
        .build_cartesian_2d(along, across)?;
    if marks.from > 0.0 {
        chart.draw_series([Rectangle::new([(0.0, low), (marks.from, high)], GREY.mix(0.13).filled())])?;
    }
    let label = |y: &f64| if logarithm { format!("{:.1e}", 10f64.powf(*y)) } else { short(*y, high - low) };
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.25))
        .axis_style(GREY)
        .label_style(("sans-serif", 13))
        .x_labels(10)
        .y_labels(6)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&label)
        .draw()?;
    for after in &marks.tunings {
        chart.draw_series(DashedLineSeries::new(
            [(after + 0.5, low), (after + 0.5, high)],
            5,
            4,
            BLACK.mix(0.6).stroke_width(1),
        ))?;
    }
    let size = if lines.iter().all(|(_, points)| points.len() < 300) { 3 } else { 2 };
    for (n, (name, points)) in lines.iter().enumerate() {
        let colour = COLOURS[n % COLOURS.len()];
        chart.draw_series(LineSeries::new(points.iter().copied(), colour.mix(0.35).stroke_width(1)))?;
        let series = chart.draw_series(points.iter().map(|at| Circle::new(*at, size, colour.filled())))?;
        if lines.len() > 1 {
            series.label(*name).legend(move |(x, y)| Circle::new((x + 10, y), 4, colour.filled()));
        }
    }
    if lines.len() > 1 {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .label_font(("sans-serif", 13))
            .draw()?;
    }
    area.present()?;
    Ok(())
}

/// A number with the digits that tell values apart on an axis of this extent.
fn short(value: f64, extent: f64) -> String {
    if value != 0.0 && (value.abs() >= 1e5 || value.abs() < 1e-3) {
        return format!("{value:.2e}");
    }
    let digits = (2.0 - extent.log10().floor()).clamp(0.0, 8.0) as usize;
    format!("{value:.digits$}")
}
