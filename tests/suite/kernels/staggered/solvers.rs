//! Solvers of s - D_eo D_oe: true residuals, taken by another way than the solvers', and agreement.

use super::*;
use crate::devices::on_one_lane;
use crate::reference::data;
use hmc::family::{Smearing, StaggeredLinks};
use hmc::field::{EVEN, Purpose, RandomAddress};
use hmc::solver::{BlockCg, Cg, MultiShift, Operators, Params, SolverError, greatest};

const ANTIPERIODIC: [f64; 4] = plain::ANTIPERIODIC;
const MASS: f64 = 0.02;
const MAX_ITERATIONS: usize = 4000;

/// A quark on links of its own, in all precisions.
struct Quark {
    domain: Arc<Domain>,
    /// `[double, single, half]`
    all: [Staggered; 3],
}

impl Quark {
    fn new(links: &Links, domain: &Arc<Domain>, fields: usize) -> Self {
        let storages = [(D, 18), (S, 14), (H, 9)];
        let all = storages.map(|storage| links.operator(domain, storage, fields, ANTIPERIODIC));
        Self { domain: Arc::clone(domain), all }
    }

    /// The operator in double and, if that is lower, in `precision`.
    fn operators(&mut self, precision: Precision) -> Operators<'_> {
        let [double, single, half] = &mut self.all;
        match precision {
            Precision::Double => Operators::new(double, None),
            Precision::Single => Operators::new(double, Some(single)),
            Precision::Half => Operators::new(double, Some(half)),
        }
    }

    fn random(&self, number: u8) -> Spinor {
        let mut b = colour(&self.domain, D);
        b.set_random(EVEN, 1.0, RandomAddress { seed: 3, trajectory: 0, purpose: Purpose::Probe(number) })
            .unwrap();
        b
    }
}

/// HISQ links of a thermalised configuration of MILC's where it is, else of random ones near unity.
fn links() -> Links {
    let gauge = match data::find("configs/lat.sample.l6666.hisq") {
        Some(path) => data::milc(&path).reunitarised(),
        None => Gauge::warm([6, 6, 6, 6], 0.6, 31),
    };
    let domain = domain(gauge.extents);
    let mut smeared = StaggeredLinks::new(&domain, Smearing::Hisq { special: false }).unwrap();
    smeared.update(&MatrixField::from_host(&domain, &gauge.to_host()).unwrap()).unwrap();
    let mut fat = MatrixField::new(&domain, 4).unwrap();
    smeared.fat(0.0, &mut fat).unwrap();
    let host = |field: &MatrixField| Gauge::from_host(&field.to_host().unwrap());
    Links { fat: host(&fat), long: host(smeared.long()), naik: smeared.naik(0.0) }
}

/// `|b - (s - D^2) x| / |b|` by the reference.
fn residual(dirac: &plain::Staggered, shift: f64, x: &Spinor, b: &Spinor) -> f64 {
    let (x, b) = (vectors(&download(x, EVEN)), vectors(&download(b, EVEN)));
    distance(&reals(&dirac.shifted(shift, &x)), &reals(&b))
}

/// What was told of a solve is true; 1e-14: rounding of the reference, whose D^2 is up to 20 here.
fn check(what: &str, found: f64, told: f64, wanted: f64) {
    assert!(told <= wanted, "{what}: {told:e}, {wanted:e} was asked for");
    assert!((found - told).abs() < 1e-2 * told + 1e-14, "{what}: {found:e} instead of {told:e}");
}

const MIXES: [(&str, Precision, f64); 3] =
    [("double", D, 0.0), ("double-single", S, 1e-3), ("double-half", H, 0.1)];

#[test]
fn one_right_hand_side() {
    let links = links();
    let dirac = links.plain(ANTIPERIODIC);
    let domain = domain(links.fat.extents);
    let mut quark = Quark::new(&links, &domain, 1);
    let (b, shift) = (quark.random(0), 4.0 * MASS * MASS);
    for (name, precision, delta) in MIXES {
        for wanted in [1e-6, 1e-12] {
            let mut cg = Cg::new(&domain, Kind::Colour, precision, delta).unwrap();
            let mut x = colour(&domain, D);
            let mut operators = quark.operators(precision);
            let params = Params { residual: wanted, max_iterations: MAX_ITERATIONS };
            let info = cg.solve_shifted(&mut operators, shift, &mut x, &b, params).unwrap();
            println!("CG {name:<14} {wanted:.0e}: {} iterations, {} updates", info.iterations, info.updates);
            check(name, residual(&dirac, shift, &x, &b), info.residual, wanted);
            assert_eq!(info.fallbacks, 0, "{name}: {info:?}");
        }
    }
    // The greatest eigenvalue against what the power method finds of it in so many steps, from below.
    let mut start = quark.random(1);
    let top = greatest(&mut quark.all[0], &mut start, 1e-6, MAX_ITERATIONS).unwrap();
    let mut v = plain::restrict(links.fat.extents, &plain::random_field(links.fat.extents, 5), EVEN);
    for _ in 0..400 {
        v = dirac.shifted(0.0, &v);
        v = plain::scaled(1.0 / plain::dot(&v, &v).re.sqrt(), &v);
    }
    let quotient = plain::dot(&v, &dirac.shifted(0.0, &v)).re;
    println!("greatest eigenvalue {top:.6}, power method {quotient:.6}");
    assert!(quotient <= top * (1.0 + 1e-6) && quotient > 0.99 * top, "{top} and {quotient}");
}

#[test]
fn many_shifts() {
    let links = links();
    let dirac = links.plain(ANTIPERIODIC);
    let domain = domain(links.fat.extents);
    let mut quark = Quark::new(&links, &domain, 1);
    let b = quark.random(0);
    // In no order, 18 of them: more than one launch takes.
    let shifts: Vec<f64> = (0..18).map(|n| 4.0 * MASS * MASS + 2_f64.powi((7 * n) % 18 - 13)).collect();
    for (name, precision, delta) in MIXES {
        let solver = MultiShift::new(&domain, Kind::Colour, [precision; 2], delta, 1);
        let mut x: Vec<_> = shifts.iter().map(|_| colour(&domain, D)).collect();
        let params = Params { residual: 1e-11, max_iterations: MAX_ITERATIONS };
        let mut operators = quark.operators(precision);
        let info = solver.solve_all(&mut operators, &mut x, &b, &shifts, params).unwrap();
        println!("{name:<14} {} iterations, {} of them refine", info.total.iterations, info.refinements);
        for ((x, &shift), &told) in x.iter().zip(&shifts).zip(&info.residuals) {
            check(&format!("{name}, shift {shift:.1e}"), residual(&dirac, shift, x, &b), told, 1e-11);
        }
        assert_eq!(info.total.fallbacks, 0, "{name}: {info:?}");
    }
}

/// Right-hand sides for `count` systems: of three and more, the second is zero, and the third's guess is nearly right.
fn systems(quark: &mut Quark, count: usize, shift: f64) -> (Vec<Spinor>, Vec<Spinor>) {
    let b: Vec<_> = (0..count)
        .map(|n| if count > 2 && n == 1 { colour(&quark.domain, D) } else { quark.random(n as u8) })
        .collect();
    let mut x: Vec<_> = b.iter().map(|_| colour(&quark.domain, D)).collect();
    if count > 2 {
        let domain = Arc::clone(&quark.domain);
        let mut cg = Cg::new(&domain, Kind::Colour, D, 0.0).unwrap();
        let params = Params { residual: 1e-7, max_iterations: MAX_ITERATIONS };
        let mut operators = quark.operators(D);
        cg.solve_shifted(&mut operators, shift, &mut x[2], &b[2], params).unwrap();
    }
    (x, b)
}

#[test]
fn many_right_hand_sides() {
    const WANTED: f64 = 1e-11;
    let links = links();
    let dirac = links.plain(ANTIPERIODIC);
    let domain = domain(links.fat.extents);
    let shift = 4.0 * MASS * MASS;
    let mut single = Quark::new(&links, &domain, 1);
    let params = Params { residual: WANTED, max_iterations: MAX_ITERATIONS };
    for count in [1, 3, 4, 16] {
        let mut quark = Quark::new(&links, &domain, count);
        for (name, precision, delta) in MIXES {
            let what = format!("{name:<14} {count:>2} right-hand sides");
            let (mut x, b) = systems(&mut single, count, shift);
            let guesses: Vec<_> = x.iter().map(|x| download(x, EVEN)).collect();
            let mut solver = BlockCg::new(&domain, Kind::Colour, precision, delta, count).unwrap();
            let mut operators = quark.operators(precision);
            let info = solver.solve(&mut operators, shift, &mut x, &b, params).unwrap();
            println!("{what}: {} updates, iterations {:?}", info.total.updates, info.iterations);
            assert_eq!(info.total.fallbacks, 0, "{what}: {info:?}");
            assert!(info.iterations.iter().all(|&n| n <= info.total.iterations), "{what}: {info:?}");
            if count > 2 {
                assert_eq!((info.iterations[1], x[1].norm2().unwrap().value()), (0, 0.0), "{what}: {info:?}");
                assert!(info.iterations[2] < info.iterations[0], "{what}: {info:?}");
            }
            for (n, (x, b)) in x.iter().zip(&b).enumerate() {
                let what = format!("{what}, number {n}");
                if b.norm2().unwrap().value() > 0.0 {
                    check(&what, residual(&dirac, shift, x, b), info.residuals[n], WANTED);
                }
                let mut alone = upload(&domain, D, EVEN, &guesses[n]);
                let mut cg = Cg::new(&domain, Kind::Colour, precision, delta).unwrap();
                let mut operators = single.operators(precision);
                let told = cg.solve_shifted(&mut operators, shift, &mut alone, b, params).unwrap();
                if precision == D {
                    // The same iteration to the bit, where all is in one precision; here it adds up the change of
                    // a guess.
                    assert_eq!(told.iterations, info.iterations[n], "{what}");
                    let (x, alone) = (download(x, EVEN), download(&alone, EVEN));
                    if guesses[n].iter().all(|&x| x == 0.0) {
                        assert_same_bits(&x, &alone, &what);
                    } else {
                        let off = distance(&x, &alone);
                        assert!(off < 1e-15, "{what}: off by {off:e}");
                    }
                } else if told.iterations > 0 {
                    // |x - y| <= (|r_x| + |r_y|) / shift, and |x| is at least |b| / (20 + shift).
                    let bound = 2.0 * WANTED / shift * 20.0;
                    let off = distance(&download(x, EVEN), &download(&alone, EVEN));
                    assert!(off < bound, "{what}: off by {off:e}");
                    // One update more or less, for the others' sake.
                    let most = told.iterations + told.iterations / 4 + 10;
                    assert!(info.iterations[n] <= most, "{what}: {} and {told:?}", info.iterations[n]);
                }
            }
        }
    }
}

/// Where low precision is of no use, here of other links, double takes over and says so; too few iterations are an error.
#[test]
fn failures_are_told() {
    let extents = [4, 4, 4, 8];
    let links = Links::smooth(extents, 0.3, 41);
    let domain = domain(extents);
    let other = Links { fat: Gauge::random(extents, 43), ..links.clone() };
    let nan = Links { naik: f64::NAN, ..links.clone() };
    for (what, lower) in [("other", other), ("broken", nan)] {
        let mut double = links.operator(&domain, (D, 18), 3, ANTIPERIODIC);
        let mut sloppy = lower.operator(&domain, (S, 18), 3, ANTIPERIODIC);
        let mut single = Quark::new(&links, &domain, 1);
        let shift = 0.01;
        let (mut x, b) = systems(&mut single, 3, shift);
        let mut solver = BlockCg::new(&domain, Kind::Colour, S, 1e-3, 3).unwrap();
        let params = Params { residual: 1e-10, max_iterations: MAX_ITERATIONS };
        let mut operators = Operators::new(&mut double, Some(&mut sloppy));
        let info = solver.solve(&mut operators, shift, &mut x, &b, params).unwrap();
        println!("{what} links: {} fallbacks, {:?} iterations", info.total.fallbacks, info.iterations);
        assert!(info.total.fallbacks > 0 && info.residuals.iter().all(|&r| r <= 1e-10), "{what}: {info:?}");
        let dirac = links.plain(ANTIPERIODIC);
        check(what, residual(&dirac, shift, &x[0], &b[0]), info.residuals[0], 1e-10);
        let few = Params { max_iterations: 5, ..params };
        let (mut x, b) = systems(&mut single, 3, shift);
        match solver.solve(&mut Operators::new(&mut double, None), shift, &mut x, &b, few) {
            Err(SolverError::NotConverged { iterations, residual, wanted }) => {
                assert!(iterations == 5 && residual > wanted, "{iterations}, {residual:e}");
            }
            other => panic!("{what}: {:?}", other.map(|info| info.total)),
        }
    }
}

/// Solutions of all solvers on this rank, and numbers told of them.
fn solved(domain: &Arc<Domain>, links: &Links) -> (Vec<Vec<f64>>, Vec<f64>) {
    let (mut fields, mut numbers) = (Vec::new(), Vec::new());
    let mut single = Quark::new(links, domain, 1);
    let shifts = [0.3, 0.02, 1.0];
    let params = Params { residual: 1e-9, max_iterations: MAX_ITERATIONS };
    for (_, precision, delta) in MIXES {
        let (mut x, b) = systems(&mut single, 4, shifts[1]);
        let mut quark = Quark::new(links, domain, 4);
        let mut solver = BlockCg::new(domain, Kind::Colour, precision, delta, 4).unwrap();
        let mut operators = quark.operators(precision);
        let info = solver.solve(&mut operators, shifts[1], &mut x, &b, params).unwrap();
        fields.extend(x.iter().map(|x| download(x, EVEN)));
        numbers.extend(info.residuals);
        numbers.extend(info.iterations.iter().map(|&n| n as f64));
        let solver = MultiShift::new(domain, Kind::Colour, [precision; 2], delta, 1);
        let mut x = [(); 3].map(|()| colour(domain, D));
        let mut operators = single.operators(precision);
        let info = solver.solve_all(&mut operators, &mut x, &b[0], &shifts, params).unwrap();
        fields.extend(x.iter().map(|x| download(x, EVEN)));
        numbers.extend(info.residuals);
        numbers.push(info.total.iterations as f64);
    }
    let mut start = single.random(9);
    numbers.push(greatest(&mut single.all[0], &mut start, 1e-4, 400).unwrap());
    (fields, numbers)
}

#[test]
fn ranks_and_lanes_have_the_same_bits() {
    let extents = [4, 4, 8, 16];
    let links = Links::smooth(extents, 0.5, 51);
    let one = on_one_lane(extents);
    let expected = solved(&one, &links);
    for grid in [[1, 1, 1, 1], [1, 1, 1, 2], [1, 1, 2, 2]] {
        let size = volume(grid);
        let partition = |rank| Partition::new(extents, grid, size, rank).unwrap();
        let choice = choices_of(&partition(0)).pop().unwrap();
        let found = ranks::run(size, |comm| solved(&choice.domain(partition(comm.rank()), comm), &links));
        for (rank, found) in found.iter().enumerate() {
            let what = format!("grid {grid:?}, {choice:?}, rank {rank}");
            assert_same_bits(&found.1, &expected.1, &format!("{what}: numbers"));
            for (n, (found, expected)) in found.0.iter().zip(&expected.0).enumerate() {
                let expected = ranks::part(expected, &partition(rank), 6);
                assert_same_bits(found, &expected, &format!("{what}: solution {n}"));
            }
        }
    }
}
