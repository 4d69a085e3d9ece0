//! A plot as SVG: values along the chain, or with errors over another quantity. Colours are the page's, by class: `c0` to `c6` of
//! lines and points, `t` of text, `g` of the grid.

use std::fmt::Write;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 250.0;
/// Of the area with points: left, right, top, bottom.
const AREA: [f64; 4] = [84.0, 548.0, 10.0, 204.0];
/// Colours of the page.
const COLOURS: usize = 7;
/// More points than this are thinned: the page stays small, and nobody sees more.
const MOST_POINTS: usize = 2000;
/// Values that differ by less of themselves are equal but for rounding.
const ROUNDING: f64 = 1e-12;

/// Points with a name, which is shown where there are several lines.
pub(super) struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    /// One of each point, or none.
    pub errors: Vec<f64>,
}

impl Line {
    /// Without errors.
    pub(super) fn new(name: &str, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.to_owned(), points, errors: Vec::new() }
    }
}

/// What is marked along the chain.
#[derive(Default)]
pub(super) struct Marks {
    /// Means begin after this trajectory; what is before is shaded.
    pub from: f64,
    /// Another tuning came into force after these.
    pub tunings: Vec<f64>,
}

/// A plot with its axes.
pub(super) struct Plot {
    pub title: String,
    /// Titles of the axes, with units.
    pub axes: [String; 2],
    pub lines: Vec<Line>,
    /// Logarithmic if values extend over more than a decade; lines that are 0 throughout are left out.
    pub logarithm: bool,
    /// Ends of the axis that are known.
    pub range: Option<[f64; 2]>,
    /// A line across: a mean with its error, or 0.
    pub level: Option<[f64; 2]>,
}

impl Plot {
    /// Values over trajectories.
    pub(super) fn along_chain(title: &str, axis: &str, lines: Vec<Line>) -> Self {
        let axes = ["trajectory", axis].map(str::to_owned);
        Self { title: title.to_owned(), axes, lines, logarithm: false, range: None, level: None }
    }

    /// As a figure of HTML; empty without a value that can be shown.
    pub(super) fn figure(&self, marks: &Marks) -> String {
        let lines: Vec<&Line> = self.lines.iter().filter(|line| !self.logarithm || !is_zero(line)).collect();
        let values = || lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y).filter(|y| *y > 0.0);
        let logarithm =
            self.logarithm && values().fold(0.0, f64::max) > 10.0 * values().fold(f64::MAX, f64::min);
        let shown: Vec<Vec<[f64; 4]>> = lines.iter().map(|line| heights(line, logarithm)).collect();
        let found = range(&shown, marks.from).filter(|[low, high]| (high - low).is_finite());
        let Some(found) = found else { return String::new() };
        let [low, high] = self.range.unwrap_or_else(|| widened(found));
        let across = Axis { low, high, pixels: [AREA[3], AREA[2]] };
        let ends = |of: fn(f64, f64) -> f64, start: f64| {
            shown.iter().flatten().map(|point| point[0]).fold(start, of)
        };
        let last = ends(f64::max, f64::MIN);
        let along = Axis {
            low: ends(f64::min, 0.0),
            high: last + 0.02 * last.abs().max(1.0),
            pixels: [AREA[0], AREA[1]],
        };
        let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n");
        if marks.from > 0.0 {
            let (x, end) = (along.at(0.0), along.at(marks.from.min(along.high)));
            svg += &rectangle("shade", [x, end, AREA[2], AREA[3]]);
        }
        // Trajectories and distances are whole, flow times are not.
        let whole = !self.axes[0].contains("a^2");
        for (x, label) in ticks(along.low, along.high, 6.0, whole) {
            let (x, y) = (along.at(x), AREA[3]);
            let _ = write!(svg, "<path class=\"g\" d=\"M{x:.1} {:.1}V{y:.1}\"/>", AREA[2]);
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{:.1}\" class=\"t m\">{label}</text>", y + 18.0);
        }
        let marked = if logarithm { decades(low, high) } else { ticks(low, high, 5.0, false) };
        for (y, label) in marked {
            let y = across.at(y);
            let _ = write!(svg, "<path class=\"g\" d=\"M{:.1} {y:.1}H{:.1}\"/>", AREA[0], AREA[1]);
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{:.1}\" class=\"t e\">{label}</text>",
                AREA[0] - 6.0,
                y + 4.5
            );
        }
        for after in marks.tunings.iter().filter(|after| **after < along.high) {
            let x = along.at(after + 0.5);
            let _ = writeln!(svg, "<path class=\"tuning\" d=\"M{x:.1} {:.1}V{:.1}\"/>", AREA[2], AREA[3]);
        }
        if let Some([mean, error]) = self.level.filter(|[mean, _]| (low..=high).contains(mean)) {
            let [x, end] = [along.at(marks.from.min(along.high)), AREA[1]];
            let sides = [mean + error, mean - error].map(|y| across.at(y.clamp(low, high)));
            svg += &rectangle("shade", [x, end, sides[0], sides[1]]);
            let y = across.at(mean);
            let _ = writeln!(svg, "<path class=\"mean\" d=\"M{x:.1} {y:.1}H{end:.1}\"/>");
        }
        let size = if shown.iter().all(|points| points.len() < 300) { 5 } else { 3 };
        for (n, points) in shown.iter().enumerate() {
            let inside = points.iter().filter(|point| (low..=high).contains(&point[1]));
            let (mut way, mut dots, mut bars) = (String::new(), String::new(), String::new());
            for [x, y, down, up] in inside {
                let (x, y) = (along.at(*x), across.at(*y));
                let _ = write!(way, "{}{x:.1} {y:.1}", if way.is_empty() { 'M' } else { 'L' });
                let _ = write!(dots, "M{x:.1} {y:.1}h0");
                if up > down {
                    let [down, up] = [down, up].map(|y| across.at(y.clamp(low, high)));
                    let _ = write!(bars, "M{x:.1} {down:.1}V{up:.1}");
                }
            }
            let colour = n % COLOURS;
            if bars.is_empty() {
                let _ = writeln!(svg, "<path class=\"c{colour} way\" d=\"{way}\"/>");
            } else {
                let _ = writeln!(svg, "<path class=\"c{colour} bar\" d=\"{bars}\"/>");
            }
            let _ = writeln!(svg, "<path class=\"c{colour} dots\" stroke-width=\"{size}\" d=\"{dots}\"/>");
        }
        let [x, y] = self.axes.each_ref().map(|title| escape(title));
        let middle = [0.5 * (AREA[0] + AREA[1]), 0.5 * (AREA[2] + AREA[3])];
        let _ =
            writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" class=\"t m\">{x}</text>", middle[0], HEIGHT - 8.0);
        let place = format!("translate(14 {:.1}) rotate(-90)", middle[1]);
        let _ = writeln!(svg, "<text transform=\"{place}\" class=\"t m\">{y}</text>\n</svg>");
        let legend = if lines.len() > 1 { legend(&lines) } else { String::new() };
        format!("<figure>\n<h3>{}</h3>\n{legend}{svg}</figure>\n", escape(&self.title))
    }
}

/// The names of lines with their colours, above a plot: there they cover no points.
fn legend(lines: &[&Line]) -> String {
    let name = |(n, line): (usize, &&Line)| {
        format!("<span><i class=\"b{}\"></i>{}</span> ", n % COLOURS, escape(&line.name))
    };
    format!("<p class=\"legend\">{}</p>\n", lines.iter().enumerate().map(name).collect::<String>())
}

fn rectangle(class: &str, [left, right, top, bottom]: [f64; 4]) -> String {
    format!("<path class=\"{class}\" d=\"M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}Z\"/>\n")
}

fn is_zero(line: &Line) -> bool {
    line.points.iter().all(|(_, y)| *y == 0.0)
}

/// Points as they are drawn: x, height, and the ends of the error.
fn heights(line: &Line, logarithm: bool) -> Vec<[f64; 4]> {
    let height = |y: f64| if logarithm { y.log10() } else { y };
    let errors = line.errors.iter().copied().chain(std::iter::repeat(0.0));
    let points = line.points.iter().zip(errors).map(|((x, y), error)| {
        let error = if error.is_finite() { error } else { 0.0 };
        let down = if logarithm { (y - error).max(0.1 * y) } else { y - error };
        [*x, height(*y), height(down), height(y + error)]
    });
    let shown: Vec<_> = points.filter(|[_, y, ..]| y.is_finite()).collect();
    let step = shown.len().div_ceil(MOST_POINTS).max(1);
    shown.into_iter().step_by(step).collect()
}

/// The range of values after the cut. Those before it may make it twice as large in either direction: a start far away is not
/// to flatten all that follows.
fn range(lines: &[Vec<[f64; 4]>], from: f64) -> Option<[f64; 2]> {
    let ends = |counts: &dyn Fn(f64) -> bool| {
        let shown = lines.iter().flatten().filter(|[x, ..]| counts(*x));
        let ends =
            shown.fold([f64::MAX, f64::MIN], |[low, high], [_, _, down, up]| [low.min(*down), high.max(*up)]);
        (ends[0] <= ends[1]).then_some(ends)
    };
    let all = ends(&|_| true)?;
    let Some([low, high]) = ends(&|x| x > from) else { return Some(all) };
    let extent = high - low;
    if extent == 0.0 { Some(all) } else { Some([all[0].max(low - extent), all[1].min(high + extent)]) }
}

/// Ends of an axis around these values; of a constant a tenth of it to either side, of 0 from -1 to 1.
fn widened([low, high]: [f64; 2]) -> [f64; 2] {
    let size = low.abs().max(high.abs());
    let margin = match high - low {
        extent if extent > ROUNDING * size => 0.08 * extent,
        _ if size == 0.0 => 1.0,
        _ => 0.1 * size,
    };
    [low - margin, high + margin]
}

/// One direction of a plot.
struct Axis {
    low: f64,
    high: f64,
    pixels: [f64; 2],
}

impl Axis {
    fn at(&self, value: f64) -> f64 {
        let [first, last] = self.pixels;
        first + (last - first) * (value - self.low) / (self.high - self.low)
    }
}

/// Round numbers between the ends with their labels, `about` so many; with `whole`, integers alone.
fn ticks(low: f64, high: f64, about: f64, whole: bool) -> Vec<(f64, String)> {
    let wanted = (high - low) / about;
    let decade = 10f64.powf(wanted.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|n| n * decade).into_iter().find(|step| *step >= wanted);
    let step = step.unwrap_or(wanted);
    let step = if whole { step.max(1.0) } else { step };
    let [first, last] = [(low / step).ceil(), (high / step).floor()];
    let size = low.abs().max(high.abs());
    // Far from 1, all labels have the exponent of the largest.
    let power = if (1e-3..1e5).contains(&size) { 0 } else { size.log10().floor() as i32 };
    let digits = power.saturating_sub((step.log10() + 1e-9).floor() as i32).clamp(0, 17) as usize;
    let label = |value: f64| match (value, power) {
        (0.0, _) => "0".to_owned(),
        (value, 0) => format!("{value:.digits$}"),
        (value, power) => format!("{:.digits$}e{power}", value / 10f64.powi(power)),
    };
    // Of a count, so that 0 is 0.
    let mut found = Vec::new();
    let mut n = first;
    while n <= last && found.len() < 50 {
        found.push((n * step, label(n * step)));
        n += 1.0;
    }
    found
}

/// Powers of ten between two logarithms, and 2 and 5 times them where there are few.
fn decades(low: f64, high: f64) -> Vec<(f64, String)> {
    let factors: &[f64] = if high - low < 2.5 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let every = (((high - low) / 6.0).ceil() as i32).max(1);
    let powers = (low.floor() as i32..=high.ceil() as i32).filter(|power| power.rem_euclid(every) == 0);
    let all = powers.flat_map(|power| factors.iter().map(move |factor| (power, factor)));
    let tick = |(power, factor): (i32, &f64)| {
        let place = f64::from(power) + factor.log10();
        let label = match power {
            -3..0 => format!("{:.*}", power.unsigned_abs() as usize, factor * 10f64.powi(power)),
            0..5 => format!("{:.0}", factor * 10f64.powi(power)),
            _ => format!("{factor}e{power}"),
        };
        (place, label)
    };
    all.map(tick).filter(|(place, _)| (low..=high).contains(place)).collect()
}

/// Text in HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64) -> Vec<String> {
        ticks(low, high, 5.0, false).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn labels_of_axes_are_round_and_zero_is_zero() {
        assert_eq!(labels(-0.11, 0.13), ["-0.10", "-0.05", "0", "0.05", "0.10"]);
        assert_eq!(labels(-3e-5, 4.1e-5), ["-2e-5", "0", "2e-5", "4e-5"]);
        assert_eq!(labels(0.5123, 0.5139), ["0.5125", "0.5130", "0.5135"]);
        assert_eq!(labels(-1.0, 1.0), ["-1.0", "-0.5", "0", "0.5", "1.0"]);
        assert_eq!(ticks(0.0, 3.06, 6.0, true).len(), 4);
        let logarithmic: Vec<String> = decades(-3.2, 1.1).into_iter().map(|(_, label)| label).collect();
        assert_eq!(logarithmic, ["0.001", "0.01", "0.1", "1", "10"]);
    }

    #[test]
    fn a_constant_has_an_axis_and_lines_of_zeros_are_left_out() {
        assert_eq!((widened([1.0, 1.0]), widened([0.0, 0.0])), ([0.9, 1.1], [-1.0, 1.0]));
        // Numbers of any size in a row of the history.
        for ends in [[-1e308, 1e308], [0.0, 5e-324], [1e300, 1.000_000_1e300]] {
            let points = vec![(1.0, ends[0]), (2.0, ends[1]), (3.0, f64::NAN)];
            let figure = Plot::along_chain("x", "x", vec![Line::new("x", points)]).figure(&Marks::default());
            assert!(!figure.contains("NaN"), "{figure}");
        }
        let line = |name: &str, y: f64| Line::new(name, vec![(1.0, y), (2.0, 10.0 * y)]);
        let mut plot =
            Plot::along_chain("iterations", "iterations", vec![line("gauge", 0.0), line("light", 3.0)]);
        plot.logarithm = true;
        let figure = plot.figure(&Marks::default());
        assert!(!figure.contains("gauge") && figure.contains(">trajectory</text>"), "{figure}");
        plot.lines.pop();
        assert_eq!(plot.figure(&Marks::default()), "");
    }
}
