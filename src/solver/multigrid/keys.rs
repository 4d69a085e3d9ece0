//! The method "multigrid" and its keys.

use super::{Multigrid, MultigridParams};
use crate::config::key::{Absent, Change, Key, Shape, form, integer};
use crate::config::raw::Table;
use crate::config::reader::{extent, four, one_of, whole};
use crate::config::section::Section;
use crate::device::Precision::{self, Half};
use crate::field::Domain;
use crate::lattice::{Extents, shape, volume};
use crate::solver::gcr::K_MAX;
use crate::solver::mixes::{MULTIGRID, SCHWARZ};
use crate::solver::row::{Boxes, Made, Own, Row, usual_delta};
use crate::solver::{Gcr, GcrParams, LinearSolver};
use std::sync::Arc;
use toml::de::DeValue;

/// GCR with multigrid as preconditioner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GcrMultigrid {
    /// The greatest size of the Krylov space.
    pub k_max: usize,
    /// The preconditioner.
    pub params: MultigridParams,
}

const N_MR: Key<usize> = Key::new(
    "n_mr",
    integer(1, 64),
    Absent::Is("6"),
    Change::Tuning,
    "minimal-residual steps after a coarse correction",
)
.settled_as("method");
const AGGREGATE: Key<Extents> = Key::new(
    "aggregate",
    form("4 even integers", Shape::List(&Shape::Integer(2, 4096), Some(4)), |value| {
        four("4 even integers [x, y, z, t]", extent)(value)
    }),
    Absent::Is("[4, 4, 4, 4]"),
    Change::Tuning,
    "extents x, y, z, t of an aggregate, which divide the box of a rank; in each direction there is one, or an even number",
)
.settled_as("method");
const COARSE_AGGREGATE: Key<Option<Extents>> = Key::new(
    "coarse_aggregate",
    form(
        "`\"none\"` or 4 positive integers",
        Shape::Either(&[Shape::Words(&["none"]), Shape::List(&Shape::Integer(1, 4096), Some(4))]),
        |value| match value.get_ref() {
            DeValue::String(text) if text == "none" => Ok(None),
            _ => four("\"none\" or 4 positive integers [x, y, z, t]", whole(1..=4096))(value).map(Some),
        },
    ),
    Absent::Is("\"none\""),
    Change::Tuning,
    "a third level: extents x, y, z, t, in aggregates, of an aggregate of those, with the same conditions. For many aggregates \
     and light quarks; see [performance](performance.md#multigrid)",
)
.settled_as("method");
const VECTORS: Key<usize> = Key::new(
    "vectors",
    form("a multiple of 8 up to 64", Shape::Integer(8, 64), |value| {
        one_of(&[8, 16, 24, 32, 40, 48, 56, 64], "a multiple of 8 up to 64")(value)
    }),
    Absent::Is("24"),
    Change::Tuning,
    "vectors per aggregate and chirality. More take fewer iterations, of which each takes longer",
)
.settled_as("method");
const KEYS: Section =
    Section { keys: &[&K_MAX, &N_MR, &AGGREGATE, &COARSE_AGGREGATE, &VECTORS], tables: &[] };

impl Own for GcrMultigrid {
    const ROW: Row = Row {
        word: "multigrid",
        about: "the preconditioner of `\"multigrid\"`; with `\"auto\"`, that this method is tried",
        keys: &[&KEYS],
        mixes: &MULTIGRID,
        tries: &[SCHWARZ[0]],
        is_linear: true,
        together: Multigrid::TOGETHER,
        whole: true,
        has_set_up: true,
        delta: |[_, iteration, _]| usual_delta(iteration == Half),
    };
    const DEFAULT: Self = Self {
        k_max: 16,
        params: MultigridParams { block: [4; 4], coarse_block: None, vectors: 24, steps: 6 },
    };

    fn read(self, table: &mut Table) -> Self {
        let MultigridParams { block, coarse_block, vectors, steps } = self.params;
        Self {
            k_max: table.get_or(&K_MAX, Some(self.k_max)),
            params: MultigridParams {
                block: table.get_or(&AGGREGATE, Some(block)),
                coarse_block: table.get_or(&COARSE_AGGREGATE, Some(coarse_block)),
                vectors: table.get_or(&VECTORS, Some(vectors)),
                steps: table.get_or(&N_MR, Some(steps)),
            },
        }
    }

    fn check(self, solver: Option<&Table>, own: &Table, boxes: Boxes) {
        let MultigridParams { block, coarse_block, vectors, .. } = self.params;
        // With the default, the mistake is the method's.
        if own.has("aggregate") {
            check_aggregates(own, boxes, ("aggregate", "aggregates"), block);
        } else if let Some(solver) = solver {
            check_aggregates(solver, boxes, ("method", "aggregates"), block);
        }
        let key = "coarse_aggregate";
        let Some(coarse) = coarse_block.filter(|_| own.has(key)) else { return };
        if vectors.saturating_mul(volume(coarse)).is_multiple_of(16) {
            let largest = self.params.coarsest();
            check_aggregates(own, boxes, (key, "aggregates of aggregates, in all"), largest);
        } else {
            let of = shape(coarse);
            let message =
                format!("{key}: {vectors} vectors on {of} aggregates are no multiple of 16 numbers");
            own.mistake(key, message);
        }
    }

    fn linear(
        self,
        precisions: [Precision; 3],
        delta: f64,
        domain: &Arc<Domain>,
        together: usize,
    ) -> Option<Made> {
        let [_, precision, lowest] = precisions;
        let make = || -> Made {
            let multigrid = Multigrid::new(domain, lowest, self.params, together)?;
            let params = GcrParams { precision, k_max: self.k_max, delta };
            let solver: Box<dyn LinearSolver> =
                Box::new(Gcr::new(domain, params, Box::new(multigrid), together)?);
            Ok(solver)
        };
        Some(make())
    }
}

/// Whether aggregates fit, which are called `what`.
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
