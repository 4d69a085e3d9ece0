//! Wilson quarks in QCDml.

use super::{Flavours, WilsonFermion};
use crate::family::qcdml::{InQcdml, quark};
use crate::io::Element;
use crate::operator::CloverForm;

/// A Wilson or clover quark.
pub(super) fn qcdml(fermion: &WilsonFermion) -> InQcdml {
    let operator = &fermion.operator;
    if operator.mu != 0.0 {
        return Err(format!("the twisted mass of the even-odd form of [fermion.{}]", fermion.name));
    }
    if operator.twisted_mass != 0.0 {
        return Err(format!("the twisted mass of [fermion.{}]", fermion.name));
    }
    if fermion.over.is_some() {
        return Err(format!("the determinant that divides that of [fermion.{}]", fermion.name));
    }
    if operator.clover == CloverForm::Exponential {
        return Err(format!("the exponential clover term of [fermion.{}]", fermion.name));
    }
    let flavours = if matches!(fermion.flavours, Flavours::Two) { 2 } else { 1 };
    let name = if operator.c_sw == 0.0 { "wilsonQuarkAction" } else { "cloverQuarkAction" };
    let mut elements = quark(name, "unity", &operator.boundary, flavours, fermion.stout)?;
    elements.push(Element::text("kappa", operator.kappa));
    if operator.c_sw != 0.0 {
        elements.push(Element::text("cSW", operator.c_sw));
    }
    Ok(vec![Element::of(name, elements)])
}
