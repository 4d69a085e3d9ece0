//! The term of staggered quarks, and their inverse for measurements.

use super::{
    InnerRoots, MassFactor, REACH, RationalSource, Rooted, RootedParams, RootedPseudofermion, RootedSolver,
    StaggeredDerivative, StaggeredFermion, StaggeredOnAllSites, StaggeredParams, StaggeredQuark,
    StaggeredSolver, WeightFactors,
};
use crate::action::{Action, InnerPoles, TermHeader};
use crate::family::qcdml::InQcdml;
use crate::family::{Family, FamilyError};
use crate::field::{Domain, MatrixField};
use crate::math::{Factor, MilcPseudofermion, MilcRational, Rational};
use crate::measure::{MeasureError, Wanted};
use crate::quark::{FullOperator, HopDerivative, Inverse, QuarkParams};
use crate::solver::{Past, Settings};
use std::sync::Arc;

/// Greatest relative errors of a file's functions: for heat bath and action, which nothing corrects, and for the force.
const FILE_ERRORS: [f64; 2] = [1e-3, 0.1];
/// The range of x for which functions in MILC's files are made, according to their comments.
const FILE_RANGE: [f64; 2] = [1e-15, 90.0];

impl Family for StaggeredFermion {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_rational(&self) -> bool {
        true
    }

    fn qcdml(&self) -> InQcdml {
        super::qcdml::qcdml(self)
    }

    fn pseudofermions(&self) -> usize {
        self.pseudofermions.iter().map(|p| p.copies as usize).sum()
    }

    fn border(&self) -> usize {
        2
    }

    fn reach(&self) -> usize {
        REACH
    }

    /// All pseudofermions are one term.
    fn terms(&self, domain: &Arc<Domain>, number: u8) -> Result<Vec<Box<dyn Action>>, FamilyError> {
        let mut pseudofermions = Vec::new();
        for pseudofermion in &self.pseudofermions {
            let made = functions(pseudofermion).map_err(|why| {
                FamilyError::Refused(format!("[fermion.{}.pseudofermion]: {why}", self.name))
            })?;
            pseudofermions.extend(std::iter::repeat_n(made, pseudofermion.copies as usize));
        }
        let _label = domain.device().label(&self.name);
        let &StaggeredSolver { settings, action_residual, force_residual } = &self.solver;
        let params = RootedParams {
            header: TermHeader { name: self.name.clone(), number, action_residual, force_residual },
            smearing: self.smearing,
            boundary: self.boundary,
            solver: settings,
            pseudofermions,
        };
        Ok(vec![Box::new(Rooted::new(domain, params)?)])
    }

    fn inverse(&self, links: &MatrixField, wanted: Wanted) -> Result<Box<dyn Inverse>, MeasureError> {
        let operator = self.measured(wanted);
        let RootedSolver { precisions: [precision, _], delta, long_reals, max_iterations, .. } =
            self.solver.settings;
        let solver = Settings { delta, ..Settings::cg(precision, max_iterations) };
        let params = QuarkParams { operator, solver, link_reals: long_reals, guess: Past::NONE };
        Ok(Box::new(StaggeredQuark::new(links, &params, wanted.residual)?))
    }

    fn full_operator(
        &self,
        links: &MatrixField,
        wanted: Wanted,
    ) -> Result<Box<dyn FullOperator>, MeasureError> {
        Ok(Box::new(StaggeredOnAllSites::new(links, &self.measured(wanted))?))
    }

    fn derivative(
        &self,
        links: &MatrixField,
        wanted: Wanted,
        order: u32,
    ) -> Result<Option<Box<dyn HopDerivative>>, MeasureError> {
        let hops = StaggeredDerivative::new(links, self.smearing, wanted.naik_epsilon, self.boundary, order)?;
        Ok(Some(Box::new(hops)))
    }
}

impl StaggeredFermion {
    /// The quark of a measurement.
    fn measured(&self, wanted: Wanted) -> StaggeredParams {
        StaggeredParams {
            smearing: self.smearing,
            mass: wanted.mass.unwrap_or_default(),
            naik_epsilon: wanted.naik_epsilon,
            boundary: self.boundary,
        }
    }
}

/// The functions of each copy, for x = -D^2 from 0. With m_0 the least mass, they are made as functions of x + 4 m_0^2,
/// which is positive.
fn functions(pseudofermion: &WeightFactors) -> Result<RootedPseudofermion, String> {
    let naik_epsilon = pseudofermion.naik_epsilon;
    let ([heat_bath, action, force], check_every) = match &pseudofermion.rational {
        &RationalSource::Made { lambda_max, heat_bath_error, action_error, force_error, check_every } => {
            let shift = |factor: &MassFactor| 4.0 * factor.mass * factor.mass;
            let least = pseudofermion.factors.iter().map(shift).fold(f64::INFINITY, f64::min);
            let copies = pseudofermion.copies;
            // The weight to the power sign / (parts copies).
            let make = |sign: i32, parts: u32, error: f64| {
                let factor = |f: &MassFactor| Factor {
                    shift: shift(f) - least,
                    power: (sign * f.power.0, parts * copies * f.power.1),
                };
                let factors: Vec<Factor> = pseudofermion.factors.iter().map(factor).collect();
                let made = Rational::to_error(&factors, [least, lambda_max + least], error);
                made.map(|r| r.shifted(least)).map_err(|why| why.to_string())
            };
            let made = [make(1, 2, heat_bath_error)?, make(-1, 2, action_error)?, make(-1, 1, force_error)?];
            (made, check_every)
        }
        RationalSource::File { path, functions, check_every, .. } => {
            let MilcPseudofermion { heat_bath, action, md, .. } = functions;
            let [strict, loose] = FILE_ERRORS;
            let measured = |name: &str, r: &MilcRational, most: f64| {
                let r = r.measured(FILE_RANGE).map_err(|why| format!("{}: {name}: {why}", path.display()))?;
                if r.error <= most {
                    return Ok(r);
                }
                let path = path.display();
                Err(format!("{path}: {name}: the relative error is {:.1e}, more than {most:.0e}", r.error))
            };
            let made = [
                measured("GR", heat_bath, strict)?,
                measured("FA", action, strict)?,
                measured("MD", md, loose)?,
            ];
            (made, *check_every)
        }
    };
    let inner = pseudofermion.inner.as_ref().map(|InnerRoots { name, poles }| {
        let all = force.degree();
        let poles = poles.unwrap_or(all);
        let fits = poles <= all;
        let refusal = || format!("inner: {poles} poles of a function that has {all}");
        fits.then(|| InnerPoles { name: name.clone(), poles }).ok_or_else(refusal)
    });
    Ok(RootedPseudofermion { naik_epsilon, heat_bath, action, force, inner: inner.transpose()?, check_every })
}
