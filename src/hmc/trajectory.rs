//! The Markov chain: `H = sum tr P^2 + sum S`, molecular dynamics, acceptance with probability min(1, exp(-dH)).
//!
//! H is summed exactly over sites, so dH is the exact difference of two sums, independent of ranks and lanes.

use super::integrator::{Level, Move, plan};
use super::outcome::{KickReport, Outcome, TermOutcome};
use super::smd::{Cycles, Smd};
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
    #[error(
        "the force of level {level} ({terms}) is not finite: molecular dynamics has run away; try more steps or a smaller tau, from \
         the last checkpoint or a smoother start"
    )]
    Force {
        /// 0 is the outermost.
        level: usize,
        /// The terms on it.
        terms: String,
    },
    /// dH is NaN or infinite.
    #[error(
        "the Hamiltonian is not finite: molecular dynamics has run away; try more steps or a smaller tau, from the last checkpoint \
         or a smoother start"
    )]
    Hamiltonian,
    /// A field failed.
    #[error(transparent)]
    Field(#[from] FieldError),
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
    /// The links at a trajectory's start, aside.
    saved: MatrixField,
    /// The shifted links of the force-gradient integrator, if it is in use.
    shifted: Option<MatrixField>,
    force: AlgebraField,
    /// The force before a term, if a level has several.
    before: Option<AlgebraField>,
    /// Ordered by the outermost level of their forces.
    actions: Vec<Box<dyn Action>>,
    /// The forces of each level.
    levels: Vec<Vec<Member>>,
    moves: Vec<Move>,
    tau: f64,
    seed: u64,
    smd: Option<Cycles>,
}

/// A force on a level.
#[derive(Clone, Debug)]
struct Member {
    /// Its index in `actions`.
    action: usize,
    /// The part of its force; `None` for the whole.
    part: Option<usize>,
    name: String,
}

/// A term's value, with the wall time of computing it.
struct Valued {
    value: ExactSum,
    seconds: f64,
}

impl Chain {
    /// A chain that starts from `links`; `terms[l]` are the terms on level l, from the outermost, with their whole
    /// forces.
    pub fn new(
        links: MatrixField,
        levels: &[Level],
        terms: Vec<Vec<Box<dyn Action>>>,
        tau: f64,
        seed: u64,
    ) -> Result<Self, FieldError> {
        let mut actions: Vec<Box<dyn Action>> = Vec::new();
        let mut members = Vec::new();
        for level in terms {
            members.push(Vec::new());
            for term in level {
                let member = Member { action: actions.len(), part: None, name: term.name().to_owned() };
                members.last_mut().expect("just added").push(member);
                actions.push(term);
            }
        }
        Self::make(links, levels, actions, members, tau, seed)
    }

    /// As [`Chain::new`] for forces that are divided: `names[l]` are the terms and [parts](Action::parts) of forces on
    /// level l.
    ///
    /// # Panics
    /// A name is unknown.
    pub fn with_parts(
        links: MatrixField,
        levels: &[Level],
        terms: Vec<Box<dyn Action>>,
        names: &[Vec<String>],
        tau: f64,
        seed: u64,
    ) -> Result<Self, FieldError> {
        let mut terms: Vec<_> = terms.into_iter().map(Some).collect();
        // The old and the new index of each term that has been placed.
        let mut order: Vec<(usize, usize)> = Vec::new();
        let mut actions = Vec::new();
        let mut forces: Vec<Member> = Vec::new();
        for (action, term) in terms.iter().flatten().enumerate() {
            let parts = term.parts();
            if parts.is_empty() {
                forces.push(Member { action, part: None, name: term.name().to_owned() });
            }
            let divided = parts.into_iter().enumerate();
            forces.extend(divided.map(|(n, name)| Member { action, part: Some(n), name: name.to_owned() }));
        }
        let mut place = |name: &String| {
            let force = forces.iter().find(|force| force.name == *name);
            let force = force.unwrap_or_else(|| panic!("no term is named '{name}'"));
            if let Some(term) = terms[force.action].take() {
                order.push((force.action, actions.len()));
                actions.push(term);
            }
            let (_, action) = *order.iter().find(|(old, _)| *old == force.action).expect("placed");
            Member { action, ..force.clone() }
        };
        let members = names.iter().map(|names| names.iter().map(&mut place).collect()).collect();
        Self::make(links, levels, actions, members, tau, seed)
    }

    fn make(
        links: MatrixField,
        levels: &[Level],
        actions: Vec<Box<dyn Action>>,
        members: Vec<Vec<Member>>,
        tau: f64,
        seed: u64,
    ) -> Result<Self, FieldError> {
        assert_eq!(levels.len(), members.len(), "a list of terms for each level");
        let domain = Arc::clone(links.domain());
        let moves = plan(levels, tau);
        let label = domain.device().label("links");
        let saved = MatrixField::aside(&domain, 4)?;
        let shifted = is_shifted(&moves).then(|| MatrixField::new(&domain, 4)).transpose()?;
        drop(label);
        let _label = domain.device().label("momenta and force");
        let [momenta, force] = [AlgebraField::new(&domain)?, AlgebraField::new(&domain)?];
        let several = members.iter().any(|level| level.len() > 1);
        let before = several.then(|| AlgebraField::new(&domain)).transpose()?;
        Ok(Self {
            saved,
            shifted,
            momenta,
            force,
            before,
            actions,
            levels: members,
            moves,
            tau,
            seed,
            smd: None,
            links,
            domain,
        })
    }

    /// The same chain by stochastic molecular dynamics: `tau` is then the length of a cycle.
    ///
    /// # Errors
    /// Memory runs out.
    pub fn with_smd(mut self, params: Smd) -> Result<Self, FieldError> {
        self.smd = Some(Cycles::new(params, self.tau, &self.links, &mut self.actions)?);
        Ok(self)
    }

    /// Walks further trajectories with these steps and schemes; the terms stay on their levels.
    ///
    /// # Errors
    /// Memory runs out.
    ///
    /// # Panics
    /// The number of levels differs, or [`plan`] panics.
    pub fn set_levels(&mut self, levels: &[Level]) -> Result<(), FieldError> {
        assert_eq!(levels.len(), self.levels.len(), "a level for each list of terms");
        self.moves = plan(levels, self.tau);
        if self.shifted.is_none() && is_shifted(&self.moves) {
            self.shifted = Some(MatrixField::new(&self.domain, 4)?);
        }
        Ok(())
    }

    /// Runs one trajectory. With `always` it is accepted whatever dH is.
    ///
    /// # Errors
    /// A term failed; the links are then those at the start.
    pub fn trajectory(&mut self, number: u64, always: bool) -> Result<Outcome, HmcError> {
        let Some(smd) = &mut self.smd else { return self.cycle(number, true, always) };
        smd.first.copy_from(&self.links)?;
        let cycles = smd.params.cycles;
        let mut whole: Option<Outcome> = None;
        for n in 0..cycles {
            let done = self.cycle(number * cycles + n, n == 0, always);
            if let (Err(_), Some(smd)) = (&done, &self.smd) {
                let _ = self.links.copy_from(&smd.first);
            }
            whole = Some(whole.into_iter().fold(done?, |next, before| next.after(&before)));
        }
        Ok(whole.expect("a cycle at least"))
    }

    /// A trajectory of HMC, or a cycle, that draws the random numbers of `number`; `fresh`: all of momenta and pseudofermions.
    fn cycle(&mut self, number: u64, fresh: bool, always: bool) -> Result<Outcome, HmcError> {
        let start = Instant::now();
        self.saved.copy_from(&self.links)?;
        let walked = self.walk(number, fresh);
        let (delta_h, levels, terms) = match walked {
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
            if let Some(smd) = &self.smd {
                smd.turn(&mut self.momenta)?;
            }
        }
        let (accepted_cycles, seconds) = (u64::from(accepted), start.elapsed().as_secs_f64());
        Ok(Outcome { delta_h, accepted, accepted_cycles, levels, terms, seconds })
    }

    /// The terms' reports on the last trajectory, with their names.
    pub fn reports(&self) -> Vec<(&str, TermReport)> {
        self.actions.iter().filter_map(|term| Some((term.name(), term.report()?))).collect()
    }

    /// Asks each term for its heat bath, its value and its forces, and ignores what it answers: on a device that only
    /// records, for the kernels of its solves. Forces are asked for several times, since later ones may start from
    /// a guess.
    pub fn ask_all(&mut self) {
        for action in &mut self.actions {
            let parts = action.parts().len();
            let parts = if parts == 0 { vec![None] } else { (0..parts).map(Some).collect() };
            // Whether the numbers make sense does not matter here.
            let _ = action.refresh(&self.links, 0, 1);
            let _ = action.value(&self.links);
            for part in parts.into_iter().flat_map(|part| [part; 4]) {
                let _ = action.add_part(part, &self.links, &mut self.force);
            }
        }
        if let Some(smd) = &mut self.smd {
            let _ = smd.begin(&self.momenta, &mut self.actions);
            let _ = smd.mix(&mut self.momenta, &mut self.actions);
        }
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
        let named = self.actions.iter_mut().map(|term| (term.name().to_owned(), term.pseudofermions()));
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
        let values = self.values(|term, links| term.value(links))?;
        let names = self.actions.iter().map(|term| term.name().to_owned());
        Ok(Energies { momenta, terms: names.zip(values.into_iter().map(|valued| valued.value)).collect() })
    }

    fn walk(
        &mut self,
        number: u64,
        fresh: bool,
    ) -> Result<(f64, Vec<KickReport>, Vec<TermOutcome>), HmcError> {
        let (momenta, drawn) = if fresh { self.draw(number)? } else { self.draw_some(number)? };
        if let Some(smd) = &mut self.smd {
            smd.begin(&self.momenta, &mut self.actions)?;
        }
        let (levels, mut terms) = self.integrate()?;
        let mut change = self.momenta.kinetic()? - momenta;
        let values = self.values(|term, links| term.value(links))?;
        let members = self.levels.iter().flatten();
        for (member, outcome) in members.zip(&mut terms).filter(|(member, _)| member.part.unwrap_or(0) == 0) {
            let (before, after) = (&drawn[member.action], &values[member.action]);
            let delta = after.value - before.value;
            outcome.delta = Some(delta.value());
            (outcome.heat_bath_seconds, outcome.value_seconds) = (before.seconds, after.seconds);
            change += delta;
        }
        let delta_h = change.value();
        if delta_h.is_finite() { Ok((delta_h, levels, terms)) } else { Err(HmcError::Hamiltonian) }
    }

    /// Draws momenta and pseudofermions; returns H.
    pub fn refresh(&mut self, trajectory: u64) -> Result<ExactSum, HmcError> {
        let (momenta, drawn) = self.draw(trajectory)?;
        Ok(drawn.iter().fold(momenta, |sum, term| sum + term.value))
    }

    /// Draws momenta and pseudofermions; returns the kinetic energy and the terms' values.
    fn draw(&mut self, trajectory: u64) -> Result<(ExactSum, Vec<Valued>), HmcError> {
        let seed = self.seed;
        self.momenta.set_random(RandomAddress { seed, trajectory, purpose: Purpose::Momenta })?;
        let momenta = self.momenta.kinetic()?;
        Ok((momenta, self.values(|term, links| term.refresh(links, seed, trajectory))?))
    }

    /// Draws a part of momenta and pseudofermions, for a cycle that goes on.
    fn draw_some(&mut self, number: u64) -> Result<(ExactSum, Vec<Valued>), HmcError> {
        if let Some(smd) = &mut self.smd {
            smd.keep_momenta(&self.momenta)?;
        }
        let mut drawn = self.draw(number)?;
        let Some(smd) = self.smd.as_ref().filter(|smd| smd.keeps()) else { return Ok(drawn) };
        smd.mix(&mut self.momenta, &mut self.actions)?;
        drawn.0 = self.momenta.kinetic()?;
        let valued = self.values(|term, links| term.value(links))?;
        // What is drawn has its value by chance alone: it is that of its mixture now.
        for (before, after) in drawn.1.iter_mut().zip(valued) {
            *before = Valued { value: after.value, seconds: before.seconds + after.seconds };
        }
        Ok(drawn)
    }

    /// The terms' values as `of` computes them.
    fn values(
        &mut self,
        of: impl Fn(&mut dyn Action, &MatrixField) -> Result<ExactSum, ActionError>,
    ) -> Result<Vec<Valued>, HmcError> {
        let mut values = Vec::new();
        for term in &mut self.actions {
            let _label = self.domain.device().label(term.name());
            let start = Instant::now();
            let value = of(&mut **term, &self.links).map_err(|source| failed(term.name(), source))?;
            values.push(Valued { value, seconds: start.elapsed().as_secs_f64() });
        }
        Ok(values)
    }

    fn integrate(&mut self) -> Result<(Vec<KickReport>, Vec<TermOutcome>), HmcError> {
        let mut reports = vec![KickReport::default(); self.levels.len()];
        let mut terms = Vec::new();
        for (level, members) in self.levels.iter().enumerate() {
            terms
                .push(members.iter().map(|member| TermOutcome::new(&member.name, level)).collect::<Vec<_>>());
        }
        for step in self.moves.clone() {
            let start = Instant::now();
            let (level, eps) = match step {
                Move::Drift { eps } => {
                    self.momenta.drift(&mut self.links, eps)?;
                    continue;
                }
                Move::Kick { level, eps } => {
                    self.force_of(level, false, &mut terms[level])?;
                    (level, eps)
                }
                Move::GradientKick { level, eps, shift } => {
                    self.force_of(level, false, &mut terms[level])?;
                    let shifted = self.shifted.as_mut().expect("made with the moves");
                    shifted.copy_from(&self.links)?;
                    self.force.drift(shifted, -shift)?;
                    self.force_of(level, true, &mut terms[level])?;
                    (level, eps)
                }
            };
            let report = &mut reports[level];
            self.kick(level, eps, report)?;
            report.seconds += start.elapsed().as_secs_f64();
        }
        for (report, terms) in reports.iter_mut().zip(&mut terms) {
            report.norm /= report.kicks.max(1) as f64;
            report.iterations = terms.iter().map(|term| term.force.iterations).sum();
            match &mut terms[..] {
                [only] => only.force = *report,
                several => {
                    several.iter_mut().for_each(|term| term.force.norm /= term.force.kicks.max(1) as f64);
                }
            }
        }
        Ok((reports, terms.into_iter().flatten().collect()))
    }

    /// Sets `force` to the sum over a level's terms, on the links or on the `shifted` ones.
    fn force_of(
        &mut self,
        level: usize,
        shifted: bool,
        outcomes: &mut [TermOutcome],
    ) -> Result<(), HmcError> {
        let Self { links, shifted: away, force, before, actions, .. } = self;
        let links = if shifted { away.as_ref().expect("made with the moves") } else { &*links };
        force.set_zero()?;
        let members = &self.levels[level];
        // A single term's force is the level's.
        let mut before = before.as_mut().filter(|_| members.len() > 1);
        if let Some(before) = &mut before {
            before.set_zero()?;
        }
        for (member, outcome) in members.iter().zip(outcomes) {
            let start = Instant::now();
            let term = &mut actions[member.action];
            let _label = links.domain().device().label(term.name());
            let done = term.add_part(member.part, links, force);
            let own = &mut outcome.force;
            own.iterations += done.map_err(|source| failed(&member.name, source))?;
            if let Some(before) = &mut before {
                before.combine(-1.0, 1.0, force)?;
                let (norm2, max) = before.norms()?;
                before.copy_from(force)?;
                own.add_kick(norm2, max, links.domain());
                own.seconds += start.elapsed().as_secs_f64();
            }
        }
        Ok(())
    }

    fn kick(&mut self, level: usize, eps: f64, report: &mut KickReport) -> Result<(), HmcError> {
        let (norm2, max) = self.momenta.combine(1.0, -eps, &self.force)?;
        if !(norm2.is_finite() && max.is_finite()) {
            let names = self.levels[level].iter().map(|member| member.name.as_str());
            return Err(HmcError::Force { level, terms: names.collect::<Vec<_>>().join(", ") });
        }
        report.add_kick(norm2, max, &self.domain);
        Ok(())
    }
}

/// Whether a force is taken at shifted links.
fn is_shifted(moves: &[Move]) -> bool {
    moves.iter().any(|step| matches!(step, Move::GradientKick { .. }))
}

fn failed(term: &str, source: ActionError) -> HmcError {
    HmcError::Term { term: term.to_string(), source }
}
