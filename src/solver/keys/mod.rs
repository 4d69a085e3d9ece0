//! The keys of solvers: `[fermion.NAME.solver]` of Wilson and domain-wall quarks. Each key of a Hasenbusch factor's
//! solver defaults to the fermion's.

mod tables;

pub(crate) use crate::config::doubts::{loose, tight};
pub(crate) use tables::{MAX_ITERATIONS, SOLVER, WALL_SOLVER};

use super::method::METHODS;
use super::mixes::{ALL, MULTIGRID, PLAIN, PLAIN_OR_SHIFTED, SCHWARZ, SHIFTED, names};
use super::{Choice, Method, Multigrid, MultigridParams, Past, Settings, usual_delta};
use crate::config::raw::Table;
use crate::config::reader::choice;
use crate::device::Precision::{self, Half};
use crate::lattice::{Extents, Partition, shape, volume};
use tables::{
    ACTION_RESIDUAL, AGGREGATE, COARSE_AGGREGATE, DELTA, FORCE_RESIDUAL, GUESS, GUESS_PRECISION, K_MAX,
    LINK_REALS, METHOD, N_MR, PRECISION, SCHWARZ_BLOCK, VECTORS,
};

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

/// The method of an input.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wanted {
    One(Method),
    /// The fastest in a trial.
    Auto,
}

/// For reversibility with guesses from past solutions, forces must be solved at least this well.
const GUESS_RESIDUAL: f64 = 1e-9;

/// The lattice and its partition, if they are known.
#[derive(Clone, Copy, Default)]
pub(crate) struct Boxes {
    pub lattice: Option<Extents>,
    pub partition: Option<Partition>,
}

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

/// Whether a method has the keys of the Schwarz preconditioner.
fn is_schwarz(wanted: Option<Wanted>) -> bool {
    matches!(wanted, Some(Wanted::One(Method::GcrDd { .. })))
}

fn is_multigrid(wanted: Option<Wanted>) -> bool {
    matches!(wanted, Some(Wanted::One(Method::Multigrid { .. })))
}

/// Whether two methods have the same preconditioner, if any.
fn akin(one: Option<Wanted>, other: Option<Wanted>) -> bool {
    (is_schwarz(one), is_multigrid(one)) == (is_schwarz(other), is_multigrid(other))
}

/// The keys of the multigrid preconditioner alone.
const AGGREGATES: [&str; 3] = ["aggregate", "coarse_aggregate", "vectors"];

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
    k_max: usize,
    n_mr: Option<usize>,
    block: Option<Extents>,
    /// Whether the input has a block.
    has_block: bool,
    aggregate: Extents,
    coarse_aggregate: Option<Extents>,
    vectors: usize,
    /// Whether the input has one of these.
    has_aggregate: bool,
    link_reals: usize,
    action_residual: f64,
    force_residual: f64,
    max_iterations: usize,
    guess: Past,
}

/// Whether aggregates fit, which are called `what`. With the default, the mistake is the method's.
fn check_aggregates(table: &Table, boxes: Boxes, (key, what): (&str, &str), block: Extents) {
    let cuts = |whole: Extents| (0..4).all(|mu| whole[mu].is_multiple_of(block[mu]));
    let own = shape(block);
    if let Some(lattice) = boxes.lattice.filter(|lattice| !Multigrid::fits(*lattice, block)) {
        let lattice = shape(lattice);
        let message = format!(
            "{key}: {what} of {own} do not divide the lattice of {lattice} into several, one or an even number in each direction"
        );
        table.mistake(key, message);
    } else if let Some(local) = boxes.partition.map(|p| p.local()).filter(|local| !cuts(*local)) {
        let local = shape(local);
        table.mistake(key, format!("{key}: {what} of {own} do not divide a rank's box of {local}"));
    }
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
        let has = |wanted: Method| method.is_none_or(|m| m == Wanted::Auto || m == Wanted::One(wanted));
        if systems == Systems::Wall && !has(Method::Cg) {
            table.mistake("method", "method: domain-wall quarks are solved only by \"cg\"");
            method = None;
        }
        let chosen = chosen.filter(|_| method == Some(Wanted::Auto));
        if let Some(choice) = chosen.filter(|choice| choice.meaning().is_none()) {
            table.mistake(
                "method",
                format!("method: the chain has chosen {choice}, which this program does not know"),
            );
        }
        // Precisions of a method with a preconditioner are not inherited by other methods, nor the reverse.
        let akin = fermion.filter(|f| akin(method, f.method));
        let precision = table.get_by(&PRECISION, |value| match method {
            Some(Wanted::One(Method::GcrDd { .. })) => choice(&SCHWARZ)(value),
            Some(Wanted::One(Method::Multigrid { .. })) => choice(&MULTIGRID)(value),
            Some(_) if matches!(systems, Systems::Shifted { .. }) => choice(&PLAIN_OR_SHIFTED)(value),
            Some(_) => choice(&PLAIN)(value),
            None => choice(ALL)(value),
        });
        let keys = Self {
            method,
            chosen: chosen.cloned(),
            systems,
            precision: precision.or(akin.and_then(|f| f.precision)),
            delta: table.get(&DELTA).or(akin.and_then(|f| f.delta)),
            k_max: table.get_or(&K_MAX, fermion.map(|f| f.k_max)),
            n_mr: table.get(&N_MR).or(akin.and_then(|f| f.n_mr)),
            block: table.get_or(&SCHWARZ_BLOCK, fermion.map(|f| f.block)),
            has_block: table.has(SCHWARZ_BLOCK.name()) || fermion.is_some_and(|f| f.has_block),
            aggregate: table.get_or(&AGGREGATE, fermion.map(|f| f.aggregate)),
            coarse_aggregate: table.get_or(&COARSE_AGGREGATE, fermion.map(|f| f.coarse_aggregate)),
            vectors: table.get_or(&VECTORS, fermion.map(|f| f.vectors)),
            has_aggregate: AGGREGATES.iter().any(|key| table.has(key))
                || fermion.is_some_and(|f| f.has_aggregate),
            link_reals: table.get_or(&LINK_REALS, fermion.map(|f| f.link_reals)),
            action_residual: table.get_or(&ACTION_RESIDUAL, fermion.map(|f| f.action_residual)),
            force_residual: table.get_or(&FORCE_RESIDUAL, fermion.map(|f| f.force_residual)),
            max_iterations: table.get_or(&MAX_ITERATIONS, fermion.map(|f| f.max_iterations)),
            guess: Past {
                solutions: table.get_or(&GUESS, fermion.map(|f| f.guess.solutions)),
                precision: table.get_or(&GUESS_PRECISION, fermion.map(|f| f.guess.precision)),
            },
        };
        tight(&table, "action_residual", keys.action_residual);
        loose(&table, "action_residual", keys.action_residual);
        tight(&table, "force_residual", keys.force_residual);
        keys.check(&table, fermion.is_some(), boxes);
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

    /// Checks keys against each other. A mistake is reported where it is made, not again where it is inherited.
    fn check(&self, table: &Table, inherits: bool, boxes: Boxes) {
        let blocks = is_schwarz(self.method) || self.tries_schwarz();
        let aggregates = is_multigrid(self.method) || self.tries_multigrid();
        let auto = self.method == Some(Wanted::Auto) && self.systems == Systems::Any;
        let keys = [
            ("schwarz_block", blocks, "the method \"gcr-dd\" has"),
            ("k_max", blocks || aggregates, "the methods \"gcr-dd\" and \"multigrid\" have"),
            ("n_mr", blocks || aggregates, "the methods \"gcr-dd\" and \"multigrid\" have"),
        ];
        let of_multigrid = AGGREGATES.map(|key| (key, aggregates, "the method \"multigrid\" has"));
        for (key, _, has) in
            keys.into_iter().chain(of_multigrid).filter(|(key, serves, _)| table.has(key) && !serves)
        {
            let tried = match key {
                _ if !auto => "",
                key if key == "schwarz_block" || AGGREGATES.contains(&key) => {
                    ", which \"auto\" tries without a precision"
                }
                _ => ", which \"auto\" tries with a schwarz_block or an aggregate, and without a precision",
            };
            if self.method.is_some() {
                table.mistake(key, format!("{key}: only {has} it{tried}"));
            }
        }
        if aggregates && (!inherits || ["method", "aggregate"].iter().any(|key| table.has(key))) {
            let key = if table.has("aggregate") { "aggregate" } else { "method" };
            check_aggregates(table, boxes, (key, "aggregates"), self.aggregate);
        }
        if let Some(coarse) = self.coarse_aggregate.filter(|_| aggregates && table.has("coarse_aggregate")) {
            self.check_coarse_aggregates(table, boxes, coarse);
        }
        if let Some(block) = self.block.filter(|_| blocks && table.has("schwarz_block")) {
            let cuts = |whole: &Extents| (0..4).all(|mu| whole[mu].is_multiple_of(block[mu]));
            let lattice = boxes.lattice.map(|extents| ("the lattice", extents));
            let local = boxes.partition.map(|partition| ("a rank's box", partition.local()));
            if let Some((what, extents)) = lattice.into_iter().chain(local).find(|(_, all)| !cuts(all)) {
                let (block, extents) = (shape(block), shape(extents));
                let message = format!("schwarz_block: blocks of {block} do not divide {what} of {extents}");
                table.mistake("schwarz_block", message);
            }
        }
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

    /// Whether aggregates of aggregates fit.
    fn check_coarse_aggregates(&self, table: &Table, boxes: Boxes, coarse: Extents) {
        let key = "coarse_aggregate";
        let params = self.multigrid();
        if params.vectors.saturating_mul(volume(coarse)).is_multiple_of(16) {
            check_aggregates(table, boxes, (key, "aggregates of aggregates, in all"), params.coarsest());
        } else {
            let of = shape(coarse);
            let message =
                format!("{key}: {} vectors on {of} aggregates are no multiple of 16 numbers", params.vectors);
            table.mistake(key, message);
        }
    }

    fn multigrid(&self) -> MultigridParams {
        let Self { aggregate, coarse_aggregate, vectors, n_mr, .. } = *self;
        MultigridParams {
            block: aggregate,
            coarse_block: coarse_aggregate,
            vectors,
            steps: n_mr.unwrap_or(6),
        }
    }

    /// `by`: the key that requires shifts.
    fn check_multi_shift(&self, table: &Table, by: &str) {
        if self.method.is_some_and(|wanted| ![Wanted::Auto, Wanted::One(Method::Cg)].contains(&wanted)) {
            table.mistake("method", format!("method: {by} is solved by \"cg\" for all shifts at once"));
        } else if self.precision.is_some_and(|precision| SHIFTED.iter().all(|(_, mix)| *mix != precision)) {
            table.mistake("precision", format!("precision: {by} is solved in {}", names(&SHIFTED)));
        }
        if self.guess.solutions > 0 {
            table.mistake("guess", format!("guess: with {by}, solves for all shifts start from zero"));
        }
    }

    /// Whether "auto" tries GCR-DD: with a block of the user's, since by default bits depend on the grid of ranks.
    fn tries_schwarz(&self) -> bool {
        let auto = self.method == Some(Wanted::Auto) && self.systems == Systems::Any;
        auto && self.has_block && self.precision.is_none()
    }

    /// Whether "auto" tries multigrid: with aggregates or vectors of the user's, since it takes memory and time of its own.
    fn tries_multigrid(&self) -> bool {
        let auto = self.method == Some(Wanted::Auto) && self.systems == Systems::Any;
        auto && self.has_aggregate && self.precision.is_none()
    }

    /// What "auto" chooses from.
    fn candidates(&self) -> Vec<Choice> {
        let (gcr, multigrid) = (METHODS[2].1, METHODS[3].1);
        let methods: &[Method] = match self.systems {
            Systems::Any => &[Method::Cg, Method::BiCgStab],
            Systems::Wall | Systems::Shifted { .. } => &[Method::Cg],
        };
        let precisions = match (self.precision, self.systems) {
            (Some(precision), _) => vec![precision],
            (None, Systems::Shifted { .. }) => vec![SHIFTED[0].1],
            (None, _) => vec![PLAIN[0].1, PLAIN[2].1],
        };
        let each =
            |method: &Method| precisions.iter().map(|mix| Choice::new(*method, *mix)).collect::<Vec<_>>();
        let mut all: Vec<Choice> = methods.iter().flat_map(each).collect();
        if self.tries_schwarz() {
            all.extend([SCHWARZ[0].1, SCHWARZ[1].1].map(|mix| Choice::new(gcr, mix)));
        }
        if self.tries_multigrid() {
            all.push(Choice::new(multigrid, MULTIGRID[0].1));
        }
        all
    }

    /// The method without its own keys, its usual precisions, and what is left to choose from.
    fn taken(&self) -> (Method, [Precision; 3], Vec<Choice>) {
        let usual = match (is_schwarz(self.method) || is_multigrid(self.method), self.systems) {
            (true, _) => SCHWARZ[0].1,
            (false, Systems::Shifted { .. }) => SHIFTED[0].1,
            (false, _) => PLAIN[0].1,
        };
        match self.method {
            Some(Wanted::One(method)) => (method, usual, Vec::new()),
            Some(Wanted::Auto) => {
                let mut open = self.candidates();
                let taken = self.chosen.as_ref().unwrap_or(&open[0]).meaning();
                let (method, precisions) = taken.unwrap_or((Method::Cg, usual));
                if self.chosen.is_some() || open.len() == 1 {
                    open.clear();
                }
                (method, precisions, open)
            }
            None => (Method::Cg, usual, Vec::new()),
        }
    }

    /// The solver, with the defaults of its method and precision.
    pub(crate) fn solver(&self) -> TermSolver {
        let (method, usual, candidates) = self.taken();
        let precisions = self.precision.unwrap_or(usual);
        let schwarz = matches!(method, Method::GcrDd { .. });
        let Self { k_max, n_mr, block, .. } = *self;
        let method = match method {
            Method::GcrDd { .. } => Method::GcrDd { k_max, n_mr: n_mr.unwrap_or(8), block },
            Method::Multigrid { .. } => Method::Multigrid { k_max, params: self.multigrid() },
            other => other,
        };
        let in_half =
            if is_multigrid(Some(Wanted::One(method))) { precisions[1] } else { precisions[2] } == Half;
        let delta = self.delta.unwrap_or(usual_delta(schwarz || in_half));
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
