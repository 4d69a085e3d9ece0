//! The program's voice: results on stdout, warnings on stderr; numbers, times and sizes as they are shown.

use crate::app::AppError;
use crate::device::Held;
use serde::{Serialize, Serializer};
use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// A text in which control characters, which a terminal would obey, are shown as they are written in Rust. Names in files of
/// others may hold any.
pub(super) fn plain(text: impl Display) -> String {
    let escaped = |c: char| {
        // Marks that turn the direction of a text would show it as another one.
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if turns || (c.is_control() && !"\n\t".contains(c)) {
            c.escape_default().to_string()
        } else {
            c.into()
        }
    };
    text.to_string().chars().map(escaped).collect()
}

/// Prints a line of a command's output. It is not an error if the reader has closed the pipe (`head`).
///
/// # Errors
/// The line cannot be written.
pub(super) fn say(text: impl Display) -> Result<(), AppError> {
    match writeln!(std::io::stdout(), "{}", plain(text)) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(AppError::Output(error)),
        _ => Ok(()),
    }
}

/// Prints a text as it is.
///
/// # Errors
/// As of a line.
pub fn say_text(text: &[u8]) -> Result<(), AppError> {
    match std::io::stdout().write_all(text) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(AppError::Output(error)),
        _ => Ok(()),
    }
}

/// An object as a line of JSON: fields in their order, reals as the shortest text that reads back to the same bits, `null`
/// for NaN.
///
/// # Panics
/// A map whose keys are no texts.
pub(super) fn json(object: &impl Serialize) -> String {
    serde_json::to_string(object).expect("objects of this program have texts as keys")
}

/// For fields of JSON that are what is shown of a value.
pub(super) fn shown<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Warns. Where nobody listens the work goes on.
pub(super) fn warn(text: impl Display) {
    complain(format_args!("warning: {text}"));
}

/// A line on stderr, in one write: a launcher puts other lines between two.
pub(super) fn complain(text: impl Display) {
    let _ = std::io::stderr().write_all(format!("{}\n", plain(text)).as_bytes());
}

/// A time in a suitable unit.
pub(super) fn span(seconds: f64) -> String {
    match seconds {
        s if s > 0.0 && s < 0.00995 => format!("{:.1} ms", 1e3 * s),
        s if s < 9.995 => format!("{s:.2} s"),
        s if s < 99.95 => format!("{s:.1} s"),
        s if s < 600.0 => format!("{s:.0} s"),
        s if s < 2.0 * 3600.0 => format!("{:.0} min", s / 60.0),
        s if s < 2.0 * 86400.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} d", s / 86400.0),
    }
}

/// A mean with its error in units of its last digit: `0.4807(3)`; of any size: `3.1(4)e-39`; `-` where it is unknown.
pub(super) fn with_error(mean: f64, error: f64) -> String {
    if !mean.is_finite() {
        return "-".to_owned();
    }
    let size = if error.is_finite() { mean.abs().max(error) } else { mean.abs() };
    if size > 0.0 && !(1e-6..1e9).contains(&size) {
        let power = size.log10().floor() as i32;
        // Of numbers below the least power of ten that there is, what is left is 0.
        let [mean, error] = [mean, error].map(|x| x / 10f64.powi(power));
        return if mean.is_finite() {
            format!("{}e{power}", with_error(mean, error))
        } else {
            "0".to_owned()
        };
    }
    // An error that rounding alone makes is none.
    if !(error > 1e-14 * mean.abs() && error.is_finite()) {
        return format!("{mean:.8}");
    }
    // Two digits of the error if it is below 20 units of the last digit.
    let digits =
        (-(error.log10().floor()) as i32 + i32::from(error / 10f64.powf(error.log10().floor()) < 2.0)).max(0);
    format!("{mean:.*}({:.0})", digits as usize, error * 10f64.powi(digits))
}

/// A size in memory or on a disk.
pub(super) fn megabytes(bytes: usize) -> String {
    match bytes as f64 {
        bytes if bytes < 1e9 => format!("{:.1} MB", bytes / 1e6),
        bytes if bytes < 1e12 => format!("{:.2} GB", bytes / 1e9),
        bytes => format!("{:.2} TB", bytes / 1e12),
    }
}

/// The memory of a rank: a CPU's, or a GPU's and what it takes of the host.
pub(super) fn memory(held: &Held) -> String {
    let [device, aside, host] = [held.bytes, held.aside, held.host].map(|bytes| megabytes(bytes as usize));
    match held.aside + held.host {
        0 => device,
        _ => format!("{device}, on its host {aside} page-locked and {host} besides"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_stand_in_the_last_digits() {
        assert_eq!(with_error(0.480_712, 0.000_31), "0.4807(3)");
        assert_eq!(with_error(0.480_712, 0.000_14), "0.48071(14)");
        assert_eq!(with_error(0.9927, 0.0099), "0.993(10)");
        assert_eq!(with_error(12.3, 2.0), "12(2)");
        assert_eq!(with_error(0.5, f64::NAN), "0.50000000");
        assert_eq!(with_error(f64::NAN, f64::NAN), "-");
        assert_eq!(with_error(1.0e-39, 1.9e-39), "1.0(19)e-39");
        assert_eq!(with_error(2.34e12, 3e10), "2.34(3)e12");
        assert_eq!(with_error(1.2446e134, f64::NAN), "1.24460000e134");
        assert_eq!(with_error(-0.001_029_56, 1.6e-19), "-0.00102956");
        assert_eq!(with_error(5e-324, 0.0), "0");
    }

    #[test]
    fn times_have_units() {
        let told = [0.0042, 0.39, 16.0, 250.0, 900.0, 40_000.0, 1e6].map(span);
        assert_eq!(told, ["4.2 ms", "0.39 s", "16.0 s", "250 s", "15 min", "11.1 h", "11.6 d"]);
    }
}
