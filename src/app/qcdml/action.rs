//! The physics of an input in QCDml: the lattice, the gluons' action, the quarks'.

use crate::app::AppError;
use crate::family::qcdml::{boundary, glossary};
use crate::input::{Gauge, Input};
use crate::io::Element;

/// What QCDml 2.0 has no words for.
fn unknown(what: impl std::fmt::Display) -> AppError {
    AppError::Refused(format!("QCDml 2.0 has no words for {what}"))
}

/// `<physics>`
pub(super) fn physics(input: &Input) -> Result<Element, AppError> {
    if input.time.has_walls() {
        return Err(unknown("walls in time"));
    }
    let names = ["x", "y", "z", "t"];
    let size = names.into_iter().zip(input.extents).map(|(name, extent)| Element::text(name, extent));
    let gluon = Element::of("gluon", [gluon(&input.gauge)?]);
    let mut quarks = Vec::new();
    for fermion in &input.fermions {
        quarks.extend(fermion.qcdml().map_err(unknown)?);
    }
    let quark = (!quarks.is_empty()).then(|| Element::of("quark", quarks));
    let action = Element::of("action", [gluon].into_iter().chain(quark));
    Ok(Element::of("physics", [Element::of("size", size), action]))
}

/// The gauge action by its coefficients; those of loops of six links sum to one with c0 + 8 c1, or c0 is one. Luescher and
/// Weisz's at tree level is theirs without bent loops.
fn gluon(gauge: &Gauge) -> Result<Element, AppError> {
    let [c0, c1, c2] = gauge.coefficients;
    let near = |value: f64| (c1 - value).abs() < 1e-12;
    let (name, normalisation) = match gauge.u0 {
        Some(_) => ("tpLuescherWeiszGluonAction", "c0_is_one"),
        None if c1 == 0.0 => ("plaquetteGluonAction", ""),
        None if near(-1.0 / 12.0) => ("treelevelSymanzikGluonAction", "cs_sum_to_one"),
        None if near(-0.331) => ("iwasakiRGGluonAction", "cs_sum_to_one"),
        None if near(-1.4088) => ("DBW2GluonAction", "cs_sum_to_one"),
        None => return Err(unknown(format_args!("a gauge action with c1 = {c1}"))),
    };
    let field = Element::of(
        "gluonField",
        [
            Element::text("gaugeGroup", "SU(3)"),
            Element::text("representation", "fundamental"),
            boundary([0.0; 4]).map_err(unknown)?,
        ],
    );
    let mut elements = vec![glossary(name), field, Element::text("beta", gauge.beta)];
    if c1 != 0.0 {
        elements.push(Element::text("normalisation", normalisation));
        // Ours are plaquettes, rectangles, parallelograms; Luescher and Weisz have bent rectangles in between.
        let cs = [("c0", c0), ("c1", c1), ("c2", 0.0), ("c3", c2)];
        elements.extend(cs.map(|(name, c)| Element::text(name, c)));
    }
    elements.extend(gauge.u0.map(|u0| Element::text("u0", u0)));
    Ok(Element::of(name, elements))
}
