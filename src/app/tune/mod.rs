//! `hmc tune`: steps and schemes for an input, its Hasenbusch masses and the levels of its terms, from trajectories of it.
//! Nothing of an ensemble is written.
//!
//! - `arrange`: other masses, and terms on other levels
//! - `design`: which steps and schemes are tried
//! - `edit`: the text of an input with other levels and masses
//! - `table`: what is printed
//!
//! All trials walk from the same starts, with the same momenta and pseudofermions, so that they differ by their errors
//! alone. [`Model`](crate::hmc::Model) finds the error of each level and scheme from them and proposes the fastest steps
//! with the wanted acceptance. The proposal is walked from the starts too, and joins the trials, until what is proposed has
//! been walked.

mod arrange;
mod design;
mod edit;
mod table;

use crate::app::bench::{TermRow, term_rows};
use crate::app::chain::dry;
use crate::app::commands::files;
use crate::app::machine::start;
use crate::app::output;
use crate::app::{AppError, Ranks};
use crate::comm::agree;
use crate::field::HostLinks;
use crate::hmc::{Chain, HmcError, Level, Model, Outcome, Trial};
use crate::input::{Input, Start};
use serde::Serialize;
use std::path::PathBuf;
use table::Table;

/// Options of `hmc tune`.
#[derive(Clone, Debug)]
pub struct Tune {
    /// The input of a run.
    pub input: PathBuf,
    /// Where to start instead of at the run's start.
    pub links: Option<PathBuf>,
    /// The number of starts: trajectories of each trial.
    pub trajectories: u64,
    /// The acceptance wanted.
    pub acceptance: f64,
    /// Whether to vary the Hasenbusch masses.
    pub masses: bool,
    /// Whether to move quarks' terms to other levels.
    pub levels: bool,
    /// Where to write the input as proposed.
    pub write: Option<PathBuf>,
    /// Whether that file may exist.
    pub force: bool,
    /// One JSON object instead of tables.
    pub json: bool,
}

/// |dH| up to which higher orders are small enough to begin with.
const BEGIN: f64 = 1.0;
/// How often the outermost steps are doubled to get there.
const DOUBLINGS: usize = 7;
/// Proposals that are walked.
const PROPOSALS: usize = 6;

/// Why a trial was walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Reason {
    /// The input's levels.
    Input,
    /// It tells the error of a level and scheme.
    Trial,
    Proposal,
}

/// How the search for steps ended.
enum Settled {
    /// The table has a proposal that was walked.
    Proposed,
    /// What the model proposes is not worth walking: so many seconds a trajectory.
    Slower(f64),
    /// No steps with the acceptance wanted.
    Nothing,
}

/// The chain, and where its trials start.
struct Walker<'a> {
    chain: Chain,
    tau: f64,
    comm: &'a Ranks,
    starts: Vec<HostLinks>,
}

/// Proposes steps and schemes, and prints what to expect of them.
///
/// # Errors
/// Wrong input, an error of a trajectory, or no steps with the wanted acceptance.
pub fn tune(args: &Tune, comm: &Ranks) -> Result<(), AppError> {
    let input = dry::load(&args.input, args.links.as_deref(), comm)?;
    agree(&**comm, if comm.rank() == 0 { args.check_write() } else { Ok(()) })?;
    if matches!(input.run.start, Start::Hot | Start::Cold) && comm.rank() == 0 {
        output::warn(
            "the run's start is not thermalised, and dH is not that of the ensemble: --links CONFIGURATION starts from one \
             of it",
        );
    }
    start::in_pool(&input.parallel, &**comm, || {
        let speaks = comm.rank() == 0;
        let tell =
            |words: &dyn Fn() -> Result<(), AppError>| agree(&**comm, if speaks { words() } else { Ok(()) });
        let (walker, table) = propose(args, &input, comm)?;
        let proposed = if args.masses || args.levels {
            tell(&|| if args.json { Ok(()) } else { table.print(&input, false) })?;
            let found = arrange::search(args, walker, &input, &table)?;
            tell(&|| found.print(&table, args.json))?;
            found.input
        } else {
            tell(&|| table.print(&input, args.json))?;
            arrange::with_text(&input, edit::with_levels(&input.text, table.levels()), comm)?
        };
        tell(&|| args.write(&proposed))
    })
}

impl Tune {
    /// Whether the proposal can be written, before the time for it is spent.
    fn check_write(&self) -> Result<(), AppError> {
        self.write.as_ref().map_or(Ok(()), |path| files::require_new(path, self.force))
    }

    fn write(&self, proposed: &Input) -> Result<(), AppError> {
        let Some(path) = &self.write else { return Ok(()) };
        let failed = |source| AppError::Folder { path: path.clone(), action: "write", source };
        std::fs::write(path, &proposed.text).map_err(failed)
    }
}

/// Walks the trials and the proposals.
fn propose<'a>(args: &Tune, input: &Input, comm: &'a Ranks) -> Result<(Walker<'a>, Table), AppError> {
    let mut walker = Walker { chain: dry::chain(input, comm)?, tau: input.hmc.tau, comm, starts: Vec::new() };
    let speaks = comm.rank() == 0 && !args.json;
    let mut table = Table::new(input, walker.chain.links.domain(), args, speaks)?;
    table.begin(args.trajectories)?;
    let (basis, tried) = walker.basis(&design::separate(&input.hmc.levels), &table)?;
    let finest = design::finer(&basis, 0);
    // The finest steps make the starts: their trajectories are accepted most.
    let trial = walker.start_from(&finest, args.trajectories)?;
    table.add(trial, Reason::Trial, None)?;
    let today = &input.hmc.levels;
    if tried == 0 {
        let (trial, outcomes) = walker.walk(today)?;
        table.tell_terms(walker.rows(&outcomes), &outcomes);
        table.add(trial, Reason::Input, None)?;
    }
    let others = design::trials(&basis);
    for levels in std::iter::once(basis.clone()).filter(|basis| basis != today).chain(others) {
        let (trial, outcomes) = walker.walk(&levels)?;
        if table.lines.len() == 1 {
            table.tell_terms(walker.rows(&outcomes), &outcomes);
        }
        table.add(trial, Reason::Trial, None)?;
    }
    if !matches!(walker.settle(&mut table, args.acceptance, f64::INFINITY)?, Settled::Proposed) {
        return Err(AppError::Refused(format!(
            "no steps were found with an acceptance of {}: do the terms conserve H? (a loose force_residual, the bounds of \
             a rational function)",
            args.acceptance
        )));
    }
    Ok((walker, table))
}

impl Walker<'_> {
    /// The chain of another input, with the same starts.
    fn with_input(self, input: &Input) -> Result<Self, AppError> {
        let Self { chain, tau, comm, starts } = self;
        // Two would need twice the memory.
        drop(chain);
        Ok(Self { chain: dry::chain(input, comm)?, tau, comm, starts })
    }

    /// Walks what the model proposes, until it proposes nothing new or nothing within `limit` seconds a trajectory.
    fn settle(&mut self, table: &mut Table, acceptance: f64, limit: f64) -> Result<Settled, AppError> {
        for _ in 0..PROPOSALS {
            let model = self.model(table);
            let Some((levels, expected)) = model.fastest(acceptance, &table.refused()) else {
                return Ok(Settled::Nothing);
            };
            if table.settle(&levels) {
                break;
            }
            if expected.seconds > limit {
                return Ok(Settled::Slower(expected.seconds));
            }
            let (trial, _) = self.walk(&levels)?;
            table.add(trial, Reason::Proposal, Some(expected))?;
        }
        table.choose(&self.model(table));
        Ok(Settled::Proposed)
    }

    /// Doubles the outermost steps until dH is small enough for the leading order; also answers how often.
    fn basis(&mut self, levels: &[Level], table: &Table) -> Result<(Vec<Level>, usize), AppError> {
        let first = self.chain.links.to_host()?;
        let mut levels = levels.to_vec();
        for tried in 0..=DOUBLINGS {
            self.chain.set_levels(&levels)?;
            let walked = self.chain.trajectory(0, true);
            self.chain.links.set_host(&first)?;
            let delta_h = match walked {
                Ok(outcome) => outcome.delta_h,
                Err(HmcError::Hamiltonian | HmcError::Force { .. }) => f64::INFINITY,
                Err(source) => return Err(AppError::Trajectory { number: 1, source }),
            };
            if delta_h.abs() <= BEGIN {
                return Ok((levels, tried));
            }
            table.too_long(&levels, delta_h)?;
            levels = design::finer(&levels, 0);
        }
        Err(AppError::Refused(format!(
            "|dH| > {BEGIN} even with {} steps on the outermost level: the links are far from thermalised, or the terms do not \
             conserve H",
            levels[0].steps / 2
        )))
    }

    /// Walks a chain with these levels; its trajectories begin at the starts of all further trials.
    fn start_from(&mut self, levels: &[Level], starts: u64) -> Result<Trial, AppError> {
        self.chain.set_levels(levels)?;
        let mut outcomes = Vec::new();
        for number in 0..starts {
            self.starts.push(self.chain.links.to_host()?);
            let failed = |source| AppError::Trajectory { number: number + 1, source };
            outcomes.push(self.chain.trajectory(number, false).map_err(failed)?);
            self.chain.links.unitarity(true)?;
        }
        Ok(self.trial(levels, &outcomes))
    }

    /// Walks these levels from each start.
    fn walk(&mut self, levels: &[Level]) -> Result<(Trial, Vec<Outcome>), AppError> {
        self.chain.set_levels(levels)?;
        let mut outcomes = Vec::new();
        for (number, start) in (0..).zip(&self.starts) {
            self.chain.links.set_host(start)?;
            let failed = |source| AppError::Trajectory { number: number + 1, source };
            outcomes.push(self.chain.trajectory(number, true).map_err(failed)?);
        }
        Ok((self.trial(levels, &outcomes), outcomes))
    }

    fn trial(&self, levels: &[Level], outcomes: &[Outcome]) -> Trial {
        // The least of all starts: what else the machine does disturbs it least.
        let least = |of: &dyn Fn(&Outcome) -> f64| {
            self.comm.max(outcomes.iter().map(of).fold(f64::INFINITY, f64::min))
        };
        let forces = |outcome: &Outcome| outcome.levels.iter().map(|level| level.seconds).sum::<f64>();
        let ends = |outcome: &Outcome| {
            outcome.terms.iter().map(|term| term.heat_bath_seconds + term.value_seconds).sum::<f64>()
        };
        let iterations = |l: usize| {
            let all = outcomes.iter().map(|outcome| outcome.levels[l].iterations).sum::<usize>();
            all as f64 / outcomes.len() as f64
        };
        Trial {
            levels: levels.to_vec(),
            delta_h: outcomes.iter().map(|outcome| outcome.delta_h).collect(),
            force_seconds: (0..levels.len()).map(|l| least(&|outcome| outcome.levels[l].seconds)).collect(),
            end_seconds: least(&ends),
            drift_seconds: least(&|outcome| outcome.seconds - forces(outcome) - ends(outcome)),
            iterations: (0..levels.len()).map(iterations).collect(),
        }
    }

    fn model(&self, table: &Table) -> Model {
        Model::of(&table.trials(), self.tau).expect("the design tells each level and scheme")
    }

    fn rows(&self, outcomes: &[Outcome]) -> Vec<TermRow> {
        term_rows(outcomes, &|seconds| self.comm.max(seconds))
    }
}
