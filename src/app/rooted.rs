//! The term of staggered quarks that a checked input asks for.

use super::{AppError, terms};
use crate::action::TermHeader;
use crate::family::{RootedParams, RootedPseudofermion, RootedSolver, Smearing};
use crate::input::{
    MassFactor, Projection, Pseudofermion, RationalSource, StaggeredFermion, StaggeredSmearing,
    StaggeredSolver, Strategy,
};
use crate::math::{Factor, MilcPseudofermion, MilcRational, Rational};

/// Greatest relative errors of a file's functions: of heat bath and action, which nothing corrects; of the force.
const FILE_ERRORS: [f64; 2] = [1e-3, 0.1];
/// For which x the functions of MILC's files are made, as their comments say.
const FILE_RANGE: [f64; 2] = [1e-15, 90.0];

/// The term, its pseudofermions numbered from `number` on.
///
/// # Errors
/// There is no such rational function.
pub(super) fn params(fermion: &StaggeredFermion, number: u8) -> Result<RootedParams, AppError> {
    let mut pseudofermions = Vec::new();
    for pseudofermion in &fermion.pseudofermions {
        let made = functions(pseudofermion).map_err(|why| {
            AppError::Refused(format!("[fermion.{}.pseudofermion.rational]: {why}", fermion.name))
        })?;
        pseudofermions.extend(std::iter::repeat_n(made, pseudofermion.copies));
    }
    Ok(RootedParams {
        header: TermHeader {
            name: fermion.name.clone(),
            number,
            action_residual: fermion.solver.action_residual,
            force_residual: fermion.solver.force_residual,
        },
        smearing: smearing(fermion.links),
        boundary: fermion.boundary,
        solver: solver(&fermion.solver),
        pseudofermions,
    })
}

/// How links are smeared.
pub(super) fn smearing(links: StaggeredSmearing) -> Smearing {
    match links {
        StaggeredSmearing::Asqtad { u0 } => Smearing::Asqtad { u0 },
        StaggeredSmearing::Hisq { projection } => Smearing::Hisq { special: projection == Projection::Su3 },
    }
}

fn solver(solver: &StaggeredSolver) -> RootedSolver {
    RootedSolver {
        precision: terms::precision(solver.precision[1]),
        delta: solver.delta,
        multi_shift: solver.strategy == Strategy::MultiShift,
        long_reals: solver.long_link_reals,
        heat_bath_residual: solver.heat_bath_residual,
        max_iterations: solver.max_iterations,
    }
}

/// The functions of each copy, of x = -D^2 from 0 on. With m_0 the least mass they are made for x + 4 m_0^2, which is
/// positive.
fn functions(pseudofermion: &Pseudofermion) -> Result<RootedPseudofermion, String> {
    let naik_epsilon = pseudofermion.naik_epsilon;
    let ([heat_bath, action, force], check_every) = match &pseudofermion.rational {
        &RationalSource::Made { lambda_max, heat_bath_error, action_error, force_error, check_every } => {
            let shift = |factor: &MassFactor| 4.0 * factor.mass * factor.mass;
            let least = pseudofermion.factors.iter().map(shift).fold(f64::INFINITY, f64::min);
            let copies = pseudofermion.copies as u32;
            // The weight's power sign / (parts copies).
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
    Ok(RootedPseudofermion { naik_epsilon, heat_bath, action, force, check_every })
}
