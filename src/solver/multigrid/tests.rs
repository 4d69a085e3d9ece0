//! Laws of transfers and of the coarse operator, on random links; `dense`: beside the plain reference.

mod dense;

use super::*;
use crate::family::{Schur, Wilson, WilsonParams};
use crate::field::MatrixField;
use crate::lattice::Boundary;
use crate::math::single;
use crate::operator::{CloverForm, CloverTerm, Operator, Twists};
use num_complex::Complex64;
use std::sync::MutexGuard;

const EXTENTS: Extents = [4, 4, 4, 8];
const BLOCK: Extents = [2, 2, 2, 4];
const VECTORS: usize = 8;
const ROWS: usize = 2 * VECTORS;
/// Relative, of sums in single precision.
const ROUNDING: f64 = 1e-5;
/// Relative, of products of vectors in 16 bits.
const VECTORS_ROUNDING: f64 = 5e-5;

struct Made {
    domain: Arc<Domain>,
    multigrid: Multigrid,
    all: [Wilson; 2],
    /// Operators point into it.
    _clover: Option<CloverTerm>,
}

fn operators(all: &mut [Wilson; 2]) -> Operators<'_> {
    let [double, single] = all;
    Operators { double, single: Some(single), half: None }
}

fn made(mu: f64, schur: Schur, c_sw: f64) -> Made {
    let domain = Domain::local(EXTENTS).unwrap();
    let mut links = MatrixField::new(&domain, 4).unwrap();
    links.set_random(RandomAddress { seed: 7, trajectory: 0, purpose: Purpose::Start }).unwrap();
    made_on(&links, BLOCK, params(mu, schur, c_sw))
}

/// In the asymmetric form, mu is beside a twisted mass on all sites.
fn params(mu: f64, schur: Schur, c_sw: f64) -> WilsonParams {
    WilsonParams {
        kappa: 0.11,
        mu,
        twisted_mass: if mu != 0.0 && schur == Schur::Asymmetric { 0.2 } else { 0.0 },
        c_sw,
        clover: CloverForm::Linear,
        boundary: Boundary::phases([0.0, 0.5, 0.0, 1.0]),
        schur,
    }
}

fn made_on(links: &MatrixField, block: Extents, params: WilsonParams) -> Made {
    let multigrid = MultigridParams { block, coarse_block: None, vectors: VECTORS, steps: 4 };
    made_by(links, multigrid, params)
}

/// With a third level, whose aggregates have these extents.
fn made_with_three(coarse_block: Extents, mu: f64) -> Made {
    let domain = Domain::local(EXTENTS).unwrap();
    let mut links = MatrixField::new(&domain, 4).unwrap();
    links.set_random(RandomAddress { seed: 7, trajectory: 0, purpose: Purpose::Start }).unwrap();
    let multigrid =
        MultigridParams { block: BLOCK, coarse_block: Some(coarse_block), vectors: VECTORS, steps: 4 };
    made_by(&links, multigrid, params(mu, Schur::Asymmetric, 1.2))
}

fn made_by(links: &MatrixField, multigrid: MultigridParams, params: WilsonParams) -> Made {
    let domain = Arc::clone(links.domain());
    let mut clover = Wilson::clover_term(&domain, &params).unwrap();
    if let Some(clover) = &mut clover {
        clover.update(links).unwrap();
    }
    let mut all = [Precision::Double, Precision::Single].map(|precision| {
        let mut operator = Wilson::on_all_sites(&domain, precision, 18, params).unwrap();
        operator.update(links, clover.as_ref()).unwrap();
        operator
    });
    let mut multigrid = Multigrid::new(&domain, Precision::Single, multigrid, Multigrid::TOGETHER).unwrap();
    multigrid.prepare(&mut operators(&mut all), &mut Info::default()).unwrap();
    Made { domain, multigrid, all, _clover: clover }
}

/// A coarse field: `[place][row]`.
type Field = Vec<Complex64>;

fn random() -> Field {
    let count = volume(EXTENTS) / volume(BLOCK) * ROWS;
    (0..count).map(|n| Complex64::new((n as f64 * 0.7).sin(), (n as f64 * 1.3).cos())).collect()
}

fn gamma_5(c: &[Complex64]) -> Field {
    c.iter().enumerate().map(|(n, c)| if n % ROWS < VECTORS { *c } else { -c }).collect()
}

fn norm(c: &[Complex64]) -> f64 {
    c.iter().map(Complex64::norm_sqr).sum::<f64>().sqrt()
}

/// |a - b| / |b|
fn apart(a: &[Complex64], b: &[Complex64]) -> f64 {
    let difference: Field = a.iter().zip(b).map(|(a, b)| a - b).collect();
    norm(&difference) / norm(b)
}

fn of_device(buffer: &Buffer) -> Field {
    let mut reals = vec![0f32; buffer.bytes() / 4];
    buffer.read(&mut reals).unwrap();
    let place =
        |r: &[f32]| (0..ROWS).map(|n| Complex64::new(r[n].into(), r[ROWS + n].into())).collect::<Vec<_>>();
    reals.chunks_exact(2 * ROWS).flat_map(place).collect()
}

impl Made {
    fn hierarchy(&self) -> MutexGuard<'_, Hierarchy> {
        self.multigrid.hierarchy.as_ref().expect("a hierarchy").lock().unwrap()
    }

    fn twists(&self) -> Twists {
        self.all[0].twists()
    }

    /// Solves `A x = b`, or for the negative mass. Returns x and the iterations.
    fn solve(&self, negative: bool, b: &[Complex64], goal: f64) -> (Field, usize) {
        let (mut all, iterations) = self.solve_all(Together::OneField, negative, &[b], goal);
        (all.remove(0), iterations)
    }

    /// The same for several right-hand sides.
    fn solve_all(
        &self,
        systems: Together,
        negative: bool,
        all: &[&[Complex64]],
        goal: f64,
    ) -> (Vec<Field>, usize) {
        // [parity][system][place]
        let zero = vec![Complex64::default(); all[0].len()];
        let half = zero.len() / 2;
        let of = |n: usize, parity: usize| &all.get(n).unwrap_or(&&*zero)[parity * half..][..half];
        let b =
            [0, 1].map(|parity| (0..Multigrid::TOGETHER).map(|n| of(n, parity)).collect::<Vec<_>>().concat());
        let b = self.to_device(&b.concat());
        let Hierarchy { links, solvers, .. } = &mut *self.hierarchy();
        let mut x = links.fields().unwrap();
        let iterations = solvers[0].2.solve(links, (systems, negative), &mut x, &b, goal).unwrap();
        let x = of_device(&x);
        let part = |n: usize, parity: usize| &x[(parity * Multigrid::TOGETHER + n) * half..][..half];
        ((0..all.len()).map(|n| [part(n, 0), part(n, 1)].concat()).collect(), iterations)
    }

    fn to_device(&self, c: &[Complex64]) -> Buffer {
        let place = |c: &[Complex64]| -> Vec<f32> {
            c.iter().map(|z| single(z.re)).chain(c.iter().map(|z| single(z.im))).collect()
        };
        let reals: Vec<f32> = c.chunks_exact(ROWS).flat_map(place).collect();
        self.domain.device().buffer_of(&reals).unwrap()
    }

    fn spinor(&self, precision: Precision) -> Spinor {
        Spinor::new(&self.domain, precision).unwrap()
    }

    /// P c, on even and odd sites.
    fn prolonged(&self, c: &[Complex64]) -> [Spinor; 2] {
        let c = self.to_device(c);
        let [mut single, mut even, mut odd] =
            [Precision::Single, Precision::Double, Precision::Double].map(|p| self.spinor(p));
        let Hierarchy { transfer, links, .. } = &*self.hierarchy();
        let mut one = transfer.p.fields(1).unwrap();
        let to = (&mut one, Together::OneField);
        transfer.p.prolong(to, links.of_field(&c), Numbers::All, Dagger::No).unwrap();
        for (parity, x) in [&mut even, &mut odd].into_iter().enumerate() {
            transfer.scatter(&mut single, &one, 0, parity).unwrap();
            x.copy_from(&single).unwrap();
        }
        [even, odd]
    }

    /// P^dag x
    fn restricted(&self, x: [&Spinor; 2]) -> Field {
        let mut single = self.spinor(Precision::Single);
        let Hierarchy { transfer, links, .. } = &*self.hierarchy();
        let mut one = transfer.p.fields(1).unwrap();
        for (parity, x) in x.into_iter().enumerate() {
            single.copy_from(x).unwrap();
            transfer.gather(&mut one, 0, &single, parity).unwrap();
        }
        let out = links.field().unwrap();
        let own = (&one, Together::OneField);
        transfer.p.restrict(links.of_field(&out), own, Numbers::All, Dagger::No).unwrap();
        of_device(&out)
    }

    /// M x on all sites in double precision, by whole hops.
    fn applied(&mut self, x: [&Spinor; 2]) -> [Spinor; 2] {
        let [mut even, mut odd, mut hop, zero] = [Precision::Double; 4].map(|p| self.spinor(p));
        let Twists { odd: mu, all } = self.twists();
        for (parity, out) in [&mut even, &mut odd].into_iter().enumerate() {
            let here = if parity == EVEN { [x[EVEN], &zero] } else { [&zero, x[ODD]] };
            let whole = Operator::whole(&mut self.all[0], &self.multigrid.blocks).unwrap().unwrap();
            whole.apply_within(out, here, parity).unwrap();
            self.all[0].links().hop(&mut hop, x[1 - parity], parity, Dagger::No).unwrap();
            out.axpy(-0.5, &hop).unwrap();
        }
        even.add_twist(all, x[EVEN]).unwrap();
        odd.add_twist(mu + all, x[ODD]).unwrap();
        [even, odd]
    }

    /// The coarse operator, from its links.
    fn coarse(&self, c: &[Complex64]) -> Field {
        let c = self.to_device(c);
        let out = self.hierarchy().links.applied(self.twists(), &c).unwrap();
        of_device(&out)
    }
}

#[test]
fn transfers_are_orthonormal_and_keep_chirality() {
    let made = made(0.0, Schur::Asymmetric, 1.2);
    let c = random();
    let [even, odd] = made.prolonged(&c);
    assert!(apart(&made.restricted([&even, &odd]), &c) < VECTORS_ROUNDING);
    let [other, _] = made.prolonged(&gamma_5(&c));
    let mut reals = [vec![0.0; volume(EXTENTS) * 24], vec![0.0; volume(EXTENTS) * 24]];
    even.write_host(EVEN, &mut reals[0]).unwrap();
    other.write_host(EVEN, &mut reals[1]).unwrap();
    let signs = (0..).map(|n| if n % 24 < 12 { 1.0 } else { -1.0 });
    for ((a, b), sign) in reals[0].iter().zip(&reals[1]).zip(signs) {
        assert_eq!(*a, sign * b);
    }
}

/// A = P^dag M P, with and without twisted masses and a clover term.
#[test]
fn the_coarse_operator_is_that_of_galerkin() {
    for (mu, schur, c_sw) in
        [(0.0, Schur::Symmetric, 1.2), (0.3, Schur::Asymmetric, 1.2), (0.3, Schur::Symmetric, 0.0)]
    {
        let mut made = made(mu, schur, c_sw);
        let c = random();
        let [even, odd] = made.prolonged(&c);
        let [m_even, m_odd] = made.applied([&even, &odd]);
        let (fine, coarse) = (made.restricted([&m_even, &m_odd]), made.coarse(&c));
        let found = apart(&coarse, &fine);
        println!("mu {mu}, c_sw {c_sw}, {schur:?}: relative difference {found:.1e}");
        assert!(found < ROUNDING);
    }
}

/// `P^dag P = 1` and `A = P^dag A P` of the third level, for aggregates that wrap around the lattice or do not.
#[test]
fn the_third_level_is_that_of_galerkin() {
    for (block, mu) in [([1, 1, 1, 2], 0.0), ([2, 1, 1, 1], 0.3), ([1, 2, 1, 2], 0.3), ([2, 2, 2, 1], 0.0)] {
        let made = made_with_three(block, mu);
        let c: Field = random()[..volume(EXTENTS) / volume(BLOCK) / volume(block) * ROWS].to_vec();
        let products = made.hierarchy().links.products_below(made.twists(), &made.to_device(&c)).unwrap();
        let [one, above, own] = products.map(|product| of_device(&product));
        let found = [apart(&one, &c), apart(&above, &own)];
        println!("aggregates of {block:?}, mu {mu}: P^dag P {:.1e}, A {:.1e}", found[0], found[1]);
        assert!(found[0] < VECTORS_ROUNDING && found[1] < ROUNDING);
    }
}

/// Also for the negative mass, and with sums after each step.
#[test]
fn coarse_solves_with_a_third_level_reach_their_goal() {
    for (block, mu) in [([1, 1, 1, 2], 0.0), ([2, 2, 1, 1], 0.3)] {
        let made = made_with_three(block, mu);
        let b = random();
        for (negative, goal, by_step) in [(false, 0.03, false), (true, 0.03, false), (false, 1e-3, true)] {
            if by_step {
                made.hierarchy().solvers[0].2.go_step_by_step();
            }
            let (x, iterations) = made.solve(negative, &b, goal);
            let Twists { odd, all } = made.twists();
            let Hierarchy { links, solvers, .. } = &mut *made.hierarchy();
            let below = solvers[0].2.iterations_below;
            let sign = if negative { -1.0 } else { 1.0 };
            let twists = Twists { odd: sign * odd, all: sign * all };
            let found = apart(&of_device(&links.applied(twists, &made.to_device(&x)).unwrap()), &b);
            println!("{block:?}, {twists:?}: {iterations} iterations, {below} below, residual {found:.1e}");
            assert!(found < 2.0 * goal && below > 0, "{found}");
        }
    }
}

/// Also for the negative mass, with which adjoint systems are solved.
#[test]
fn coarse_solves_reach_their_goal() {
    for mu in [0.0, 0.3] {
        let made = made(mu, Schur::Asymmetric, 1.2);
        let b = random();
        for _ in 0..3 {
            let (x, iterations) = made.solve(false, &b, 0.03);
            let found = apart(&made.coarse(&x), &b);
            println!("mu {mu}: {iterations} iterations, residual {found:.3}");
            // The goal is that of the preconditioned system on odd places.
            assert!(found < 0.06, "{found}");
        }
        // gamma_5 A(-mu) gamma_5 is the adjoint of A(mu): (y, A x) = (A^dag y, x).
        if mu != 0.0 {
            let y = gamma_5(&made.solve(true, &gamma_5(&b), 0.003).0);
            let x = random().iter().map(|c| c * Complex64::i()).rev().collect::<Field>();
            let product = |a: &[Complex64], b: &[Complex64]| -> Complex64 {
                a.iter().zip(b).map(|(a, b)| a.conj() * b).sum()
            };
            let (one, other) = (product(&y, &made.coarse(&x)), product(&b, &x));
            assert!((one - other).norm() < 0.02 * norm(&b) * norm(&x), "{one} {other}");
        }
    }
}

/// Of systems that are solved together each reaches the goal, also with a third level, and after solves of one alone; zero gives
/// zero.
#[test]
fn coarse_systems_are_solved_together() {
    for (made, mu) in [(made(0.3, Schur::Asymmetric, 1.2), 0.3), (made_with_three([1, 1, 1, 2], 0.0), 0.0)] {
        let one = random();
        let zero = vec![Complex64::default(); one.len()];
        let other: Field = one.iter().map(|c| c * c).rev().collect();
        let scaled: Field = other.iter().map(|c| c * Complex64::new(0.0, 1e5)).collect();
        for by_step in [false, true] {
            if by_step {
                made.hierarchy().solvers[0].2.go_step_by_step();
            }
            let all = [&*one, &*zero, &*other, &*scaled];
            let (alone, _) = made.solve(false, &other, 0.03);
            let (x, iterations) = made.solve_all(Together::FourFields, false, &all, 0.03);
            let mut found = Vec::new();
            for x in [&alone, &x[2], &x[0], &x[3]] {
                found.push(apart(&made.coarse(x), [&other, &other, &one, &scaled][found.len()]));
            }
            println!("mu {mu}, by step {by_step}: {iterations} iterations, residuals {found:.3?}");
            assert!(found.iter().all(|found| *found < 0.06) && x[1] == zero, "{found:?}");
        }
    }
}

/// Sums after each step, which is made in two passes, lead to the same goal in no more steps.
#[test]
fn coarse_solves_step_by_step_reach_their_goal() {
    let made = made(0.3, Schur::Asymmetric, 1.2);
    let b = random();
    let (_, at_once) = made.solve(false, &b, 1e-3);
    made.hierarchy().solvers[0].2.go_step_by_step();
    let (x, iterations) = made.solve(false, &b, 1e-3);
    let found = apart(&made.coarse(&x), &b);
    println!("{iterations} iterations, {at_once} with few sums; residual {found:.1e}");
    assert!(found < 2e-3 && (1..=at_once).contains(&iterations), "{iterations} of {at_once}: {found}");
}

/// What earlier solves found is used in later ones, also of a term that begins its trajectory later, and is gone with the
/// space.
#[test]
fn directions_are_kept_as_long_as_the_space() {
    let mut made = made(0.0, Schur::Asymmetric, 1.2);
    let b = random();
    let [first, second] = [(); 2].map(|()| made.solve(false, &b, 0.03));
    assert!(second.1 < first.1, "{} and {} iterations", first.1, second.1);
    made.multigrid.forget();
    let third = made.solve(false, &b, 0.03);
    assert!(third.1 <= second.1, "{} and {} iterations", third.1, second.1);
    made.hierarchy().made.as_mut().expect("it was made").walked = true;
    let Made { multigrid, all, .. } = &mut made;
    multigrid.forget();
    multigrid.prepare(&mut operators(all), &mut Info::default()).unwrap();
    let again = made.solve(false, &b, 0.03);
    assert!(again.0 == first.0 && again.1 == first.1, "{} and {} iterations", again.1, first.1);
}

/// The space is made anew after `forget`, with the same content.
#[test]
fn the_space_depends_on_links_alone() {
    let mut made = made(0.0, Schur::Asymmetric, 1.2);
    let content = |made: &Made| {
        let hierarchy = made.hierarchy();
        let buffer = &hierarchy.transfer.p.rounded;
        let mut pairs = vec![0u8; buffer.bytes()];
        buffer.read(&mut pairs).unwrap();
        pairs
    };
    let first = content(&made);
    let Made { multigrid, all, .. } = &mut made;
    let hierarchy = Arc::clone(multigrid.hierarchy.as_ref().expect("a hierarchy"));
    hierarchy.lock().unwrap().make(&mut operators(all), false).unwrap();
    assert!(content(&made) != first, "smoothed further");
    let Made { multigrid, all, .. } = &mut made;
    multigrid.forget();
    multigrid.prepare(&mut operators(all), &mut Info::default()).unwrap();
    assert!(content(&made) == first);
}
