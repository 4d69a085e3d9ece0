//! What of QCDml all families share: the words of ILDG's catalogues for quarks.

use super::StoutSteps;
use crate::io::Element;
use crate::lattice::Boundary;

/// A quark in QCDml, or what QCDml 2.0 has no words for.
pub type InQcdml = Result<Vec<Element>, String>;

/// Where ILDG explains an action.
pub(crate) fn glossary(action: &str) -> Element {
    Element::text("glossary", format!("http://www.lqcd.org/ildg/actionGlossaries/{action}.pdf"))
}

/// The phases of a field over the edges of the lattice, in units of pi.
///
/// # Errors
/// QCDml has no words for a phase.
pub(crate) fn boundary(phases: [f64; 4]) -> Result<Element, String> {
    let word = |theta: f64| match theta.rem_euclid(2.0) {
        0.0 => Ok("periodic"),
        1.0 => Ok("antiperiodic"),
        _ => Err(format!("a boundary phase of {theta} pi")),
    };
    let [x, y, z, t] = phases.map(word);
    let all = [("x", x?), ("y", y?), ("z", z?), ("t", t?)];
    Ok(Element::of("boundaryCondition", all.map(|(name, word)| Element::text(name, word))))
}

/// What all quarks have, before their own parameters.
pub(super) fn quark(
    name: &str,
    normalisation: &str,
    phases: &Boundary,
    flavours: impl std::fmt::Display,
    stout: Option<StoutSteps>,
) -> InQcdml {
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
