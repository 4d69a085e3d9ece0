//! Values that the keys of several tables take.

use super::key::{Bound, Form, Shape, form, integer, number};
use super::reader::{self, Read, Value, array, is_name, number_within};
use std::path::PathBuf;
use toml::de::DeValue;

/// A number above 0.
pub(crate) const POSITIVE: Form<f64> = number("a positive number", Bound::Without(0.0), Bound::Free);

/// A number of at least 0.
pub(crate) const NOT_NEGATIVE: Form<f64> = number("a number, 0 at least", Bound::With(0.0), Bound::Free);

/// A relative residual; double precision reaches about 1e-15.
pub(crate) const RESIDUAL: Form<f64> =
    number("a residual from 1e-15 to 0.1", Bound::With(1e-15), Bound::With(0.1));

/// The mass of a staggered quark.
pub(crate) const MASS: Form<f64> = number("a mass above 0", Bound::Without(0.0), Bound::Free);

/// The correction to a Naik term.
pub(crate) const EPSILON: Form<f64> =
    number("a number between -1 and 1", Bound::Without(-1.0), Bound::Without(1.0));

/// A fraction of 1.
pub(crate) const FRACTION: Form<f64> =
    number("a number between 0 and 1", Bound::Without(0.0), Bound::Without(1.0));

/// A tadpole factor.
pub(crate) const TADPOLE: Form<f64> =
    number("a tadpole factor above 0, 1 at most", Bound::Without(0.0), Bound::With(1.0));

/// The relative error of a rational function with coefficients in double precision.
pub(crate) const ERROR: Form<f64> =
    number("an error from 1e-14 to 1e-3", Bound::With(1e-14), Bound::With(1e-3));

/// A positive integer.
pub(crate) const COUNT: Form<u64> = integer(1, i64::MAX);

/// The maximum number of a solver's iterations.
pub(crate) const ITERATIONS: Form<usize> = integer(1, 1_000_000_000);

/// A positive number for the lower and for the upper wall in time, or one for both.
pub(crate) const OF_WALLS: Form<[f64; 2]> = form(
    "a positive number, or two",
    Shape::Either(&[
        Shape::Number(Bound::Without(0.0), Bound::Free),
        Shape::List(&Shape::Number(Bound::Without(0.0), Bound::Free), Some(2)),
    ]),
    |value| match value.get_ref() {
        DeValue::Array(_) => array("positive numbers [lower, upper]", |value| POSITIVE.read(value))(value),
        _ => POSITIVE.read(value).map(|one| [one; 2]),
    },
);

/// The first two of the three angles of a wall.
pub(crate) const ANGLES: Form<[f64; 2]> =
    form("2 angles in radian", Shape::List(&Shape::Number(Bound::Free, Bound::Free), Some(2)), |value| {
        array("2 angles [phi_1, phi_2]", number_within("an angle", Bound::Free, Bound::Free))(value)
    });

const POSITIVES: Shape = Shape::Number(Bound::Without(0.0), Bound::Free);

/// The widest spectrum: double precision tells no more apart.
pub(crate) const MOST_CONDITION: f64 = 1e16;

/// Bounds of a spectrum.
pub(crate) const RANGE: Form<[f64; 2]> =
    form("2 numbers, 0 < lo < hi", Shape::List(&POSITIVES, Some(2)), range);

fn range(value: &Value) -> Read<[f64; 2]> {
    let expected = "bounds [lo, hi], 0 < lo < hi";
    let range: [f64; 2] = array(expected, |value| POSITIVE.read(value))(value)?;
    if range[1] / range[0] > MOST_CONDITION {
        return Err(vec![(
            value.span().start,
            format!("hi / lo is above {MOST_CONDITION:e}, more than double precision tells apart"),
        )]);
    }
    if range[0] < range[1] {
        return Ok(range);
    }
    Err(vec![(value.span().start, format!("expected {expected}, found {range:?}"))])
}

/// A non-empty text.
pub(crate) const TEXT: Form<String> = form("text", Shape::Text(""), reader::text);

/// The path of a file or folder.
pub(crate) const PATH: Form<PathBuf> =
    form("text", Shape::Text(""), |value| reader::text(value).map(PathBuf::from));

/// A name: letters, digits, `.`, `_` and `-`; the first is a letter or a digit.
pub(crate) const NAME: Form<String> = form("text", Shape::Text("^[A-Za-z0-9][A-Za-z0-9._-]*$"), name);

fn name(value: &Value) -> Read<String> {
    let expected = "a name of letters, digits, '.', '_' and '-', 200 at most";
    match value.get_ref() {
        DeValue::String(text) if is_name(text) => Ok(text.to_string()),
        _ => reader::unexpected(expected, value),
    }
}
