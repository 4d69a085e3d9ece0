//! GCR on the even-odd preconditioned coarse operator, several steps at a time (`kernels/coarse.cuh`).

use super::{CoarseLinks, Inverses, Part, Posts, Shape};
use crate::device::kernels::{
    BLOCK_PARTS, BLOCK_THREADS, COARSE_LINKS, COLUMNS, CoarseAdvance, CoarseBlock, CoarseDots,
    CoarseEliminate, CoarseMultiply, CoarseNorm, CoarseRound, CoarseTwist, Half, MOST_FIELDS, PIECES, POSTS,
    Pass, RankRound, S_STEPS, SUMMANDS, TILE,
};
use crate::device::{Buffer, Device, DeviceError, Teams};
use crate::field::{FieldError, Sum};

/// Directions of the Krylov space. They are kept from solve to solve, for the first ones know the modes that converge slowly.
const SPACE: usize = 64;
/// How many are kept when there is no room for more.
const KEPT: usize = 48;
/// The maximum number of iterations of a solve.
const MOST: usize = 96;
/// Fields in a product at once: those of a block, and the residual.
pub(super) const PRODUCTS: usize = S_STEPS + 1;
const _: () =
    assert!(SPACE + PRODUCTS <= MOST_FIELDS && KEPT + S_STEPS <= SPACE && MOST.is_multiple_of(S_STEPS));
// All ranks meet in the products of a block. Until the next ones, they may post a residual and two fields of a power that is
// not needed, x, the next right-hand side, its residual, and all fields of the next powers but the last.
const _: () = assert!(2 * S_STEPS + 5 <= POSTS);

/// What solves systems of the coarse operator with one twisted mass.
pub(in crate::solver::multigrid) struct CoarseSolver {
    twist: f64,
    /// For mu and -mu, or for 0.
    signs: Vec<(Inverses, Space)>,
}

/// Workspace of GCR; fields are on places of one parity unless told.
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
    /// Directions from solves so far.
    used: usize,
    /// Whether sums follow each step, after a solve in several steps at a time that came to no end: what they find is
    /// less new if few modes are much harder than others.
    one_by_one: bool,
}

impl CoarseSolver {
    /// Memory for systems with this twisted mass.
    pub(in crate::solver::multigrid) fn new(coarse: &CoarseLinks, twist: f64) -> Result<Self, FieldError> {
        let shape = &coarse.shape;
        let device = shape.domain.device();
        let columns = 2 * shape.half * (COARSE_LINKS - 1) * shape.rows;
        let sign = |_| -> Result<_, DeviceError> {
            let links = device.buffer(columns * shape.rows * 4)?;
            let inverses = Inverses { local: shape.matrices(1)?, links, scales: device.buffer(columns * 4)? };
            Ok((inverses, Space::new(device, shape.half_field())?))
        };
        let signs = (0..if twist == 0.0 { 1 } else { 2 }).map(sign).collect::<Result<_, _>>()?;
        Ok(Self { twist, signs })
    }

    /// As after a solve that came to no end, for tests.
    #[cfg(test)]
    pub(in crate::solver::multigrid) fn go_step_by_step(&mut self) {
        self.signs.iter_mut().for_each(|(_, space)| (space.used, space.one_by_one) = (0, true));
    }

    /// Adapts it to new links, and drops what it knows from earlier solves.
    pub(in crate::solver::multigrid) fn update(&mut self, coarse: &CoarseLinks) -> Result<(), FieldError> {
        let CoarseLinks { shape, links, odd, .. } = coarse;
        self.signs.iter_mut().for_each(|(_, space)| (space.used, space.one_by_one) = (0, false));
        let (rows, elements) = (shape.rows as i32, shape.elements());
        let other = shape.matrices(1)?;
        let mut products = shape.matrices(COARSE_LINKS - 1)?;
        for ((Inverses { local, links: rounded, scales }, _), sign) in self.signs.iter_mut().zip([1.0, -1.0])
        {
            let twist = sign * self.twist;
            let t = odd.as_ref().filter(|_| twist != 0.0).map(Buffer::input);
            let kernel = CoarseTwist { links: links.input(), t, out: local.output(), rows, twist };
            shape.domain.launch_as(Half, &kernel, elements)?;
            // An even number of steps, so that the last one ends in `local`.
            for pivot in 0..rows {
                let [a, out] = if pivot % 2 == 0 { [&*local, &other] } else { [&other, &*local] };
                let kernel = CoarseEliminate { a: a.input(), out: out.shared_output(), rows, pivot };
                shape.domain.launch_as(Half, &kernel, elements)?;
            }
            let kernel =
                CoarseMultiply { b: local.input(), links: links.input(), out: products.output(), rows };
            shape.domain.launch_as(Half, &kernel, (COARSE_LINKS - 1) * elements)?;
            let (out, scales) = (rounded.output(), scales.output());
            let kernel = CoarseRound { matrices: products.input(), out, scales, rows };
            shape.domain.launch_as(Half, &kernel, 2 * shape.half * (COARSE_LINKS - 1) * shape.rows)?;
        }
        Ok(())
    }

    /// Solves `A x = b`, for the twisted mass or its negative, until the residual has fallen by `goal`. Returns the
    /// number of iterations.
    pub(in crate::solver::multigrid) fn solve(
        &mut self,
        coarse: &CoarseLinks,
        negative: bool,
        x: &mut Buffer,
        b: &Buffer,
        goal: f64,
    ) -> Result<usize, FieldError> {
        let shape = &coarse.shape;
        let sign = usize::from(negative) % self.signs.len();
        let (inverses, space) = &mut self.signs[sign];
        let inverses = &*inverses;
        let half = shape.half_field();
        // The right-hand side on all places, then on odd ones.
        let right = |parity| (&space.right, parity * half);
        shape.local(inverses, 0, right(0), (b, 0))?;
        shape.local(inverses, 1, right(1), (b, half))?;
        shape.post(0, right(0))?;
        shape.hop(inverses, (1, Posts::Reads), (&space.residual, 0), (-1.0, right(0)), Some(right(1)))?;
        let first = space.norm(shape)?;
        let begins = space.used == 0;
        if !begins {
            space.advance(shape, x, (0, Pass::OnlyOne), (&first, true))?;
        }
        space.power(shape, inverses, 0)?;
        let mut iterations = 0;
        while (begins && iterations == 0) || space.residual()? > goal * goal * first.value()? {
            if iterations >= MOST {
                if !std::mem::replace(&mut space.one_by_one, true) {
                    space.used = 0;
                }
                break;
            }
            let start = (&first, begins && iterations == 0);
            let (steps, pass) =
                if space.one_by_one { (1, Pass::SecondOfTwo) } else { (S_STEPS, Pass::OnlyOne) };
            if space.one_by_one {
                space.advance(shape, x, (1, Pass::FirstOfTwo), start)?;
            }
            (1..steps).try_for_each(|n| space.power(shape, inverses, n))?;
            space.advance(shape, x, (steps, pass), start)?;
            iterations += steps;
            // The device goes on while the host looks at the residual.
            space.power(shape, inverses, 0)?;
        }
        // Even places.
        shape.post(1, (x, half))?;
        let even = Some((&space.right, 0));
        shape.hop(inverses, (0, Posts::Reads), (x, 0), (-1.0, (x, half)), even)?;
        Ok(iterations)
    }
}

impl Space {
    /// Memory for fields of `half` bytes.
    fn new(device: &Device, half: usize) -> Result<Self, DeviceError> {
        let coefficients = MOST_FIELDS * PRODUCTS * 2 * 4;
        Ok(Self {
            right: device.buffer(2 * half)?,
            spare: device.buffer(half)?,
            residual: device.buffer(half)?,
            p: device.buffer(SPACE * half)?,
            z: device.buffer(SPACE * half)?,
            parts: device.buffer(2 * PIECES * coefficients)?,
            squares: device.buffer(MOST_FIELDS * 8)?,
            norms: device.buffer(8)?,
            coefficients: device.buffer(coefficients)?,
            used: 0,
            one_by_one: false,
        })
    }

    /// The square of the residual's norm after the last step.
    fn residual(&self) -> Result<f64, FieldError> {
        let mut residual = [0.0];
        self.norms.read(&mut residual)?;
        Ok(residual[0])
    }

    /// The square of the residual's norm, by itself.
    fn norm(&self, shape: &Shape) -> Result<Sum, FieldError> {
        let Part { places, .. } = &shape.parts[1];
        let kernel = CoarseNorm { own: places.input(), x: self.residual.input(), rows: shape.rows as i32 };
        let threads = 2 * shape.own_threads(1);
        Ok(Sum::first(if shape.together.is_some() {
            shape.domain.sum_later_as(Half, &kernel, threads)?
        } else {
            shape.domain.device().sum_later(Half, &kernel, threads)?
        }))
    }

    /// Power `n + 1` of A on the residual, for the next steps. Before the first one, directions are dropped if there is no
    /// room for more.
    fn power(&mut self, shape: &Shape, inverses: &Inverses, n: usize) -> Result<(), FieldError> {
        if n == 0 {
            if self.used + S_STEPS > SPACE {
                self.used = KEPT;
            }
            shape.post(1, (&self.residual, 0))?;
        }
        let at = |n| (&self.z, (self.used + n) * shape.half_field());
        let last = if n == 0 { (&self.residual, 0) } else { at(n - 1) };
        let posts = if n + 1 < S_STEPS { Posts::ReadsAndGives } else { Posts::Reads };
        shape.hop(inverses, (0, Posts::ReadsAndGives), (&self.spare, 0), (1.0, last), None)?;
        shape.hop(inverses, (1, posts), at(n), (-1.0, (&self.spare, 0)), Some(last))
    }

    /// `steps` iterations after as many [powers](Self::power), which add as many directions; without any, x becomes the
    /// solution in the space so far. The first pass of two makes no step. `first` is the square of the residual's norm where
    /// the solve began; `begins`: it begins now, and x is zero.
    fn advance(
        &mut self,
        shape: &Shape,
        x: &Buffer,
        (steps, pass): (usize, Pass),
        (first, begins): (&Sum, bool),
    ) -> Result<(), FieldError> {
        let (half, domain) = (shape.half_field(), &shape.domain);
        let (rows, before) = (shape.rows as i32, self.used as i32);
        let Part { places: own, count } = &shape.parts[1];
        let begins = i32::from(begins);
        let kernel = CoarseDots {
            own: own.input(),
            z: self.z.input(),
            r: self.residual.input(),
            squares: self.squares.input(),
            norms: self.norms.input(),
            parts: self.parts.shared_output(),
            first: (first / 1.0).argument()?,
            begins,
            before,
            steps: steps as i32,
            rows,
            places: *count as i32,
            half: shape.half as i32,
        };
        let numbers = TILE * PRODUCTS * 2;
        let teams = Teams {
            count: (self.used + steps + 1).div_ceil(TILE) * PIECES,
            threads: SUMMANDS * COLUMNS,
            shared: (numbers + 1) * SUMMANDS * COLUMNS * 8,
        };
        domain.launch_teams(Half, &kernel, teams)?;
        let kernel = CoarseBlock {
            parts: self.parts.input(),
            squares: self.squares.shared_output(),
            norms: self.norms.shared_output(),
            coefficients: self.coefficients.shared_output(),
            round: shape.together.as_ref().map_or(RankRound::ALONE, |[_, products]| products.next()),
            before,
            steps: steps as i32,
            pass,
        };
        let pairs = (BLOCK_PARTS + 2) * PRODUCTS * PRODUCTS;
        let shared = 2 * 8 * (MOST_FIELDS * PRODUCTS + pairs);
        domain.launch_teams(Half, &kernel, Teams { count: 1, threads: BLOCK_THREADS, shared })?;
        let kernel = CoarseAdvance {
            own: own.input(),
            x: x.shared_output_at(half),
            r: self.residual.shared_output(),
            p: self.p.shared_output(),
            z: self.z.shared_output(),
            coefficients: self.coefficients.input(),
            before,
            steps: steps as i32,
            pass,
            begins,
            length: (half / 4) as i32,
            rows,
        };
        if pass != Pass::FirstOfTwo {
            self.used += steps;
        }
        domain.launch_as(Half, &kernel, shape.own_threads(1))
    }
}
