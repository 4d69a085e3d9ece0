//! Rows of the tables: what is measured on a lattice, as lines and as JSON. Both are made from the same rows.

use super::scaling::{Point, Points};
use super::{BenchArgs, Timed, energy_repeats, seconds, timed};
use crate::app::AppError;
use crate::app::machine::energy::{Meter, unread};
use crate::app::output::{complain, json, say, shown};
use crate::app::version::PROGRAM;
use crate::device::Precision;
use crate::field::Domain;
use crate::lattice::{Extents, shape, volume};
use crate::solver::{Info, SolverError};
use serde::Serialize;
use std::sync::Arc;

/// An operator in one storage, with the work of an application. 'Per site' is per site of one parity, slice and
/// right-hand side.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Operation {
    /// Its name in the table.
    pub operator: &'static str,
    /// Of links and fields.
    #[serde(serialize_with = "shown")]
    pub precision: Precision,
    /// Reals per link, of staggered quarks per long link; `null` if it reads no links.
    pub reals: Option<usize>,
    /// N_s, or flavours; `null` for single spinors.
    pub slices: Option<usize>,
    /// How many share one load of the links, besides slices.
    pub right_hand_sides: usize,
    /// As the field counts them.
    pub flops_per_site: f64,
    /// Each real moved once.
    pub bytes_per_site: f64,
}

impl Operation {
    /// Its name with its storage.
    fn name(&self) -> String {
        let Self { operator, precision, reals, right_hand_sides, .. } = self;
        let reals = reals.map_or(String::new(), |reals| format!(" {reals:2} reals"));
        let several =
            if *right_hand_sides == 1 { String::new() } else { format!(", n = {right_hand_sides}") };
        format!("{operator} {precision:6}{reals}{several}")
    }
}

/// What an application took.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    /// On the slowest rank.
    seconds: f64,
    /// Of the devices of all ranks; `None` where they do not count.
    joules: Option<f64>,
}

/// The end of a line.
fn in_joules(joules: Option<f64>) -> String {
    joules.map_or(String::new(), |joules| format!("  {joules:9.3e} J"))
}

/// The speed of an operator on a lattice. Speeds are those of one rank; the time is that of the slowest.
#[derive(Clone, Debug, Serialize)]
struct OperatorRow {
    /// Extents, as `16x16x16x32`.
    lattice: String,
    ranks: usize,
    #[serde(flatten)]
    operation: Operation,
    /// Sites of one parity on a rank, times slices and right-hand sides.
    sites: usize,
    /// Of one application.
    microseconds: f64,
    gflop_per_second: f64,
    /// Of the bytes that are counted.
    gb_per_second: f64,
    /// GFLOP/s if these bytes were moved as fast as by a copy.
    bound_gflop_per_second: f64,
    /// Speed over bound; caches can carry it beyond 1.
    share_of_bound: f64,
    /// Of an application, on the devices of all ranks; `null` where they do not count.
    joules: Option<f64>,
}

impl OperatorRow {
    /// From seconds and joules of an application, and the GB/s of a copy.
    fn new(domain: &Domain, operation: Operation, measured: Measured, copy: f64) -> Self {
        let Measured { seconds, joules } = measured;
        let Operation { slices, right_hand_sides, flops_per_site, bytes_per_site, .. } = operation;
        let sites = volume(domain.partition().local()) / 2 * slices.unwrap_or(1) * right_hand_sides;
        let a_second = |count: f64| sites as f64 * count / seconds / 1e9;
        Self {
            lattice: shape(domain.partition().global),
            ranks: domain.comm().size(),
            operation,
            sites,
            microseconds: 1e6 * seconds,
            gflop_per_second: a_second(flops_per_site),
            gb_per_second: a_second(bytes_per_site),
            bound_gflop_per_second: copy * flops_per_site / bytes_per_site,
            share_of_bound: a_second(bytes_per_site) / copy,
            joules,
        }
    }

    fn line(&self) -> String {
        format!(
            "  {:35} {:7.0} GFLOP/s per rank  bound {:6.0}  share {:4.0}%  {:5.0} GB/s  {:9.2} us{}",
            self.operation.name(),
            self.gflop_per_second,
            self.bound_gflop_per_second,
            100.0 * self.share_of_bound,
            self.gb_per_second,
            self.microseconds,
            in_joules(self.joules)
        )
    }
}

/// An exchange between ranks.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Exchange {
    /// Its name in the table.
    exchange: String,
    /// Of what travels; `null` for plain messages.
    precision: Option<String>,
    /// Bytes that a rank sends.
    bytes: usize,
}

impl Exchange {
    /// `bytes` are what a rank sends.
    pub(super) fn new(name: impl Into<String>, precision: Option<Precision>, bytes: usize) -> Self {
        Self { exchange: name.into(), precision: precision.map(|precision| precision.to_string()), bytes }
    }

    /// Its name with its precision.
    fn name(&self) -> String {
        let Self { exchange, precision, .. } = self;
        precision.as_ref().map_or(exchange.clone(), |precision| format!("{exchange} {precision}"))
    }
}

/// The speed of an exchange: the time is that of the slowest rank.
#[derive(Clone, Debug, Serialize)]
struct ExchangeRow {
    /// Extents, as `16x16x16x32`.
    lattice: String,
    ranks: usize,
    #[serde(flatten)]
    exchange: Exchange,
    /// Until all has come.
    microseconds: f64,
    /// Of what a rank sends, and of as much that it receives.
    gb_per_second: f64,
}

impl ExchangeRow {
    fn line(&self) -> String {
        let (name, bytes) = (self.exchange.name(), self.exchange.bytes);
        let Self { microseconds, gb_per_second, .. } = self;
        format!("  {name:35} {bytes:10} B per rank  {microseconds:9.2} us  {gb_per_second:8.3} GB/s")
    }
}

/// A system and how it is solved.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Solve {
    /// The operator's name.
    pub operator: &'static str,
    /// Quark, links and residual in words.
    pub problem: String,
    /// The method's name.
    pub method: &'static str,
    /// Precisions of updates, of the iteration, and of a preconditioner, joined by `-`.
    pub precisions: &'static str,
    /// Reals per link, of staggered quarks per long link.
    pub reals: usize,
    /// How many are solved at once.
    pub right_hand_sides: usize,
    /// How many systems that differ by a multiple of the unit matrix.
    pub shifts: usize,
    /// Of an application of M or its adjoint, per site of one parity, slice and right-hand side.
    pub flops_per_site: f64,
    /// Sites of one parity on a rank, times slices and right-hand sides.
    pub sites: usize,
}

impl Solve {
    fn name(&self) -> String {
        let Self { method, precisions, right_hand_sides, .. } = self;
        let several =
            if *right_hand_sides == 1 { String::new() } else { format!(", n = {right_hand_sides}") };
        format!("{method} {precisions}{several}")
    }
}

/// How a solve went.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Outcome {
    Solved(Cost),
    Failed { error: String },
}

/// What a solve took. Speed and shares are those of the first rank.
#[derive(Clone, Debug, Serialize)]
struct Cost {
    /// Of all systems together.
    iterations: usize,
    /// Recomputations of the residual.
    updates: usize,
    /// Failures of the iteration, which went on in a more careful way.
    fallbacks: usize,
    /// Of M or its adjoint, to all right-hand sides at once.
    applications: usize,
    /// The true relative residual that was reached.
    residual: f64,
    /// On the slowest rank.
    seconds: f64,
    /// Flops of linear algebra and of the preconditioner do not count.
    gflop_per_second: f64,
    /// Shares of the time of a solve that waits for the device around each part.
    operator_share: f64,
    preconditioner_share: f64,
    algebra_share: f64,
    messages_share: f64,
    /// Of a solve, on the devices of all ranks; `null` where they do not count.
    joules: Option<f64>,
}

impl Cost {
    fn new(solve: &Solve, timed: &Timed) -> Self {
        let Timed { info, seconds, joules, parts } = timed;
        let own = parts.operator_seconds + parts.preconditioner_seconds;
        Self {
            iterations: info.iterations,
            updates: info.updates,
            fallbacks: info.fallbacks,
            applications: info.applications,
            residual: info.residual,
            seconds: *seconds,
            gflop_per_second: info.applications as f64 * solve.sites as f64 * solve.flops_per_site
                / info.seconds
                / 1e9,
            operator_share: parts.operator_seconds / parts.seconds,
            preconditioner_share: parts.preconditioner_seconds / parts.seconds,
            algebra_share: (parts.seconds - own) / parts.seconds,
            messages_share: parts.communication_seconds / parts.seconds,
            joules: *joules,
        }
    }

    fn line(&self) -> String {
        format!(
            "{:10} {:8} {:10} {:13} {:9.4} {:13.1} {:15.0} {:8.0}% {:7.0}% {:7.0}% {:8.0}%{}",
            self.iterations,
            self.updates,
            self.fallbacks,
            self.applications,
            self.seconds,
            1e6 * self.seconds / self.iterations as f64,
            self.gflop_per_second,
            100.0 * self.operator_share,
            100.0 * self.preconditioner_share,
            100.0 * self.algebra_share,
            100.0 * self.messages_share,
            in_joules(self.joules)
        )
    }
}

/// The names of the columns of a solver's line.
const COLUMNS: &str = "  method                              iterations  updates  fallbacks  applications   seconds  \
                       us/iteration  GFLOP/s a rank  operator  Schwarz  algebra  messages";

/// A solver on a lattice.
#[derive(Clone, Debug, Serialize)]
struct SolverRow {
    /// Extents, as `16x16x16x32`.
    lattice: String,
    ranks: usize,
    #[serde(flatten)]
    solve: Solve,
    #[serde(flatten)]
    outcome: Outcome,
}

/// A lattice of the benchmark.
#[derive(Clone, Debug, Serialize)]
struct LatticeRow {
    /// Extents, as `16x16x16x32`.
    lattice: String,
    /// Ranks in each direction, in the same form.
    grid: String,
    ranks: usize,
    /// How they travel.
    halos: String,
    /// What a copy moves on a rank, read and written; the bound of the operators on this lattice.
    copy_gb_per_second: f64,
}

/// What `hmc bench --json` prints.
#[derive(Debug, Serialize)]
struct Document {
    program: &'static str,
    device: String,
    ranks: usize,
    lattices: Vec<LatticeRow>,
    exchanges: Vec<ExchangeRow>,
    operators: Vec<OperatorRow>,
    solvers: Vec<SolverRow>,
    /// Times on several numbers of ranks.
    scaling: Vec<Point>,
}

/// Where rows go: as lines to the output; with `--json` into one document, and as lines to stderr.
pub(super) struct Rows {
    speaks: bool,
    json: bool,
    document: Document,
    /// The grid of a rank's lattices, if they are those of the command line, and the number of ranks.
    scale: Option<(usize, Option<Extents>)>,
    points: Points,
}

impl Rows {
    /// `json`: one document instead of lines.
    pub(super) fn new(json: bool, rank: usize, ranks: usize) -> Self {
        let (lattices, exchanges, operators, solvers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let scaling = Vec::new();
        let document = Document {
            program: PROGRAM,
            device: String::new(),
            ranks,
            lattices,
            exchanges,
            operators,
            solvers,
            scaling,
        };
        Self { speaks: rank == 0, json, document, scale: None, points: Points::default() }
    }

    /// From now on rows are of tables on `ranks` ranks, for a comparison; with a `grid`, of lattices that it makes greater.
    pub(super) fn scale(&mut self, ranks: usize, grid: Option<Extents>) {
        self.scale = Some((ranks, grid));
    }

    /// A row's time, for the comparison.
    fn point(&mut self, domain: &Domain, name: String, seconds: f64) {
        let Some((ranks, grid)) = self.scale else { return };
        let global = domain.partition().global;
        let lattice = grid.map_or(global, |grid| std::array::from_fn(|mu| global[mu] / grid[mu]));
        self.points.add(shape(lattice), name, ranks, seconds, grid.is_some());
    }

    /// A line between rows.
    pub(super) fn line(&self, line: &str) {
        if self.speaks && self.json {
            complain(line);
        } else if self.speaks {
            drop(say(line));
        }
    }

    /// A lattice, on which a copy moves `copy` GB/s; the first one names the device.
    pub(super) fn lattice(&mut self, domain: &Domain, copy: f64) {
        if self.document.lattices.is_empty() {
            self.document.device = domain.device().backend().name();
            self.line(&self.document.device);
            unread(domain).iter().for_each(|why| self.line(&format!("energy is not counted: {why}")));
        }
        let partition = domain.partition();
        let (lattice, grid) = (shape(partition.global), shape(partition.grid));
        let (ranks, halos) = (domain.comm().size(), domain.transports().to_string());
        self.line(&format!(
            "{lattice} on {ranks} ranks as {grid}, halos {halos}: copy {copy:.0} GB/s per rank (read and written)"
        ));
        self.document.lattices.push(LatticeRow { lattice, grid, ranks, halos, copy_gb_per_second: copy });
    }

    /// The end: prints the document, if it is asked for and something is in it.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(super) fn end(&mut self) -> Result<(), AppError> {
        self.points.lines().iter().for_each(|line| self.line(line));
        self.document.scaling = std::mem::take(&mut self.points).into_inner();
        let found = !self.document.lattices.is_empty();
        if self.speaks && self.json && found { say(json(&self.document)) } else { Ok(()) }
    }
}

/// One lattice on which tables are made.
pub(super) struct Bench<'a> {
    pub(super) domain: &'a Arc<Domain>,
    pub(super) args: &'a BenchArgs,
    /// GB/s of a copy, read and written.
    pub(super) copy: f64,
    /// Whether the devices of all ranks count energy.
    pub(super) counts_energy: bool,
    pub(super) rows: &'a mut Rows,
}

impl Bench<'_> {
    /// Times an operator and writes its row; returns what an application took.
    ///
    /// # Errors
    /// Those of `work`.
    pub(super) fn operator(
        &mut self,
        operation: Operation,
        mut work: impl FnMut() -> Result<(), AppError>,
    ) -> Result<Measured, AppError> {
        let seconds = seconds(self.domain, self.args.sample_seconds, &mut work)?;
        let joules = if self.counts_energy { self.joules(seconds, work)? } else { None };
        let measured = Measured { seconds, joules };
        self.counted(operation, measured);
        Ok(measured)
    }

    /// The energy of work that takes so many seconds.
    fn joules(
        &self,
        seconds: f64,
        mut work: impl FnMut() -> Result<(), AppError>,
    ) -> Result<Option<f64>, AppError> {
        let repeats = energy_repeats(seconds);
        self.domain.device().synchronize()?;
        let meter = Meter::start(self.domain);
        (0..repeats).try_for_each(|_| work())?;
        self.domain.device().synchronize()?;
        Ok(meter.joules(self.domain).map(|joules| joules / repeats as f64))
    }

    /// The row of an operator, as it was measured.
    pub(super) fn counted(&mut self, operation: Operation, measured: Measured) {
        let row = OperatorRow::new(self.domain, operation, measured, self.copy);
        self.rows.line(&row.line());
        self.rows.point(self.domain, operation.name(), measured.seconds);
        self.rows.document.operators.push(row);
    }

    /// Times an exchange and writes its row.
    ///
    /// # Errors
    /// Those of `work`.
    pub(super) fn exchange(
        &mut self,
        exchange: Exchange,
        work: impl FnMut() -> Result<(), AppError>,
    ) -> Result<(), AppError> {
        let seconds = seconds(self.domain, self.args.sample_seconds, work)?;
        let row = ExchangeRow {
            lattice: shape(self.domain.partition().global),
            ranks: self.domain.comm().size(),
            microseconds: 1e6 * seconds,
            gb_per_second: exchange.bytes as f64 / seconds / 1e9,
            exchange,
        };
        self.rows.line(&row.line());
        self.rows.point(self.domain, row.exchange.name(), seconds);
        self.rows.document.exchanges.push(row);
        Ok(())
    }

    /// The head of a table of solvers.
    pub(super) fn problem(&self, problem: &str) {
        self.rows.line(&format!("  {problem}"));
        self.rows.line(COLUMNS);
    }

    /// Times a solve and writes its row.
    pub(super) fn solver(&mut self, solve: Solve, work: impl FnMut() -> Result<Info, SolverError>) {
        let name = solve.name();
        let (outcome, line, seconds) = match timed(self.domain, self.counts_energy, work) {
            Ok(timed) => {
                let cost = Cost::new(&solve, &timed);
                let line = format!("  {name:35}{}", cost.line());
                (Outcome::Solved(cost), line, timed.seconds)
            }
            Err(error) => {
                let error = error.to_string();
                let line = format!("  {name:35} {error}");
                (Outcome::Failed { error }, line, f64::NAN)
            }
        };
        self.rows.line(&line);
        self.rows.point(self.domain, format!("{} {name}", solve.operator), seconds);
        let (lattice, ranks) = (shape(self.domain.partition().global), self.domain.comm().size());
        self.rows.document.solvers.push(SolverRow { lattice, ranks, solve, outcome });
    }
}
