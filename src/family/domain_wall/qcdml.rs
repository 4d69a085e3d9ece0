//! Domain-wall quarks in QCDml.

use super::{DomainWallFermion, WallFlavours, Weights};
use crate::family::qcdml::{InQcdml, quark};
use crate::io::Element;

/// A quark whose slices have equal weights.
pub(super) fn qcdml(fermion: &DomainWallFermion) -> InQcdml {
    let (name, moebius) = match fermion.weights {
        Weights::Shamir => ("domainWallQuarkAction", None),
        Weights::Borici => ("moebiusDomainWallQuarkAction", Some((1.0, 1.0))),
        Weights::Mobius { b, c } => ("moebiusDomainWallQuarkAction", Some((b, c))),
        Weights::Optimal { .. } | Weights::Listed(_) => {
            return Err(format!(
                "weights that differ from slice to slice, as those of [fermion.{}]",
                fermion.name
            ));
        }
    };
    let flavours = if matches!(fermion.flavours, WallFlavours::Two) { 2 } else { 1 };
    let mut elements = quark(name, "unity", &fermion.boundary, flavours, fermion.stout)?;
    elements.push(Element::text("mass", fermion.mass));
    elements.push(Element::text("kernelMass", fermion.m5));
    elements.push(Element::text("N5", fermion.n_s));
    if let Some((b, c)) = moebius {
        elements.extend([Element::text("b5", b), Element::text("c5", c)]);
    }
    Ok(vec![Element::of(name, elements)])
}
