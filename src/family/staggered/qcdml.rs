//! Staggered quarks in QCDml.

use super::{Paths, Smearing, StaggeredFermion};
use crate::family::qcdml::{InQcdml, glossary, quark};
use crate::io::Element;

/// The masses of staggered quarks with their flavours: `det(M^dag M)^(1/4)` is one.
fn flavours(fermion: &StaggeredFermion) -> Result<Vec<(f64, f64, f64)>, String> {
    let mut all: Vec<(f64, f64, f64)> = Vec::new();
    for weight in &fermion.pseudofermions {
        for factor in &weight.factors {
            let own = 4.0 * f64::from(factor.power.0) / f64::from(factor.power.1);
            let key = (factor.mass, weight.naik_epsilon);
            match all.iter_mut().find(|(mass, epsilon, _)| (*mass, *epsilon) == key) {
                Some((.., sum)) => *sum += own,
                None => all.push((factor.mass, weight.naik_epsilon, own)),
            }
        }
    }
    let whole = |(mass, epsilon, sum): (f64, f64, f64)| {
        let number = sum.round();
        if (sum - number).abs() > 1e-9 || number < 0.0 {
            return Err(format!("{sum} flavours of mass {mass} in [fermion.{}]", fermion.name));
        }
        Ok((mass, epsilon, number))
    };
    let all: Result<Vec<_>, _> = all.into_iter().map(whole).collect();
    Ok(all?.into_iter().filter(|(.., number)| *number > 0.0).collect())
}

/// The coefficients of paths by their names in QCDml.
fn paths(paths: Paths) -> [Element; 4] {
    [
        ("c1Link", paths.one),
        ("c3Link", paths.three),
        ("c5LinkChair", paths.five),
        ("c7LinkTwist", paths.seven),
    ]
    .map(|(name, value)| Element::text(name, value))
}

/// A quark for each mass.
pub(super) fn qcdml(fermion: &StaggeredFermion) -> InQcdml {
    let one = |(mass, epsilon, number): (f64, f64, f64)| {
        let name = match fermion.smearing {
            Smearing::Asqtad { .. } => "asqTadQuarkAction",
            Smearing::Hisq { .. } => "hisqQuarkAction",
        };
        // M = 2 m + D.
        let mut elements = quark(name, "sqrt(2)", &fermion.boundary, number, None)?;
        elements.push(Element::text("mass", mass));
        let naik = Element::text("cNaik", fermion.smearing.naik(epsilon));
        match fermion.smearing {
            Smearing::Asqtad { u0 } => {
                elements.push(naik);
                elements.extend(paths(Paths::asqtad(u0)));
                elements.push(Element::text("cLepage", Paths::asqtad(u0).lepage));
                elements.push(Element::text("u0", u0));
            }
            Smearing::Hisq { special } => {
                let first = [glossary("fat7QuarkLinkTreatment")].into_iter().chain(paths(Paths::fat7()));
                let first = first.chain([Element::text("u0", 1)]);
                let group = if special { "SU(3)" } else { "U(3)" };
                let projection = [glossary("projectGroupLinkTreatment"), Element::text("group", group)];
                let given = [Element::text("method", "given"), Element::text("value", epsilon)];
                let epsilon = (epsilon != 0.0).then(|| Element::of("epsilon", given));
                let second = [glossary("asqTadQuarkLinkTreatment")].into_iter().chain(epsilon);
                let second = second.chain([naik]).chain(paths(Paths::hisq()));
                let lepage = Element::text("cLepage", Paths::hisq().lepage);
                let second = second.chain([lepage, Element::text("u0", 1)]);
                elements.push(Element::of(
                    "LinkTreatment",
                    [
                        Element::of("fat7QuarkLinkTreatment", first),
                        Element::of("projectGroupLinkTreatment", projection),
                        Element::of("asqTadQuarkLinkTreatment", second),
                    ],
                ));
            }
        }
        Ok(Element::of(name, elements))
    };
    flavours(fermion)?.into_iter().map(one).collect()
}
