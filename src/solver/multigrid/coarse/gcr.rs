//! GCR on the even-odd preconditioned coarse operator, several steps at a time (`kernels/coarse_gcr.cuh`). Systems that are solved
//! together have Krylov spaces of their own, make the same steps, and end with the last of them.

use super::below::{Below, Correction};
use super::ghosts::{PRODUCTS, Wires};
use super::{CoarseLinks, Fate, From, Inverses, Shape};
use crate::device::kernels::{
    BLOCK_PARTS, BLOCK_THREADS, COARSE_LINKS, COLUMNS, CoarseAdvance, CoarseBlock, CoarseDots,
    CoarseEliminate, CoarseMultiply, CoarseNorm, CoarseRound, CoarseTotals, CoarseTwist, Half, MOST_FIELDS,
    PIECES, POSTS, Pass, S_STEPS, SUMMANDS, TILE, Together, int,
};
use crate::device::{Buffer, Deferred, Team};
use crate::field::{FieldError, numbers_of};
use crate::operator::Twists;

/// Directions of the Krylov space. They are kept from solve to solve, for the first ones know the modes that converge slowly.
const SPACE: usize = 64;
/// How many are kept when there is no room for more.
const KEPT: usize = 48;
/// The maximum number of iterations of a solve.
const MOST: usize = 96;
const _: () =
    assert!(SPACE + PRODUCTS <= MOST_FIELDS && KEPT + S_STEPS <= SPACE && MOST.is_multiple_of(S_STEPS));
// All ranks meet in the products of a block. Until the next ones, they may post a residual and two fields of a power that is
// not needed, x, the next right-hand side, its residual, and all fields of the next powers but the last.
const _: () = assert!(2 * S_STEPS + 5 <= POSTS);

/// The residual that solves of the level below leave.
const RESIDUAL_BELOW: f64 = 0.1;

/// What solves systems of the coarse operator with given twisted masses.
pub(in crate::solver::multigrid) struct CoarseSolver {
    twists: Twists,
    /// For these and the opposite ones, or for none.
    signs: Vec<Sign>,
    /// That of the level below.
    below: Option<(Box<Self>, Correction)>,
    /// Iterations there so far.
    pub iterations_below: usize,
}

/// For one sign of the twisted masses.
struct Sign {
    inverses: Inverses,
    /// A_xx, for the level below.
    diagonal: Option<Buffer>,
    space: Space,
}

/// Workspace of GCR; fields are on places of one parity unless told, and of all systems.
struct Space {
    /// A_xx^-1 b on all places.
    right: Buffer,
    spare: Buffer,
    residual: Buffer,
    /// Directions, and their products.
    p: Buffer,
    z: Buffer,
    parts: Buffer,
    squares: Buffer,
    norms: Buffer,
    coefficients: Buffer,
    /// Where ranks exchange messages; with sums of the parts, which travel in one, too.
    wires: Option<Wires>,
    totals: Option<Buffer>,
    /// Directions from solves so far, and the systems that have them.
    used: usize,
    systems: Together,
    /// Its number among [`MANNERS`].
    manner: usize,
}

/// A manner in which systems are solved.
struct Manner {
    /// The factor by which the goal is missed. Where solves are hard, more cycles that take less are faster.
    misses: f64,
    /// Whether sums follow each step: what several find at a time is less new if few modes are much harder than others.
    one_by_one: bool,
}

/// A solve that comes to no end is the last in its manner; the next one is solved in that which follows.
const MANNERS: [Manner; 4] = [
    Manner { misses: 1.0, one_by_one: false },
    Manner { misses: 3.0, one_by_one: false },
    Manner { misses: 5.0, one_by_one: false },
    Manner { misses: 1.0, one_by_one: true },
];

impl CoarseSolver {
    /// Memory for systems with these twisted masses.
    pub(in crate::solver::multigrid) fn new(
        coarse: &CoarseLinks,
        twists: Twists,
    ) -> Result<Self, FieldError> {
        let shape = &coarse.shape;
        let device = shape.domain.device();
        let columns = 2 * shape.half() * (COARSE_LINKS - 1) * shape.rows;
        let sign = |_| -> Result<_, FieldError> {
            let links = device.buffer(columns * shape.rows * 4)?;
            Ok(Sign {
                inverses: Inverses { local: shape.matrices(1)?, links, scales: device.buffer(columns * 4)? },
                diagonal: coarse.below.as_ref().map(|_| shape.matrices(1)).transpose()?,
                space: Space::new(shape)?,
            })
        };
        let signs = (0..if twists == Twists::NONE { 1 } else { 2 }).map(sign).collect::<Result<_, _>>()?;
        let below = |below: &Below| -> Result<_, FieldError> {
            Ok((Box::new(Self::new(&below.links, twists)?), below.correction()?))
        };
        let below = coarse.below.as_deref().map(below).transpose()?;
        Ok(Self { twists, signs, below, iterations_below: 0 })
    }

    /// As after a solve that came to no end, for tests.
    #[cfg(test)]
    pub(in crate::solver::multigrid) fn go_step_by_step(&mut self) {
        self.signs.iter_mut().for_each(|sign| (sign.space.used, sign.space.manner) = (0, MANNERS.len() - 1));
    }

    /// Workspace of [`CoarseSolver::update`]: for one matrix per place, and for those of all neighbours.
    pub(in crate::solver::multigrid) fn room_of_update(
        CoarseLinks { shape, .. }: &CoarseLinks,
    ) -> Result<[Buffer; 2], FieldError> {
        Ok([shape.matrices(1)?, shape.matrices(COARSE_LINKS - 1)?])
    }

    /// Adapts it to new links, and drops what it knows from earlier solves.
    pub(in crate::solver::multigrid) fn update(&mut self, coarse: &CoarseLinks) -> Result<(), FieldError> {
        let CoarseLinks { shape, links, odd, below, .. } = coarse;
        if let (Some((solver, _)), Some(below)) = (&mut self.below, below) {
            solver.update(&below.links)?;
        }
        let (rows, elements) = (int(shape.rows), shape.elements());
        let [mut other, mut products] = Self::room_of_update(coarse)?;
        for (Sign { inverses, diagonal, space }, sign) in self.signs.iter_mut().zip([1.0, -1.0]) {
            (space.used, space.manner) = (0, 0);
            let Inverses { local, links: rounded, scales } = inverses;
            let [odd_twist, all] = [self.twists.odd, self.twists.all].map(|twist| sign * twist);
            for out in diagonal.iter_mut().chain([&mut *local]) {
                let t = odd.as_ref().filter(|_| odd_twist != 0.0).map(Buffer::input);
                let (links, out) = (links.input(), out.output());
                let kernel = CoarseTwist { links, t, out, rows, odd: odd_twist, all };
                shape.domain.launch_as(Half, &kernel, elements)?;
            }
            // An even number of steps, so that the last one ends in `local`.
            for pivot in 0..rows {
                let (a, out) = if pivot % 2 == 0 { (&*local, &mut other) } else { (&other, &mut *local) };
                let kernel = CoarseEliminate { a: a.input(), out: out.output(), rows, pivot };
                shape.domain.launch_as(Half, &kernel, elements)?;
            }
            for which in 0..int(COARSE_LINKS - 1) {
                let (b, links, out) = (local.input(), links.input(), products.output());
                shape.domain.launch_as(Half, &CoarseMultiply { b, links, out, rows, which }, elements)?;
            }
            let (out, scales) = (rounded.output(), scales.output());
            let kernel = CoarseRound { matrices: products.input(), out, scales, rows };
            shape.domain.launch_as(Half, &kernel, 2 * shape.half() * (COARSE_LINKS - 1) * shape.rows)?;
        }
        Ok(())
    }

    /// Solves `A x = b` for so many systems, with the twisted masses or their negatives, until all residuals have fallen by `goal`.
    /// Returns the number of iterations. A right-hand side of zero has the solution zero.
    pub(in crate::solver::multigrid) fn solve(
        &mut self,
        coarse: &CoarseLinks,
        (systems, negative): (Together, bool),
        x: &mut Buffer,
        b: &Buffer,
        goal: f64,
    ) -> Result<usize, FieldError> {
        let shape = &coarse.shape;
        let which = usize::from(negative) % self.signs.len();
        let Sign { inverses, diagonal, space } = &mut self.signs[which];
        let (inverses, below) = (&*inverses, &mut self.below);
        let half = shape.half_fields();
        if space.systems != systems {
            (space.systems, space.used) = (systems, 0);
        }
        // The right-hand side on all places, then on odd ones.
        let right = |parity| (&space.right, parity * half);
        shape.local(&inverses.local, (0, systems), right(0), (b, 0))?;
        shape.local(&inverses.local, (1, systems), right(1), (b, half))?;
        shape.give((0, systems), right(0), &mut space.wires)?;
        shape.hop(
            inverses,
            (1, systems, Fate::Kept),
            (&space.residual, 0),
            (-1.0, right(0)),
            Some(right(1)),
            &mut space.wires,
        )?;
        let first = space.norm(shape)?;
        let begins = space.used == 0;
        if !begins {
            space.advance(shape, x, (0, Pass::OnlyOne), (&first, true))?;
        }
        // The device goes on while the host looks at the residual, unless the level below comes first.
        let ahead = below.is_none();
        if ahead {
            space.power(shape, inverses, 0)?;
        }
        let Manner { misses, one_by_one } = MANNERS[space.manner];
        let goal = misses * goal;
        let mut iterations = 0;
        while (begins && iterations == 0) || space.is_above(goal, &first)? {
            if iterations >= MOST {
                space.come_to_no_end();
                break;
            }
            let mut start = (&first, begins && iterations == 0);
            if let (Some((solver, correction)), Some(below)) = (&mut *below, &coarse.below) {
                let diagonal = diagonal.as_ref().expect("kept for the level below");
                self.iterations_below +=
                    space.correct(shape, (inverses, diagonal), (below, solver, correction), negative)?;
                space.advance(shape, x, (1, Pass::SecondOfTwo), start)?;
                start.1 = false;
                iterations += 1;
                space.power(shape, inverses, 0)?;
            }
            let (steps, pass) = if one_by_one { (1, Pass::SecondOfTwo) } else { (S_STEPS, Pass::OnlyOne) };
            if one_by_one {
                space.advance(shape, x, (1, Pass::FirstOfTwo), start)?;
            }
            (1..steps).try_for_each(|n| space.power(shape, inverses, n))?;
            space.advance(shape, x, (steps, pass), start)?;
            iterations += steps;
            if ahead {
                space.power(shape, inverses, 0)?;
            }
        }
        // Even places.
        shape.give((1, systems), (x, half), &mut space.wires)?;
        let (even, own) = (Some((&space.right, 0)), (0, systems, Fate::Kept));
        shape.hop(inverses, own, (x, 0), (-1.0, (x, half)), even, &mut space.wires)?;
        Ok(iterations)
    }
}

impl Space {
    /// Memory for fields of this shape.
    fn new(shape: &Shape) -> Result<Self, FieldError> {
        let (device, half, systems) = (shape.domain.device(), shape.half_fields(), shape.systems as usize);
        let coefficients = systems * MOST_FIELDS * PRODUCTS * 2 * 4;
        let messages = shape.sends_messages();
        Ok(Self {
            right: device.buffer(2 * half)?,
            spare: device.buffer(half)?,
            residual: device.buffer(half)?,
            p: device.buffer(SPACE * half)?,
            z: device.buffer(SPACE * half)?,
            parts: device.buffer(2 * PIECES * coefficients)?,
            squares: device.buffer(systems * MOST_FIELDS * 8)?,
            norms: device.buffer(systems * 8)?,
            coefficients: device.buffer(coefficients)?,
            wires: if messages { shape.wires(shape.systems)? } else { None },
            totals: messages.then(|| device.buffer(2 * coefficients)).transpose()?,
            used: 0,
            systems: shape.systems,
            manner: 0,
        })
    }

    /// Whether the residual of any system is still above `goal` times what it was first; `first` are squares of norms.
    fn is_above(&self, goal: f64, first: &Deferred) -> Result<bool, FieldError> {
        let mut residuals = vec![0.0; self.norms.bytes() / 8];
        self.norms.read(&mut residuals)?;
        let first = first.wait()?.sums;
        let mut both = residuals.iter().zip(&first).take(self.systems as usize);
        Ok(both.any(|(residual, first)| *residual > goal * goal * first.value()))
    }

    /// The squares of the residuals' norms, by themselves.
    fn norm(&self, shape: &Shape) -> Result<Deferred, FieldError> {
        let kernel = CoarseNorm {
            x: self.residual.input(),
            rows: int(shape.rows),
            places: int(shape.places.counts[1]),
            half: int(shape.half()),
        };
        let threads = self.systems as usize * 2 * shape.threads(1);
        shape.domain.sum_later_as((Half, self.systems), &kernel, threads)
    }

    /// Chooses another manner for the next solve. Directions that were found one by one are better than those before.
    fn come_to_no_end(&mut self) {
        if self.manner + 1 < MANNERS.len() {
            self.manner += 1;
            if MANNERS[self.manner].one_by_one {
                self.used = 0;
            }
        }
    }

    /// Drops directions if there is no room for those of the next steps.
    fn make_room(&mut self) {
        if self.used + S_STEPS > SPACE {
            self.used = KEPT;
        }
    }

    /// Power `n + 1` of A on the residual, for the next steps.
    fn power(&mut self, shape: &Shape, inverses: &Inverses, n: usize) -> Result<(), FieldError> {
        if n == 0 {
            self.make_room();
            shape.give((1, self.systems), (&self.residual, 0), &mut self.wires)?;
        }
        let at = |n| (&self.z, (self.used + n) * shape.half_fields());
        let last = if n == 0 { (&self.residual, 0) } else { at(n - 1) };
        let fate = if n + 1 < S_STEPS { Fate::Given } else { Fate::Kept };
        let own = (&self.spare, self.systems, &mut self.wires);
        apply((shape, inverses), own, fate, [at(n), last])
    }

    /// A direction for the next step by the level below, which solves for the residual, and its product. Returns the number of
    /// iterations there.
    fn correct(
        &mut self,
        shape: &Shape,
        (inverses, diagonal): (&Inverses, &Buffer),
        (below, solver, correction): (&Below, &mut CoarseSolver, &mut Correction),
        negative: bool,
    ) -> Result<usize, FieldError> {
        self.make_room();
        let (systems, offset) = (self.systems, self.used * shape.half_fields());
        let (p, right) = ((&self.p, offset), (&self.spare, 0));
        // Of the system on all places, (0, A_xx r) is the right-hand side.
        shape.local(diagonal, (1, systems), right, (&self.residual, 0))?;
        let mut iterations = 0;
        let own = (systems, negative);
        below.correct((shape, systems), correction, [p, right], |x, b| {
            iterations = solver.solve(&below.links, own, x, b, RESIDUAL_BELOW)?;
            Ok(())
        })?;
        shape.give((1, systems), p, &mut self.wires)?;
        let own = (&self.spare, systems, &mut self.wires);
        apply((shape, inverses), own, Fate::Kept, [(&self.z, offset), p])?;
        Ok(iterations)
    }

    /// `steps` iterations after as many [powers](Self::power), which add as many directions; without any, x becomes the
    /// solution in the space so far. The first pass of two makes no step. `first` are the squares of the residuals' norms where
    /// the solve began; `begins`: it begins now, and x is zero.
    fn advance(
        &mut self,
        shape: &Shape,
        x: &mut Buffer,
        (steps, pass): (usize, Pass),
        (first, begins): (&Deferred, bool),
    ) -> Result<(), FieldError> {
        let (half, domain) = (shape.half_fields(), &shape.domain);
        // Those that make steps, and those for which there is room.
        let (now, systems) = (self.systems as usize, int(shape.systems as usize));
        let (rows, before, places) = (int(shape.rows), int(self.used), int(shape.places.counts[1]));
        let begins = i32::from(begins);
        let kernel = CoarseDots {
            z: self.z.input(),
            r: self.residual.input(),
            squares: self.squares.input(),
            norms: self.norms.input(),
            parts: self.parts.output(),
            first: numbers_of(first)?,
            begins,
            before,
            steps: int(steps),
            rows,
            places,
            half: int(shape.half()),
            systems,
        };
        let (numbers, fields) = (TILE * PRODUCTS * 2, self.used + steps + 1);
        let tiles = fields.div_ceil(TILE);
        let team = Team { threads: SUMMANDS * COLUMNS, shared: (numbers + 1) * SUMMANDS * COLUMNS * 8 };
        domain.launch_teams(Half, &kernel, now * tiles * PIECES, team)?;
        self.add_up(shape, fields)?;
        let kernel = CoarseBlock {
            parts: self.totals.as_ref().unwrap_or(&self.parts).input(),
            squares: self.squares.output(),
            norms: self.norms.output(),
            coefficients: self.coefficients.output(),
            round: shape.products(),
            pieces: int(if self.totals.is_some() { 1 } else { PIECES }),
            before,
            steps: int(steps),
            systems,
            pass,
        };
        let pairs = (BLOCK_PARTS + 2) * PRODUCTS * PRODUCTS;
        let shared = 2 * 8 * (MOST_FIELDS * PRODUCTS + pairs);
        domain.launch_teams(Half, &kernel, now, Team { threads: BLOCK_THREADS, shared })?;
        let kernel = CoarseAdvance {
            x: x.output_at(half),
            r: self.residual.output(),
            p: self.p.output(),
            z: self.z.output(),
            coefficients: self.coefficients.input(),
            before,
            steps: int(steps),
            pass,
            begins,
            places,
            half: int(shape.half()),
            systems,
            rows,
        };
        if pass != Pass::FirstOfTwo {
            self.used += steps;
        }
        domain.launch_as(Half, &kernel, now * shape.threads(1))
    }

    /// Where ranks exchange messages: the sums of the parts over all ranks. They are exact, so their order does not matter.
    fn add_up(&mut self, shape: &Shape, fields: usize) -> Result<(), FieldError> {
        let Some(totals) = &mut self.totals else { return Ok(()) };
        let numbers = fields * PRODUCTS * 2;
        let count = self.systems as usize * numbers;
        let kernel =
            CoarseTotals { parts: self.parts.input(), totals: totals.output(), numbers: int(numbers) };
        shape.domain.launch_as(Half, &kernel, count)?;
        let mut own = vec![0_f64; count];
        totals.read(&mut own)?;
        let all = shape.domain.waiting(|| shape.domain.comm().gather(bytemuck::cast_slice(&own)));
        own.fill(0.0);
        for rank in all {
            let words = rank.as_chunks().0.iter().map(|bytes| f64::from_ne_bytes(*bytes));
            own.iter_mut().zip(words).for_each(|(sum, word)| *sum += word);
        }
        Ok(totals.write(&own)?)
    }
}

/// `out = A x` by a field in between, for so many systems; x was given.
fn apply(
    (shape, inverses): (&Shape, &Inverses),
    (between, systems, wires): (&Buffer, Together, &mut Option<Wires>),
    fate: Fate,
    [out, x]: [From; 2],
) -> Result<(), FieldError> {
    let between = (between, 0);
    shape.hop(inverses, (0, systems, Fate::Given), between, (1.0, x), None, wires)?;
    shape.hop(inverses, (1, systems, fate), out, (-1.0, between), Some(x), wires)
}
