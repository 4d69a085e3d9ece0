//! The solver of a term of Wilson or domain-wall quarks; that of a Hasenbusch factor defaults to that of its fermion.

use super::checked::{Method, Real, Solver};
pub use crate::config::doubts::tight;
use crate::config::raw::Table;
use crate::config::reader::{Read, Value, choice, extent, four, number, residual, whole};
use crate::lattice::{Extents, Partition, shape};
use crate::solver::usual_delta;
use Real::{Double, Half, Single};
use toml::de::DeValue;

/// Reversibility with guesses from past solutions needs forces solved at least this well.
const GUESS_RESIDUAL: f64 = 1e-9;

/// A precision's name, and what is outside, in the iteration and in the preconditioner.
pub type Mix = (&'static str, [Real; 3]);

/// The mixes of methods without a preconditioner.
pub const PLAIN: [Mix; 3] = [
    ("double-single", [Double, Single, Single]),
    ("double", [Double; 3]),
    ("double-half", [Double, Half, Half]),
];

/// The mixes of GCR-DD, none higher than the one before; restarts are in double or single.
const SCHWARZ: [Mix; 9] = [
    ("double-single-half", [Double, Single, Half]),
    ("double-half-half", [Double, Half, Half]),
    ("double-single-single", [Double, Single, Single]),
    ("double-double-half", [Double, Double, Half]),
    ("double-double-single", [Double, Double, Single]),
    ("double-double-double", [Double; 3]),
    ("single-half-half", [Single, Half, Half]),
    ("single-single-half", [Single, Single, Half]),
    ("single-single-single", [Single; 3]),
];

/// The lattice and how it is cut, where they are known.
#[derive(Clone, Copy, Default)]
pub struct Boxes {
    pub lattice: Option<Extents>,
    pub partition: Option<Partition>,
}

/// What a solver solves, which limits its methods and precisions.
#[derive(Clone, Copy, PartialEq)]
pub enum Systems {
    /// One at a time, by any method.
    Any,
    /// Those of domain-wall quarks, one at a time: by conjugate gradients.
    Wall,
    /// All shifts at once, by conjugate gradients: that is what this key says.
    Shifted(&'static str),
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Cg,
    BiCgStab,
    GcrDd,
}

/// The keys of a solver's table, and those of its fermion's for the ones that it lacks.
#[derive(Clone)]
pub struct SolverKeys {
    /// `None` after a mistake.
    kind: Option<Kind>,
    precision: Option<[Real; 3]>,
    delta: Option<f64>,
    k_max: Option<usize>,
    n_mr: Option<usize>,
    block: Option<Option<Extents>>,
    link_reals: usize,
    action_residual: f64,
    force_residual: f64,
    max_iterations: usize,
    guess: usize,
}

impl SolverKeys {
    /// What a fermion's table has by default.
    const DEFAULT: Self = Self {
        kind: Some(Kind::Cg),
        precision: None,
        delta: None,
        k_max: None,
        n_mr: None,
        block: None,
        link_reals: 12,
        action_residual: 1e-11,
        force_residual: 1e-9,
        max_iterations: 10_000,
        guess: 0,
    };

    /// Reads the table of a fermion, or of a factor of the `fermion` with these keys.
    pub fn read(mut table: Table, fermion: Option<&Self>, systems: Systems, boxes: Boxes) -> Self {
        let default = fermion.unwrap_or(&Self::DEFAULT);
        let kinds = [("cg", Kind::Cg), ("bicgstab", Kind::BiCgStab), ("gcr-dd", Kind::GcrDd)];
        let method = table.read_known("method", default.kind, |value| choice(&kinds)(value).map(Some));
        let mut kind = method.flatten();
        if systems == Systems::Wall && kind.is_some_and(|kind| kind != Kind::Cg) {
            table.mistake("method", "method: domain-wall quarks are solved by \"cg\" alone");
            kind = None;
        }
        // The other methods' precisions mean nothing to GCR-DD, nor its to them.
        let akin = (kind == Some(Kind::GcrDd)) == (default.kind == Some(Kind::GcrDd));
        let precision = table.read_if("precision", |value| match kind {
            Some(Kind::GcrDd) => choice(&SCHWARZ)(value),
            Some(_) => choice(&PLAIN)(value),
            None => choice(&[&PLAIN[..], &SCHWARZ].concat())(value),
        });
        let delta = table.read_if("delta", number("a number between 0 and 1", |x| x > 0.0 && x < 1.0));
        let keys = Self {
            kind,
            precision: precision.or(default.precision.filter(|_| akin)),
            delta: delta.or(default.delta.filter(|_| akin)),
            k_max: table.read_if("k_max", whole(2..=64)).or(default.k_max),
            n_mr: table.read_if("n_mr", whole(1..=64)).or(default.n_mr),
            block: table.read_if("schwarz_block", block).or(default.block),
            link_reals: table.read_or("link_reals", default.link_reals, link_reals),
            action_residual: table.read_or("action_residual", default.action_residual, residual),
            force_residual: table.read_or("force_residual", default.force_residual, residual),
            max_iterations: table.read_or("max_iterations", default.max_iterations, whole(1..=1_000_000_000)),
            guess: table.read_or("guess", default.guess, whole(0..=12)),
        };
        tight(&table, "action_residual", keys.action_residual);
        tight(&table, "force_residual", keys.force_residual);
        keys.check(&table, fermion.is_some(), systems, boxes);
        table.finish();
        keys
    }

    /// What one key means for another; a mistake is told where it is made, not again where it is inherited.
    fn check(&self, table: &Table, inherits: bool, systems: Systems, boxes: Boxes) {
        let own = ["k_max", "n_mr", "schwarz_block"];
        if self.kind.is_some_and(|kind| kind != Kind::GcrDd) {
            for key in own.into_iter().filter(|key| table.has(key)) {
                table.mistake(key, format!("{key}: only the method \"gcr-dd\" has it"));
            }
        } else if let Some(block) = self.block.flatten().filter(|_| table.has("schwarz_block")) {
            let cuts = |whole: &Extents| (0..4).all(|mu| whole[mu].is_multiple_of(block[mu]));
            let lattice = boxes.lattice.map(|extents| ("the lattice", extents));
            let local = boxes.partition.map(|partition| ("a rank's box", partition.local()));
            if let Some((what, extents)) = lattice.into_iter().chain(local).find(|(_, all)| !cuts(all)) {
                let (block, extents) = (shape(block), shape(extents));
                let message = format!("schwarz_block: blocks of {block} do not divide {what} of {extents}");
                table.mistake("schwarz_block", message);
            }
        }
        if let Systems::Shifted(by) = systems {
            self.check_multi_shift(table, by);
        } else if self.guess > 0 && self.force_residual > GUESS_RESIDUAL {
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

    /// `by`: the key that asks for shifts.
    fn check_multi_shift(&self, table: &Table, by: &str) {
        if self.kind.is_some_and(|kind| kind != Kind::Cg) {
            table.mistake("method", format!("method: {by} is solved by \"cg\" for all shifts at once"));
        } else if self.precision.is_some_and(|precision| precision.contains(&Half)) {
            let message = format!("precision: {by} is solved in \"double\" or \"double-single\"");
            table.mistake("precision", message);
        }
        if self.guess > 0 {
            table.mistake("guess", format!("guess: with {by}, solves for all shifts start from zero"));
        }
    }

    /// The solver, with the defaults of its method and precision.
    pub fn solver(&self) -> Solver {
        let schwarz = self.kind == Some(Kind::GcrDd);
        let precision = self.precision.unwrap_or(if schwarz { SCHWARZ[0].1 } else { PLAIN[0].1 });
        Solver {
            method: match self.kind {
                Some(Kind::GcrDd) => Method::GcrDd {
                    k_max: self.k_max.unwrap_or(16),
                    n_mr: self.n_mr.unwrap_or(8),
                    block: self.block.flatten(),
                },
                Some(Kind::BiCgStab) => Method::BiCgStab,
                Some(Kind::Cg) | None => Method::Cg,
            },
            precision,
            delta: self.delta.unwrap_or(usual_delta(schwarz || precision[1] == Half)),
            link_reals: self.link_reals,
            action_residual: self.action_residual,
            force_residual: self.force_residual,
            max_iterations: self.max_iterations,
            guess: self.guess,
        }
    }
}

fn link_reals(value: &Value) -> Read<usize> {
    let reals = whole(8..=18)(value)?;
    if [8, 12, 18].contains(&reals) {
        return Ok(reals);
    }
    Err(vec![(value.span().start, format!("expected 18, 12 or 8 reals a link, found {reals}"))])
}

/// `"rank"` reads as `None`.
fn block(value: &Value) -> Read<Option<Extents>> {
    match value.get_ref() {
        DeValue::String(text) if text == "rank" => Ok(None),
        _ => four("\"rank\" or 4 even integers [x, y, z, t]", extent)(value).map(Some),
    }
}
