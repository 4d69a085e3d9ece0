//! The Markov chain: `H = sum tr P^2 + sum S`, molecular dynamics, acceptance with probability min(1, exp(-dH)).
//!
//! H is summed exactly over sites, so dH is the exact difference of two sums, independent of ranks and lanes.

use super::integrator::{Level, Move, plan};
use crate::action::{Action, ActionError, Pseudofermion, TermReport};
use crate::field::{AlgebraField, Domain, FieldError, MatrixField, Purpose, RandomAddress};
use crate::math::ExactSum;
use std::sync::Arc;
use std::time::Instant;

/// Why a trajectory failed. The links are then those at its start.
#[derive(Debug, thiserror::Error)]
pub enum HmcError {
    /// A term failed.
    #[error("term '{term}': {source}")]
    Term {
        /// Its name.
        term: String,
        /// The reason.
        source: ActionError,
    },
    /// A force is not finite.
    #[error("the force of level {level} ({terms}) is not finite")]
    Force {
        /// 0 is the outermost.
        level: usize,
        /// The terms on it.
        terms: String,
    },
    /// dH is NaN or infinite.
    #[error("the Hamiltonian is not finite")]
    Hamiltonian,
    /// A field failed.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// Statistics of one level's kicks in a trajectory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KickReport {
    /// Force evaluations.
    pub kicks: usize,
    /// Mean over kicks of the root mean square over links of |F|, `|F|^2 = sum_a F_a^2`.
    pub norm: f64,
    /// The greatest |F| of any link.
    pub max: f64,
    /// Total iterations of all solves.
    pub iterations: usize,
    /// Wall time.
    pub seconds: f64,
}

/// The result of a trajectory.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// H at the end minus H at the start.
    pub delta_h: f64,
    /// Whether the new links were accepted.
    pub accepted: bool,
    /// For each level, from the outermost.
    pub levels: Vec<KickReport>,
    /// Wall time.
    pub seconds: f64,
}

/// How well the reversed trajectory undoes a trajectory.
#[derive(Clone, Copy, Debug)]
pub struct Reversibility {
    /// dH of the forward trajectory.
    pub delta_h: f64,
    /// |dH| of both trajectories together.
    pub round_trip_delta_h: f64,
    /// The greatest |U - U_back| of any matrix element.
    pub distance: f64,
}

/// H, term by term.
#[derive(Clone, Debug, PartialEq)]
pub struct Energies {
    /// `sum tr P^2`
    pub momenta: ExactSum,
    /// Name and value of each term, the outermost level first.
    pub terms: Vec<(String, ExactSum)>,
}

impl Energies {
    /// H.
    pub fn total(&self) -> ExactSum {
        self.terms.iter().fold(self.momenta, |sum, (_, value)| sum + *value)
    }
}

/// A chain of configurations.
///
/// ```
/// use hmc::prelude::*;
/// let domain = Domain::local([4; 4])?;
/// let gauge = GaugeAction::new(&domain, 5.6, [1.0, 0.0, 0.0])?;
/// let level = Level { scheme: Scheme::Omelyan4, steps: 4 };
/// let links = MatrixField::hot(&domain, 1)?;
/// let mut chain = Chain::new(links, &[level], vec![vec![Box::new(gauge)]], 0.5, 1)?;
/// let back = chain.reversibility(0)?;
/// assert!(back.distance < 1e-12);
/// let walked = chain.trajectory(0, true)?;
/// assert_eq!(walked.delta_h, back.delta_h);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Chain {
    domain: Arc<Domain>,
    /// The links; between trajectories, the last accepted ones.
    pub links: MatrixField,
    /// The momenta at the end of the last trajectory, or as set by the caller.
    pub momenta: AlgebraField,
    saved: MatrixField,
    /// The shifted links of the force-gradient integrator, if it is in use.
    shifted: Option<MatrixField>,
    force: AlgebraField,
    levels: Vec<Vec<Box<dyn Action>>>,
    moves: Vec<Move>,
    seed: u64,
}

impl Chain {
    /// A chain that starts from `links`; `terms[l]` are the terms on level l, from the outermost.
    pub fn new(
        links: MatrixField,
        levels: &[Level],
        terms: Vec<Vec<Box<dyn Action>>>,
        tau: f64,
        seed: u64,
    ) -> Result<Self, FieldError> {
        assert_eq!(levels.len(), terms.len(), "a list of terms for each level");
        let domain = Arc::clone(links.domain());
        let moves = plan(levels, tau);
        let gradient = moves.iter().any(|step| matches!(step, Move::GradientKick { .. }));
        let label = domain.device().label("links");
        let saved = MatrixField::new(&domain, 4)?;
        let shifted = gradient.then(|| MatrixField::new(&domain, 4)).transpose()?;
        drop(label);
        let _label = domain.device().label("momenta and force");
        let [momenta, force] = [AlgebraField::new(&domain)?, AlgebraField::new(&domain)?];
        Ok(Self { saved, shifted, momenta, force, levels: terms, moves, seed, links, domain })
    }

    /// Runs one trajectory. With `always` it is accepted whatever dH is.
    ///
    /// # Errors
    /// A term failed; the links are then those at the start.
    pub fn trajectory(&mut self, number: u64, always: bool) -> Result<Outcome, HmcError> {
        let start = Instant::now();
        self.saved.copy_from(&self.links)?;
        let walked = self.walk(number);
        let (delta_h, levels) = match walked {
            Ok(done) => done,
            Err(error) => {
                // Best effort: on a lost device this fails too, and the first error is the one to report.
                let _ = self.links.copy_from(&self.saved);
                return Err(error);
            }
        };
        let draw = RandomAddress { seed: self.seed, trajectory: number, purpose: Purpose::Accept }.uniform();
        let accepted = always || draw < (-delta_h).exp();
        if !accepted {
            self.links.copy_from(&self.saved)?;
        }
        Ok(Outcome { delta_h, accepted, levels, seconds: start.elapsed().as_secs_f64() })
    }

    /// The terms' reports on the last trajectory, with their names.
    pub fn reports(&self) -> Vec<(&str, TermReport)> {
        let terms = self.levels.iter().flatten();
        terms.filter_map(|term| Some((term.name(), term.report()?))).collect()
    }

    /// Runs a trajectory forward and back from the current links, and restores them.
    pub fn reversibility(&mut self, number: u64) -> Result<Reversibility, HmcError> {
        self.saved.copy_from(&self.links)?;
        let before = self.refresh(number)?;
        self.integrate()?;
        let there = self.energies()?.total();
        let label = self.domain.device().label("momenta and force");
        let mut turned = AlgebraField::new(&self.domain)?;
        drop(label);
        turned.combine(0.0, -1.0, &self.momenta)?;
        self.momenta.copy_from(&turned)?;
        self.integrate()?;
        let back = self.energies()?.total();
        let distance = self.links.distance(&self.saved)?;
        self.links.copy_from(&self.saved)?;
        Ok(Reversibility {
            delta_h: (there - before).value(),
            round_trip_delta_h: (back - before).value().abs(),
            distance,
        })
    }

    /// The pseudofermions of each term that has any, with its name; the outermost level first.
    pub fn pseudofermions(&mut self) -> Vec<(String, Vec<Pseudofermion<'_>>)> {
        let terms = self.levels.iter_mut().flatten();
        let named = terms.map(|term| (term.name().to_owned(), term.pseudofermions()));
        named.filter(|(_, fields)| !fields.is_empty()).collect()
    }

    /// Runs a trajectory from the current links, momenta and pseudofermions, without random numbers and without the
    /// Metropolis step. Returns H before and after; links and momenta are then those at the end.
    ///
    /// # Errors
    /// A term failed; links and momenta are then somewhere along the trajectory.
    pub fn replay(&mut self) -> Result<[Energies; 2], HmcError> {
        let before = self.energies()?;
        self.integrate()?;
        let after = self.energies()?;
        let finite = (after.total() - before.total()).value().is_finite();
        if finite { Ok([before, after]) } else { Err(HmcError::Hamiltonian) }
    }

    /// H of the current links, momenta and pseudofermions.
    pub fn energies(&mut self) -> Result<Energies, HmcError> {
        let momenta = self.momenta.kinetic()?;
        let mut terms = Vec::new();
        for term in self.levels.iter_mut().flatten() {
            let _label = self.domain.device().label(term.name());
            let value = term.value(&self.links).map_err(|source| failed(term.name(), source))?;
            terms.push((term.name().to_owned(), value));
        }
        Ok(Energies { momenta, terms })
    }

    fn walk(&mut self, number: u64) -> Result<(f64, Vec<KickReport>), HmcError> {
        let before = self.refresh(number)?;
        let reports = self.integrate()?;
        let delta_h = (self.energies()?.total() - before).value();
        if delta_h.is_finite() { Ok((delta_h, reports)) } else { Err(HmcError::Hamiltonian) }
    }

    /// Draws momenta and pseudofermions; returns H.
    pub fn refresh(&mut self, trajectory: u64) -> Result<ExactSum, HmcError> {
        let (seed, links) = (self.seed, &self.links);
        self.momenta.set_random(RandomAddress { seed, trajectory, purpose: Purpose::Momenta })?;
        let mut h = self.momenta.kinetic()?;
        for term in self.levels.iter_mut().flatten() {
            let _label = self.domain.device().label(term.name());
            h += term.refresh(links, seed, trajectory).map_err(|source| failed(term.name(), source))?;
        }
        Ok(h)
    }

    fn integrate(&mut self) -> Result<Vec<KickReport>, HmcError> {
        let mut reports = vec![KickReport::default(); self.levels.len()];
        for step in self.moves.clone() {
            match step {
                Move::Drift { eps } => self.momenta.drift(&mut self.links, eps)?,
                Move::Kick { level, eps } => {
                    let start = Instant::now();
                    let report = &mut reports[level];
                    report.iterations +=
                        Self::force_of(&mut self.levels[level], &self.links, &mut self.force)?;
                    Self::kick(&self.levels[level], &mut self.momenta, &self.force, level, eps, report)?;
                    report.seconds += start.elapsed().as_secs_f64();
                }
                Move::GradientKick { level, eps, shift } => {
                    let start = Instant::now();
                    let report = &mut reports[level];
                    let shifted = self.shifted.as_mut().expect("made with the moves");
                    shifted.copy_from(&self.links)?;
                    report.iterations +=
                        Self::force_of(&mut self.levels[level], &self.links, &mut self.force)?;
                    self.force.drift(shifted, -shift)?;
                    report.iterations += Self::force_of(&mut self.levels[level], shifted, &mut self.force)?;
                    Self::kick(&self.levels[level], &mut self.momenta, &self.force, level, eps, report)?;
                    report.seconds += start.elapsed().as_secs_f64();
                }
            }
        }
        for report in &mut reports {
            report.norm /= report.kicks.max(1) as f64;
        }
        Ok(reports)
    }

    /// Sets `force` to the sum over a level's terms; returns the number of iterations.
    fn force_of(
        terms: &mut [Box<dyn Action>],
        links: &MatrixField,
        force: &mut AlgebraField,
    ) -> Result<usize, HmcError> {
        force.set_zero()?;
        let mut iterations = 0;
        for term in terms {
            let _label = links.domain().device().label(term.name());
            iterations += term.add_force(links, force).map_err(|source| failed(term.name(), source))?;
        }
        Ok(iterations)
    }

    fn kick(
        terms: &[Box<dyn Action>],
        momenta: &mut AlgebraField,
        force: &AlgebraField,
        level: usize,
        eps: f64,
        report: &mut KickReport,
    ) -> Result<(), HmcError> {
        let (norm2, max) = momenta.combine(1.0, -eps, force)?;
        if !(norm2.is_finite() && max.is_finite()) {
            let terms = terms.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ");
            return Err(HmcError::Force { level, terms });
        }
        report.kicks += 1;
        report.norm += (norm2 / (4.0 * momenta.domain().global_volume())).sqrt();
        report.max = report.max.max(max);
        Ok(())
    }
}

fn failed(term: &str, source: ActionError) -> HmcError {
    HmcError::Term { term: term.to_string(), source }
}
