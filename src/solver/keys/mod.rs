//! The keys of solvers: `[fermion.NAME.solver]` of Wilson and domain-wall quarks. Each key of a Hasenbusch factor's
//! solver defaults to the fermion's.

mod tables;

pub(crate) use crate::config::doubts::{loose, tight};
pub(crate) use tables::{MAX_ITERATIONS, SOLVER, WALL_SOLVER};

use super::method::{METHODS, Wanted};
use super::mixes::{ALL, Mix, PLAIN, PLAIN_OR_SHIFTED, SHIFTED, names};
pub(crate) use super::row::Boxes;
use super::{Choice, Method, Past, Settings};
use crate::config::raw::Table;
use crate::config::reader::choice;
use crate::device::Precision;
use tables::{ACTION_RESIDUAL, DELTA, FORCE_RESIDUAL, GUESS, GUESS_PRECISION, LINK_REALS, METHOD, PRECISION};

/// The solver of a term's systems, with its residuals.
#[derive(Clone, Debug, PartialEq)]
pub struct TermSolver {
    /// The method, its precisions and limits.
    pub settings: Settings,
    /// Reals per link in the operator: 18, 12 or 8.
    pub link_reals: usize,
    /// The past solutions of which the next one is guessed.
    pub guess: Past,
    /// `|b - A x| / |b|` in the heat bath and the action.
    pub action_residual: f64,
    /// `|b - A x| / |b|` in the forces.
    pub force_residual: f64,
    /// With `method = "auto"`, what a chain still has to choose from; `settings` are those of the first. Empty once it
    /// has chosen.
    pub candidates: Vec<Choice>,
}

/// For reversibility with guesses from past solutions, forces must be solved at least this well.
const GUESS_RESIDUAL: f64 = 1e-9;

/// The systems of a solver, which limit its methods and precisions.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Systems {
    /// One at a time, by any method.
    Any,
    /// Systems of domain-wall quarks, one at a time, by conjugate gradients.
    Wall,
    /// All shifts at once, by conjugate gradients, as required by a key.
    Shifted {
        /// That key.
        by: &'static str,
    },
}

/// The keys of a solver's table; missing ones come from its fermion.
#[derive(Clone)]
pub(crate) struct SolverKeys {
    /// `None` after a mistake.
    method: Option<Wanted>,
    /// What the chain has chosen; only with "auto".
    chosen: Option<Choice>,
    systems: Systems,
    precision: Option<[Precision; 3]>,
    delta: Option<f64>,
    /// Every method with its own settings, and whether the input has its table.
    own: Vec<(Method, bool)>,
    link_reals: usize,
    action_residual: f64,
    force_residual: f64,
    max_iterations: usize,
    guess: Past,
}

/// The combinations of precisions of a method; those of "auto" and after a mistake are those without a preconditioner.
fn mixes(wanted: Option<Wanted>) -> &'static [Mix] {
    if let Some(Wanted::One(method)) = wanted { method.row().mixes } else { &PLAIN }
}

impl SolverKeys {
    /// Reads the table of a fermion, or of a factor of the `fermion` with these keys. `chosen`: what a chain has chosen
    /// for "auto".
    pub(crate) fn read(
        mut table: Table,
        fermion: Option<&Self>,
        systems: Systems,
        boxes: Boxes,
        chosen: Option<&Choice>,
    ) -> Self {
        let method = table.get(&METHOD);
        let mut method = if table.has(METHOD.name()) { method } else { fermion.map_or(method, |f| f.method) };
        let is_linear = matches!(method, Some(Wanted::One(method)) if method.row().is_linear);
        if systems == Systems::Wall && is_linear {
            let cg = Method::CG.row().word;
            table.mistake("method", format!("method: domain-wall quarks are solved only by {cg:?}"));
            method = None;
        }
        let chosen = chosen.filter(|_| method == Some(Wanted::Auto));
        if let Some(choice) = chosen.filter(|choice| choice.meaning().is_none()) {
            table.mistake(
                "method",
                format!("method: the chain has chosen {choice}, which this program does not know"),
            );
        }
        // Precisions are inherited by methods that have the same ones.
        let akin = fermion.filter(|f| mixes(method) == mixes(f.method));
        let allowed: &'static [Mix] = match (mixes(method), systems) {
            _ if method.is_none() => ALL,
            (plain, Systems::Shifted { .. }) if plain == PLAIN => &PLAIN_OR_SHIFTED,
            (own, _) => own,
        };
        let precision = table.get_by(&PRECISION, |value| choice(allowed)(value));
        let mut keys = Self {
            method,
            chosen: chosen.cloned(),
            systems,
            precision: precision.or(akin.and_then(|f| f.precision)),
            delta: table.get(&DELTA).or(akin.and_then(|f| f.delta)),
            own: Vec::new(),
            link_reals: table.get_or(&LINK_REALS, fermion.map(|f| f.link_reals)),
            action_residual: table.get_or(&ACTION_RESIDUAL, fermion.map(|f| f.action_residual)),
            force_residual: table.get_or(&FORCE_RESIDUAL, fermion.map(|f| f.force_residual)),
            max_iterations: table.get_or(&MAX_ITERATIONS, fermion.map(|f| f.max_iterations)),
            guess: Past {
                solutions: table.get_or(&GUESS, fermion.map(|f| f.guess.solutions)),
                precision: table.get_or(&GUESS_PRECISION, fermion.map(|f| f.guess.precision)),
            },
        };
        if boxes.time.has_walls() && keys.link_reals == 8 && table.has("link_reals") {
            let message = "link_reals: 8 cannot tell the zero matrices of walls in time; take 12 or 18";
            table.mistake("link_reals", message);
        }
        keys.own = keys.read_own(&mut table, fermion, boxes);
        tight(&table, "action_residual", keys.action_residual);
        loose(&table, "action_residual", keys.action_residual);
        tight(&table, "force_residual", keys.force_residual);
        keys.check(&table, fermion.is_some());
        keys.record(&mut table);
        table.finish();
        keys
    }

    /// Records the solver for the comparison on resume.
    fn record(&self, table: &mut Table) {
        let TermSolver { settings, link_reals, guess, action_residual, force_residual, candidates } =
            self.solver();
        if candidates.is_empty() {
            table.keep("method", &settings.method);
            table.keep("precision", &settings.precisions);
            table.keep("delta", &settings.delta);
        } else {
            table.keep("method", &Wanted::Auto);
            table.keep("precision", &self.precision);
            table.keep("delta", &self.delta);
        }
        table.keep("link_reals", &link_reals);
        table.keep("action_residual", &action_residual);
        table.keep("force_residual", &force_residual);
        table.keep("guess", &guess.solutions);
        table.keep("guess_precision", &guess.precision);
    }

    /// Reads the tables of methods.
    fn read_own(&self, table: &mut Table, fermion: Option<&Self>, boxes: Boxes) -> Vec<(Method, bool)> {
        let mut all = Vec::new();
        for (n, method) in METHODS.iter().enumerate() {
            let (inherited, was_there) = fermion.map_or((*method, false), |fermion| fermion.own[n]);
            let word = method.row().word;
            if method.row().keys.is_empty() {
                all.push((inherited, false));
                continue;
            }
            let mut own = table.table(word);
            let (read, is_there) = (inherited.read(&mut own), was_there || own.exists());
            let is_used = self.takes(read) || self.tries(read, is_there);
            if own.exists() && !is_used && self.method.is_some() {
                let tried = match self.method {
                    Some(Wanted::Auto) if self.systems == Systems::Any => {
                        ", which \"auto\" tries without a precision"
                    }
                    _ => "",
                };
                table.mistake(word, format!("{word}: only the method \"{word}\" has this table{tried}"));
            }
            if is_used {
                // A mistake is reported where it is made, not again where it is inherited.
                let solver = Some(&*table).filter(|table| fermion.is_none() || table.has("method"));
                read.check(solver, &own, boxes);
            }
            // They are recorded with the method.
            own.kept_elsewhere();
            own.finish();
            all.push((read, is_there));
        }
        all
    }

    /// Whether the input names this method.
    fn takes(&self, method: Method) -> bool {
        matches!(self.method, Some(Wanted::One(wanted)) if wanted.is(method))
    }

    /// Whether "auto" tries a method. It tries one with keys only if the input has their table, since such a method takes memory
    /// and time of its own, or its bits depend on the grid of ranks by default; and in precisions of its own.
    fn tries(&self, method: Method, is_there: bool) -> bool {
        let row = method.row();
        let serves = self.systems == Systems::Any || !row.is_linear;
        let is_asked_for = row.keys.is_empty() || (is_there && self.precision.is_none());
        self.method == Some(Wanted::Auto) && serves && is_asked_for
    }

    /// Checks keys against each other. A mistake is reported where it is made, not again where it is inherited.
    fn check(&self, table: &Table, inherits: bool) {
        if let Systems::Shifted { by } = self.systems {
            self.check_multi_shift(table, by);
        } else if self.guess.solutions > 0 && self.force_residual > GUESS_RESIDUAL {
            let found = self.force_residual;
            let message = format!(
                "guess: past solutions break reversibility at the size of force_residual: \
                 solve to {GUESS_RESIDUAL:e} or better, not {found:e}"
            );
            if !inherits || table.has("guess") || table.has("force_residual") {
                table.warning("guess", message);
            }
        }
    }

    /// `by`: the key that requires shifts.
    fn check_multi_shift(&self, table: &Table, by: &str) {
        if self.method.is_some_and(|wanted| ![Wanted::Auto, Wanted::One(Method::CG)].contains(&wanted)) {
            table.mistake("method", format!("method: {by} is solved by \"cg\" for all shifts at once"));
        } else if self.precision.is_some_and(|precision| SHIFTED.iter().all(|(_, mix)| *mix != precision)) {
            table.mistake("precision", format!("precision: {by} is solved in {}", names(&SHIFTED)));
        }
        if self.guess.solutions > 0 {
            table.mistake("guess", format!("guess: with {by}, solves for all shifts start from zero"));
        }
    }

    /// What "auto" chooses from.
    fn candidates(&self) -> Vec<Choice> {
        let tried = self.own.iter().filter(|(method, is_there)| self.tries(*method, *is_there));
        let each = |(method, _): &(Method, bool)| -> Vec<Choice> {
            let precisions = match (self.precision, self.systems) {
                (Some(precision), _) => vec![precision],
                (None, Systems::Shifted { .. }) => vec![SHIFTED[0].1],
                (None, _) => method.row().tries.iter().map(|(_, mix)| *mix).collect(),
            };
            precisions.into_iter().map(|mix| Choice::new(*method, mix)).collect()
        };
        tried.flat_map(each).collect()
    }

    /// The method without its own keys, its usual precisions, and what is left to choose from.
    fn taken(&self) -> (Method, [Precision; 3], Vec<Choice>) {
        let usual = |method: Method| match self.systems {
            Systems::Shifted { .. } => SHIFTED[0].1,
            _ => method.row().mixes[0].1,
        };
        match self.method {
            Some(Wanted::One(method)) => (method, usual(method), Vec::new()),
            Some(Wanted::Auto) => {
                let mut open = self.candidates();
                let taken = self.chosen.as_ref().unwrap_or(&open[0]).meaning();
                let (method, precisions) = taken.unwrap_or((Method::CG, usual(Method::CG)));
                if self.chosen.is_some() || open.len() == 1 {
                    open.clear();
                }
                (method, precisions, open)
            }
            None => (Method::CG, usual(Method::CG), Vec::new()),
        }
    }

    /// The solver, with the defaults of its method and precision.
    pub(crate) fn solver(&self) -> TermSolver {
        let (method, usual, candidates) = self.taken();
        let precisions = self.precision.unwrap_or(usual);
        let own = self.own.iter().find(|(own, _)| own.is(method));
        let method = own.map_or(method, |(own, _)| *own);
        let delta = self.delta.unwrap_or_else(|| method.usual_delta(precisions));
        TermSolver {
            settings: Settings { method, precisions, delta, max_iterations: self.max_iterations },
            link_reals: self.link_reals,
            guess: self.guess,
            action_residual: self.action_residual,
            force_residual: self.force_residual,
            candidates,
        }
    }
}
