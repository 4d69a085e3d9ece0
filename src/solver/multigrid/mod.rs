//! Adaptive aggregation multigrid (Brannick et al., arXiv:0707.4018; Babich et al., arXiv:1005.3043) as a preconditioner of a
//! Schur complement W on odd sites.
//!
//! `W^-1 r = [M^-1 (0, B r)]_o`, with M on all sites, a twisted mass included. So a cycle restricts `(0, B r)`,
//! solves the Galerkin operator `P^dag M P`, prolongs to odd sites, and ends with minimal-residual steps for W. The vectors of
//! P nearly solve `M v = 0`: odd sites are those for which `W v` is small, even ones follow.
//!
//! - `aggregates`: the division of the lattice
//! - `prolongator`: P and its adjoint
//! - `keys`: the method of an input that has it
//! - `transfer`: the way between spinors and the order of aggregates
//! - `coarse`: the coarse operator and its solver, in which a third level may take part

mod aggregates;
mod coarse;
mod keys;
mod prolongator;
#[cfg(test)]
mod tests;
mod transfer;

use super::{Info, Operators, Preconditioner, Setup, SolverError, timed};
use crate::device::kernels::{COLUMNS, Together};
use crate::device::{Buffer, Precision, Stamp};
use crate::field::{Dagger, Domain, EVEN, FieldError, ODD, Purpose, RandomAddress, Spinor, common};
use crate::lattice::{Extents, Partition, volume};
use crate::operator::{Blocks, Twists, WholeOperator};
pub use keys::GcrMultigrid;

use aggregates::Aggregates;
use coarse::{CoarseLinks, CoarseSolver};
use prolongator::{Gathered, Numbers};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use transfer::Transfer;

/// Parameters of the preconditioner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultigridParams {
    /// Extents of an aggregate.
    pub block: Extents,
    /// Extents of an aggregate of aggregates, in those: a third level.
    pub coarse_block: Option<Extents>,
    /// Vectors of P, a multiple of 8. A set-up makes four at once.
    pub vectors: usize,
    /// Minimal-residual steps after a coarse correction.
    pub steps: usize,
}

impl MultigridParams {
    /// Extents of the largest aggregates, in sites.
    pub fn coarsest(&self) -> Extents {
        let factors = self.coarse_block.unwrap_or([1; 4]);
        std::array::from_fn(|mu| self.block[mu] * factors[mu])
    }

    /// Whether all aggregates fit the lattice and this rank's box, the number of vectors is a multiple of 8, and that of numbers
    /// in a chirality of an aggregate of aggregates one of 16.
    pub fn fits(&self, partition: &Partition) -> bool {
        let divides = |block: Extents| (0..4).all(|mu| partition.local()[mu].is_multiple_of(block[mu]));
        let fits = |block| Multigrid::fits(partition.global, block) && divides(block);
        let numbers = self.coarse_block.map_or(COLUMNS, |block| self.vectors * volume(block));
        fits(self.block)
            && fits(self.coarsest())
            && self.vectors.is_multiple_of(8)
            && self.vectors > 0
            && numbers.is_multiple_of(COLUMNS)
    }
}

/// The residual that coarse solves leave.
const COARSE_RESIDUAL: f64 = 0.1;
/// Minimal-residual steps that turn a random spinor into one for which `W v` is small, and those that adapt it to new links.
const FIRST_STEPS: usize = 256;
const MORE_STEPS: usize = 16;
/// Vectors are normalised every so many steps: they shrink, and in half precision would drown in rounding errors.
const STEPS_AT_ONCE: usize = 32;
/// The vectors are smoothed again when iterations per digit exceed this multiple of what they were right after the set-up.
const GROWTH: f64 = 1.3;
/// Fewer iterations do not tell whether the space serves.
const ENOUGH: usize = 4;
/// The seed of the random spinors: the space of given links is always the same.
const SEED: u64 = 20_071_004;

/// The preconditioner.
pub struct Multigrid {
    params: MultigridParams,
    blocks: Blocks,
    domain: Arc<Domain>,
    precision: Precision,
    together: Together,
    hierarchy: Option<Arc<Mutex<Hierarchy>>>,
    /// Whether the space is to be adapted to the links before its next use.
    outgrown: bool,
}

/// P and the coarse operator. Operators that differ in the regulator alone have them in common.
struct Hierarchy {
    params: MultigridParams,
    blocks: Blocks,
    transfer: Transfer,
    links: CoarseLinks,
    solvers: Vec<(Twists, Version, CoarseSolver)>,
    /// The vectors of P before they were made orthonormal, on odd sites.
    smooth: Spinor,
    /// The number of the space, and the number of that with `P_o^dag P_o`.
    version: Version,
    odd_version: Version,
    made: Option<Made>,
    /// Iterations per factor of ten in the first solve with the space.
    cost: Option<f64>,
    room: Room,
}

/// 0 before the first.
type Version = u64;

/// The origin of a space.
struct Made {
    /// The links that it was made for, or last adapted to.
    links: Stamp,
    /// Whether it follows from them alone.
    anew: bool,
    /// Whether it has served other links since: the trajectory has begun.
    walked: bool,
}

/// Workspace. In a cycle the first three spinors have as many active fields as there are systems; elsewhere any of them serves as
/// a single one.
struct Room {
    residuals: Spinor,
    products: Spinor,
    solutions: Spinor,
    even: Spinor,
    /// A spinor of each system in the order of aggregates.
    fields: Gathered,
    right: Buffer,
    left: Buffer,
}

impl Multigrid {
    /// Whether a lattice divides into such aggregates: several, and in each direction one or an even number.
    pub fn fits(extents: Extents, block: Extents) -> bool {
        let divides = (0..4).all(|mu| extents[mu].is_multiple_of(block[mu]));
        let counts: Extents = std::array::from_fn(|mu| extents[mu] / block[mu].max(1));
        divides && counts.iter().all(|&n| n == 1 || n.is_multiple_of(2)) && volume(counts) > 1
    }

    /// The maximum number of systems in a cycle.
    pub const TOGETHER: usize = Together::FourFields as usize;

    /// Workspace in `precision`, for up to `together` systems in a cycle. Vectors and coarse operator are made before the first
    /// use.
    ///
    /// # Panics
    /// The parameters do not [fit](MultigridParams::fits).
    pub fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        params: MultigridParams,
        together: usize,
    ) -> Result<Self, FieldError> {
        assert!((1..=Self::TOGETHER).contains(&together), "up to {} systems", Self::TOGETHER);
        let partition = domain.partition();
        assert!(params.fits(partition), "{params:?} that fit");
        assert!(precision != Precision::Double, "a preconditioner in single or half precision");
        Ok(Self {
            params,
            blocks: Blocks::new(partition.local(), Some(params.block)),
            domain: Arc::clone(domain),
            precision,
            together: if together == 1 { Together::OneField } else { Together::FourFields },
            hierarchy: None,
            outgrown: false,
        })
    }

    fn whole<'a>(&self, operators: &'a mut Operators) -> Result<&'a mut dyn WholeOperator, FieldError> {
        let whole = operators.at(self.precision).whole(&self.blocks)?;
        Ok(whole.expect("an operator that also acts on all sites"))
    }

    /// Memory for the hierarchy, unless another term has it.
    fn hierarchy(&mut self, operators: &mut Operators) -> Result<Arc<Mutex<Hierarchy>>, FieldError> {
        if let Some(hierarchy) = &self.hierarchy {
            return Ok(Arc::clone(hierarchy));
        }
        let name = self.whole(operators)?.name();
        let name = format!("multigrid {:?} {} {:?} {name}", self.params, self.precision, self.together);
        let make = || Hierarchy::new(&self.domain, self.precision, self.params, self.together, self.blocks);
        Ok(Arc::clone(self.hierarchy.insert(common(&self.domain, name, make)?)))
    }

    /// The hierarchy as the operator needs it.
    fn prepare(
        &mut self,
        operators: &mut Operators,
        info: &mut Info,
    ) -> Result<Arc<Mutex<Hierarchy>>, FieldError> {
        let hierarchy = self.hierarchy(operators)?;
        let start = Instant::now();
        let (now, twists) = (self.whole(operators)?.adopted(), self.whole(operators)?.twists());
        let mut own = hierarchy.lock().expect("no panic holds it");
        let before = own.version;
        match &mut own.made {
            Some(made) if made.links != now && !self.outgrown => made.walked = true,
            Some(made) if made.links == now => {}
            Some(_) => own.make(operators, false)?,
            None => own.make(operators, true)?,
        }
        self.outgrown = false;
        own.prepare_solver(twists)?;
        if own.version != before {
            self.domain.device().synchronize()?;
            info.setups += 1;
            info.setup_seconds += start.elapsed().as_secs_f64();
        }
        drop(own);
        Ok(hierarchy)
    }
}

impl Hierarchy {
    fn new(
        domain: &Arc<Domain>,
        precision: Precision,
        params: MultigridParams,
        together: Together,
        blocks: Blocks,
    ) -> Result<Self, FieldError> {
        let aggregates = Aggregates { block: params.block, partition: *domain.partition() };
        let transfer = Transfer::new(domain, precision, aggregates, params.vectors)?;
        let shape = [domain.layout(precision).lanes().count(), 2 * params.vectors];
        let links = CoarseLinks::new(domain, (shape, together), aggregates, params.coarse_block)?;
        // A set-up makes as many vectors at once, whatever the number of systems.
        let several = || Spinor::several(domain, precision, Multigrid::TOGETHER);
        let room = Room {
            residuals: several()?,
            products: several()?,
            solutions: several()?,
            even: Spinor::new(domain, precision)?,
            fields: transfer.p.fields(together as usize)?,
            right: links.fields()?,
            left: links.fields()?,
        };
        Ok(Self {
            params,
            blocks,
            transfer,
            links,
            solvers: Vec::new(),
            smooth: Spinor::several(domain, precision, params.vectors)?,
            version: 0,
            odd_version: 0,
            made: None,
            cost: None,
            room,
        })
    }

    /// Makes the space from random spinors, or from the vectors that it has.
    fn make(&mut self, operators: &mut Operators, anew: bool) -> Result<(), FieldError> {
        self.made = None;
        let mut vectors = self.transfer.p.fields(self.params.vectors)?;
        for first in (0..self.params.vectors).step_by(Multigrid::TOGETHER) {
            self.make_vectors(operators, &mut vectors, first, anew)?;
        }
        self.transfer.p.take(&mut vectors)?;
        drop(vectors);
        self.make_links(operators)?;
        self.make_below(operators)?;
        self.version += 1;
        let whole = operators.at(self.smooth.precision()).whole(&self.blocks)?;
        let links = whole.expect("an operator on all sites").adopted();
        self.made = Some(Made { links, anew, walked: false });
        self.cost = None;
        Ok(())
    }

    /// Makes what solves coarse systems with these twisted masses.
    fn prepare_solver(&mut self, twists: Twists) -> Result<(), FieldError> {
        if twists.odd != 0.0 && self.odd_version != self.version {
            self.make_odd()?;
            self.odd_version = self.version;
        }
        self.reserve_solver(twists)?;
        let Self { links, solvers, version, .. } = self;
        let (_, of, solver) = solvers.iter_mut().find(|(of, ..)| *of == twists).expect("one was made");
        if of != version {
            solver.update(links)?;
            *of = *version;
        }
        Ok(())
    }

    /// Memory for [`Hierarchy::prepare_solver`].
    fn reserve_solver(&mut self, twists: Twists) -> Result<(), FieldError> {
        let Self { links, solvers, .. } = self;
        if solvers.iter().all(|(of, ..)| *of != twists) {
            solvers.push((twists, 0, CoarseSolver::new(links, twists)?));
        }
        if twists.odd == 0.0 { Ok(()) } else { links.reserve_odd() }
    }

    /// Takes all memory that a set-up will need, and gives back what it needs for a moment. So a lack of memory shows at the
    /// start, and a plan of memory, which solves nothing, counts it.
    fn reserve(&mut self, twists: Twists) -> Result<(), FieldError> {
        self.reserve_solver(twists)?;
        let p = &self.transfer.p;
        drop((p.fields(self.params.vectors)?, self.random()?));
        [1, 4, 4, 4, 4, 4].map(|fields| p.fields(fields)).into_iter().collect::<Result<Vec<_>, _>>()?;
        CoarseSolver::room_of_update(&self.links)?;
        Ok(())
    }

    /// A field for random numbers.
    fn random(&self) -> Result<Spinor, FieldError> {
        Spinor::new(self.smooth.domain(), self.smooth.precision().of_solution())
    }

    /// Makes the next four vectors, from number `first` on: from random spinors, or from the vectors of before.
    fn make_vectors(
        &mut self,
        operators: &mut Operators,
        vectors: &mut Gathered,
        first: usize,
        anew: bool,
    ) -> Result<(), FieldError> {
        let precision = self.smooth.precision();
        let all = 0..Multigrid::TOGETHER;
        self.room.set_active(all.len());
        let steps = if anew {
            let mut random = self.random()?;
            for n in all.clone() {
                let vector = (first + n) as u64;
                let address = RandomAddress { seed: SEED, trajectory: vector, purpose: Purpose::SPACE };
                random.set_random(ODD, 1.0, address)?;
                self.room.solutions.copy_field(n, &random, 0)?;
            }
            FIRST_STEPS
        } else {
            all.clone().try_for_each(|n| self.room.solutions.copy_field(n, &self.smooth, first + n))?;
            MORE_STEPS
        };
        for done in (0..steps).step_by(STEPS_AT_ONCE) {
            let Room { residuals, solutions, .. } = &mut self.room;
            operators.at(precision).apply(residuals, solutions, Dagger::No)?;
            residuals.scale_each(&[-1.0; Multigrid::TOGETHER])?;
            self.room.smooth(operators, Dagger::No, STEPS_AT_ONCE.min(steps - done))?;
            let solutions = &mut self.room.solutions;
            let norms = solutions.dot_each(solutions)?;
            let factor = |norm: &f64| if *norm > 0.0 { 1.0 / norm.sqrt() } else { 1.0 };
            solutions.scale_each(&norms.iter().map(factor).collect::<Vec<_>>())?;
        }
        let Room { residuals: odd, solutions, even, .. } = &mut self.room;
        odd.set_active(1);
        for n in all {
            odd.copy_field(0, solutions, n)?;
            let whole = operators.at(precision).whole(&self.blocks)?;
            whole.expect("an operator on all sites").complete(even, odd)?;
            self.smooth.set_field(first + n, odd)?;
            for (parity, x) in [&*even, &*odd].into_iter().enumerate() {
                self.transfer.gather(vectors, first + n, x, parity)?;
            }
        }
        Ok(())
    }

    /// For four vectors of a chirality at a time, calls `work` with the number of the first one's column after `each` with
    /// the even and odd sites of each.
    fn columns<T>(
        &mut self,
        state: &mut T,
        mut each: impl FnMut(&mut T, &Transfer, usize, [&Spinor; 2], &mut Spinor) -> Result<(), FieldError>,
        mut work: impl FnMut(&mut T, &Transfer, &mut CoarseLinks, usize) -> Result<(), FieldError>,
    ) -> Result<(), FieldError> {
        self.room.set_active(1);
        let Self { transfer, links, room, params, .. } = self;
        let Room { products: product, solutions: odd, even, .. } = room;
        let mut one = transfer.p.fields(1)?;
        for chirality in 0..2 {
            for first in (0..params.vectors).step_by(4) {
                for n in 0..4 {
                    transfer.p.vector(&mut one, first + n, chirality)?;
                    for (parity, x) in [&mut *even, &mut *odd].into_iter().enumerate() {
                        transfer.scatter(x, &one, 0, parity)?;
                    }
                    each(state, transfer, n, [even, odd], product)?;
                }
                work(state, transfer, links, chirality * params.vectors + first)?;
            }
        }
        Ok(())
    }

    /// The Galerkin operator of the vectors, column by column.
    fn make_links(&mut self, operators: &mut Operators) -> Result<(), FieldError> {
        let (precision, blocks) = (self.smooth.precision(), self.blocks);
        let whole = operators.at(precision).whole(&blocks)?.expect("an operator on all sites");
        // The local link, then those forward in x, y, z, t.
        let mut fields: Vec<Gathered> =
            (0..5).map(|_| self.transfer.p.fields(4)).collect::<Result<_, _>>()?;
        self.columns(
            &mut fields,
            |fields, transfer, n, x, product| {
                for parity in [EVEN, ODD] {
                    for (which, fields) in fields.iter_mut().enumerate() {
                        match which.checked_sub(1) {
                            None => whole.apply_within(product, x, parity)?,
                            Some(mu) => whole.apply_across(product, x[1 - parity], parity, mu)?,
                        }
                        transfer.gather(fields, n, product, parity)?;
                    }
                }
                Ok(())
            },
            |fields, transfer, links, column| {
                let mut each = fields.iter().enumerate();
                each.try_for_each(|(which, fields)| links.set_link(&transfer.p, which, column, fields))
            },
        )?;
        drop(fields);
        self.links.complete()
    }

    /// The third level, from what P makes of the vectors.
    fn make_below(&mut self, operators: &mut Operators) -> Result<(), FieldError> {
        self.room.set_active(1);
        let Self { transfer, links, smooth, room: Room { solutions: odd, even, .. }, blocks, .. } = self;
        let mut one = transfer.p.fields(1)?;
        links.make_below(|links, n, out| {
            smooth.field(n, odd)?;
            let whole = operators.at(odd.precision()).whole(blocks)?;
            whole.expect("an operator on all sites").complete(even, odd)?;
            for (parity, x) in [&*even, &*odd].into_iter().enumerate() {
                transfer.gather(&mut one, 0, x, parity)?;
            }
            let own = (&one, Together::OneField);
            transfer.p.restrict(links.of_field(out), own, Numbers::All, Dagger::No)
        })
    }

    /// `P_o^dag P_o`
    fn make_odd(&mut self) -> Result<(), FieldError> {
        let mut field = self.transfer.p.fields(4)?;
        self.columns(
            &mut field,
            |field, transfer, n, x, _| transfer.gather(field, n, x[ODD], ODD),
            |field, transfer, links, column| links.set_odd(&transfer.p, column, (field, Numbers::Odd)),
        )?;
        drop(field);
        self.links.make_below_odd()
    }

    /// `out_n ~ W^-1 x_n`, or for the adjoint.
    fn cycle(
        &mut self,
        operators: &mut Operators,
        out: &mut [&mut Spinor],
        x: &[&Spinor],
        dagger: Dagger,
        info: &mut Info,
    ) -> Result<(), FieldError> {
        self.room.set_active(x.len());
        let Self { transfer, links, solvers, blocks, room, params, .. } = self;
        let Room { residuals, products, solutions, fields, right, left, .. } = room;
        let precision = products.precision();
        let systems = if x.len() == 1 { Together::OneField } else { links.systems() };
        let weigh = |operators: &mut Operators, out: &mut Spinor, x: &Spinor| {
            operators.at(precision).whole(blocks)?.expect("an operator on all sites").weigh(out, x)
        };
        let twists = operators.at(precision).whole(blocks)?.expect("an operator on all sites").twists();
        // The adjoint of W is gamma_5 W gamma_5 for the opposite twists, with B on the other side.
        let adjoint = dagger == Dagger::Yes;
        x.iter().enumerate().try_for_each(|(n, x)| residuals.copy_field(n, x, 0))?;
        if adjoint {
            transfer.gather(fields, 0, residuals, ODD)?;
        } else {
            weigh(operators, products, residuals)?;
            transfer.gather(fields, 0, products, ODD)?;
        }
        if x.len() < systems as usize {
            products.set_active(systems as usize - x.len());
            products.set_zero()?;
            transfer.gather(fields, x.len(), products, ODD)?;
            products.set_active(x.len());
        }
        transfer.p.restrict(links.of_fields(right), (fields, systems), Numbers::Odd, dagger)?;
        let (.., solver) = solvers.iter_mut().find(|(of, ..)| *of == twists).expect("a solver was prepared");
        info.coarse_seconds += timed(&Arc::clone(products.domain()), || {
            info.coarse_iterations +=
                solver.solve(links, (systems, adjoint), left, right, COARSE_RESIDUAL)?;
            info.coarsest_iterations += std::mem::take(&mut solver.iterations_below);
            Ok(())
        })?;
        transfer.p.prolong((fields, systems), links.of_fields(left), Numbers::Odd, dagger)?;
        if adjoint {
            transfer.scatter(products, fields, 0, ODD)?;
            weigh(operators, solutions, products)?;
        } else {
            transfer.scatter(solutions, fields, 0, ODD)?;
        }
        operators.at(precision).apply(products, solutions, dagger)?;
        residuals.axpy_each(&vec![-1.0; x.len()], products)?;
        room.smooth(operators, dagger, params.steps)?;
        out.iter_mut().enumerate().try_for_each(|(n, out)| out.copy_field(0, &room.solutions, n))
    }
}

impl Room {
    fn set_active(&mut self, fields: usize) {
        for spinor in [&mut self.residuals, &mut self.products, &mut self.solutions] {
            spinor.set_active(fields);
        }
    }

    /// Minimal-residual steps for W from the solutions, which have these residuals.
    fn smooth(&mut self, operators: &mut Operators, dagger: Dagger, steps: usize) -> Result<(), FieldError> {
        let Self { residuals, products, solutions, .. } = self;
        for _ in 0..steps {
            operators.at(residuals.precision()).apply(products, residuals, dagger)?;
            solutions.least_mr_step_each(residuals, products)?;
        }
        Ok(())
    }
}

impl Preconditioner for Multigrid {
    fn apply(
        &mut self,
        operators: &mut Operators,
        out: &mut [&mut Spinor],
        x: &[&Spinor],
        dagger: Dagger,
        info: &mut Info,
    ) -> Result<(), FieldError> {
        let hierarchy = self.prepare(operators, info)?;
        hierarchy.lock().expect("no panic holds it").cycle(operators, out, x, dagger, info)
    }

    fn solved(&mut self, iterations: usize, digits: f64) {
        let Some(hierarchy) = &self.hierarchy else { return };
        let cost = iterations as f64 / digits;
        if iterations >= ENOUGH && cost.is_finite() {
            let first = *hierarchy.lock().expect("no panic holds it").cost.get_or_insert(cost);
            self.outgrown = cost > GROWTH * first;
        }
    }
}

impl Setup for Multigrid {
    fn keeps(&self) -> bool {
        true
    }

    /// Takes the memory of the space. It is made before its first use, and follows the links by itself.
    fn update(&mut self, operators: &mut Operators) -> Result<(), SolverError> {
        if self.hierarchy.is_none() {
            let (hierarchy, twists) = (self.hierarchy(operators)?, self.whole(operators)?.twists());
            hierarchy.lock().expect("no panic holds it").reserve(twists)?;
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.outgrown = false;
        if let Some(hierarchy) = &self.hierarchy {
            let mut own = hierarchy.lock().expect("no panic holds it");
            // Another term may have made it already for the trajectory that begins. What its solves have found stays with it:
            // in a job that resumes, this term has nothing yet to forget.
            own.made = own.made.take().filter(|made| made.anew && !made.walked);
        }
    }
}
