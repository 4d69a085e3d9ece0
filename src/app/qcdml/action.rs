//! The physics of an input in QCDml: the lattice, the gluons' action, the quarks'.

use super::xml::Element;
use crate::app::AppError;
use crate::family::{
    DomainWallFermion, Fermion, Flavours, Paths, Smearing, StaggeredFermion, StoutSteps, WallFlavours,
    Weights, WilsonFermion,
};
use crate::input::{Gauge, Input};
use crate::lattice::Boundary;

/// Where ILDG explains an action.
fn glossary(action: &str) -> Element {
    Element::text("glossary", format!("http://www.lqcd.org/ildg/actionGlossaries/{action}.pdf"))
}

/// What QCDml 2.0 has no words for.
fn unknown(what: impl std::fmt::Display) -> AppError {
    AppError::Refused(format!("QCDml 2.0 has no words for {what}"))
}

/// `<physics>`
pub(super) fn physics(input: &Input) -> Result<Element, AppError> {
    let names = ["x", "y", "z", "t"];
    let size = names.into_iter().zip(input.extents).map(|(name, extent)| Element::text(name, extent));
    let gluon = Element::of("gluon", [gluon(&input.gauge)?]);
    let mut quarks = Vec::new();
    for fermion in &input.fermions {
        match fermion {
            Fermion::Wilson(quark) => quarks.push(wilson(quark)?),
            Fermion::DomainWall(quark) => quarks.push(domain_wall(quark)?),
            Fermion::Staggered(quark) => quarks.extend(staggered(quark)?),
        }
    }
    let quark = (!quarks.is_empty()).then(|| Element::of("quark", quarks));
    let action = Element::of("action", [gluon].into_iter().chain(quark));
    Ok(Element::of("physics", [Element::of("size", size), action]))
}

fn boundary(phases: [f64; 4]) -> Result<Element, AppError> {
    let word = |theta: f64| match theta.rem_euclid(2.0) {
        0.0 => Ok("periodic"),
        1.0 => Ok("antiperiodic"),
        _ => Err(unknown(format_args!("a boundary phase of {theta} pi"))),
    };
    let [x, y, z, t] = phases.map(word);
    let all = [("x", x?), ("y", y?), ("z", z?), ("t", t?)];
    Ok(Element::of("boundaryCondition", all.map(|(name, word)| Element::text(name, word))))
}

/// The gauge action by its coefficients; those of loops of six links sum to one with c0 + 8 c1, or c0 is one.
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
            boundary([0.0; 4])?,
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

/// What all quarks have, before their own parameters.
fn quark(
    name: &str,
    normalisation: &str,
    phases: &Boundary,
    flavours: i64,
    stout: Option<StoutSteps>,
) -> Result<Vec<Element>, AppError> {
    let field = [Element::text("normalisation", normalisation), boundary(phases.theta())?];
    let mut elements =
        vec![glossary(name), Element::of("quarkField", field), Element::text("numberOfFlavours", flavours)];
    elements.extend(stout.map(|StoutSteps { steps, rho }| {
        // A stout step's staples alone, with the weight rho, in the exponent.
        let blocking = Element::of("apeLinkBlocking", [Element::text("rho0", 0), Element::text("rho1", rho)]);
        Element::of(
            "linkSmearing",
            [blocking, Element::text("linkUnitarization", "stout"), Element::text("numSmear", steps)],
        )
    }));
    Ok(elements)
}

fn wilson(fermion: &WilsonFermion) -> Result<Element, AppError> {
    let operator = &fermion.operator;
    if operator.mu != 0.0 {
        return Err(unknown(format_args!(
            "the twisted mass of the even-odd form of [fermion.{}]",
            fermion.name
        )));
    }
    let flavours = if matches!(fermion.flavours, Flavours::Two) { 2 } else { 1 };
    let name = if operator.c_sw == 0.0 { "wilsonQuarkAction" } else { "cloverQuarkAction" };
    let mut elements = quark(name, "unity", &operator.boundary, flavours, fermion.stout)?;
    elements.push(Element::text("kappa", operator.kappa));
    if operator.c_sw != 0.0 {
        elements.push(Element::text("cSW", operator.c_sw));
    }
    Ok(Element::of(name, elements))
}

fn domain_wall(fermion: &DomainWallFermion) -> Result<Element, AppError> {
    let (name, moebius) = match fermion.weights {
        Weights::Shamir => ("domainWallQuarkAction", None),
        Weights::Borici => ("moebiusDomainWallQuarkAction", Some((1.0, 1.0))),
        Weights::Mobius { b, c } => ("moebiusDomainWallQuarkAction", Some((b, c))),
        Weights::Optimal { .. } | Weights::Listed(_) => {
            return Err(unknown(format_args!(
                "weights that differ from slice to slice, as those of [fermion.{}]",
                fermion.name
            )));
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
    Ok(Element::of(name, elements))
}

/// The masses of staggered quarks with their flavours: `det(M^dag M)^(1/4)` is one.
fn flavours(fermion: &StaggeredFermion) -> Result<Vec<(f64, f64, i64)>, AppError> {
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
            return Err(unknown(format_args!("{sum} flavours of mass {mass} in [fermion.{}]", fermion.name)));
        }
        Ok((mass, epsilon, number as i64))
    };
    let all: Result<Vec<_>, _> = all.into_iter().map(whole).collect();
    Ok(all?.into_iter().filter(|(.., number)| *number > 0).collect())
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

fn staggered(fermion: &StaggeredFermion) -> Result<Vec<Element>, AppError> {
    let one = |(mass, epsilon, number): (f64, f64, i64)| {
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
