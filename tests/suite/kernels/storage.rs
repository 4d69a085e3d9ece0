//! The Wilson(-clover) operator and the linear algebra in every storage: double, single and half precision, links
//! of 18, 12 and 8 reals, several right-hand sides, Schwarz blocks; each with the same bits on every lane count.
//!
//! Found errors and their bounds are printed: `cargo test --release --test suite kernels::storage -- --nocapture`.

mod algebra;

use crate::compare::{assert_same_bits, distance, norm};
use crate::devices::domains;
use crate::reference::gauge::{Gauge, neighbour};
use crate::reference::su3::{self, M3, Rng};
use crate::reference::wilson::reals;
use crate::reference::wilson::{self as plain, Dirac, Parameters};
use hmc::device::Precision;
use hmc::family::{Schur, Wilson, WilsonParams};
use hmc::field::{Dagger, Domain, EVEN, MatrixField, ODD, Spinor};
use hmc::lattice::{Boundary, Extents, coordinates};
use hmc::operator::{Blocks, CloverForm, Operator, WilsonLinks};
use num_complex::Complex64;
use std::sync::Arc;

const EXTENTS: Extents = [4, 8, 4, 8];
const BOUNDARY: [f64; 4] = [0.0, 0.5, 0.0, 1.0];
const LINK_REALS: [usize; 3] = [18, 12, 8];

/// Half a step of 16-bit integers, in units of the greatest number.
const HALF_STEP: f64 = 1.0 / 65534.0;

fn params(c_sw: f64, schur: Schur, mu: f64) -> WilsonParams {
    WilsonParams {
        kappa: 0.12,
        mu,
        twisted_mass: 0.0,
        c_sw,
        clover: CloverForm::Linear,
        boundary: Boundary::phases(BOUNDARY),
        schur,
    }
}

fn dirac(links: &Gauge, c_sw: f64) -> Dirac<'_> {
    let mass = params(c_sw, Schur::Asymmetric, 0.0).diagonal() - 4.0;
    Dirac::new(links, Parameters { mass, c_sw, phases: BOUNDARY })
}

/// The odd sites of `reals`, rounded to `precision`.
fn upload(domain: &Arc<Domain>, precision: Precision, reals: &[f64]) -> Spinor {
    let mut double = Spinor::new(domain, Precision::Double).unwrap();
    double.read_host(ODD, reals).unwrap();
    let mut x = Spinor::new(domain, precision).unwrap();
    x.copy_from(&double).unwrap();
    x
}

/// The odd sites as doubles; zero on the even ones.
fn download(x: &Spinor) -> Vec<f64> {
    let domain = x.domain();
    let mut double = Spinor::new(domain, Precision::Double).unwrap();
    double.copy_from(x).unwrap();
    let mut reals = vec![0.0; 24 * domain.global_volume() as usize];
    double.write_host(ODD, &mut reals).unwrap();
    reals
}

/// Half an ulp of 1 of the numbers that are computed with.
fn rounding(precision: Precision) -> f64 {
    match precision {
        Precision::Double => 2_f64.powi(-53),
        _ => 2_f64.powi(-24),
    }
}

/// |delta U v| / |v| of a link as it is stored, the root mean square over all links; d is half a step of
/// 16-bit integers or half an ulp.
///
/// 18 reals: a row's product sums 6 reals off by d each, sqrt(6) d; a floating-point real is off by its own size, d.
/// 12: row 2 is a product of two rows that are off, so that sqrt((1 + 1 + 2) / 3) times that. 8: |u00|^2 and
/// |u22|^2 are differences off by 2 d, their roots by d / |u00| and d / |u22|, sqrt(d) at most; each is
/// in three entries, its own and two of rows 1 and 2.
fn link_error(links: &Gauge, precision: Precision, reals: usize) -> f64 {
    let (d, square) =
        if precision == Precision::Half { (HALF_STEP, 6.0) } else { (rounding(precision), 1.0) };
    let root = |z: Complex64| 2.0 / z.norm_sqr().max(d);
    // Rows are divided by 1 - |u02|^2, which is off by d as well: nothing is left of a link where it is no greater.
    let amplified = |u: &M3| {
        if 1.0 - u[0][2].norm_sqr() < 2.0 * d { 1.0 / (d * d) } else { root(u[0][0]) + root(u[2][2]) }
    };
    let all = links.links.iter().flatten();
    let mean = match reals {
        18 => square,
        12 => square * 4.0 / 3.0,
        _ => square + all.map(amplified).sum::<f64>() / (4 * links.links.len()) as f64,
    };
    d * mean.sqrt()
}

/// What |found - expected| / |expected| may be, from the norms of the diagonal and the hopping part.
///
/// d as in `link_error`. A half spinor's real is off by d times the site's greatest, 2.3 times the root mean
/// square of 24 Gaussians: 2.3 d; a floating-point one's by d. The arithmetic of a hop, 6 products and the sum
/// over 8 hops, is a walk of 16 roundings: 4 u. A row of the clover term has 11 reals that are off by
/// d times the diagonal, sqrt(11) d, and its arithmetic is a walk of 12. Two hops, the spinor between them and each
/// clover term add up; over thousands of reals an error spread evenly up to d has the root mean square d / sqrt(3).
struct Bound {
    spinor: f64,
    hop: f64,
    clover: f64,
}

impl Bound {
    fn new(links: &Gauge, precision: Precision, reals: usize) -> Self {
        let (u, half) = (rounding(precision), precision == Precision::Half);
        let even = 3_f64.sqrt();
        Self {
            spinor: if half { 2.3 * HALF_STEP } else { u } / even,
            hop: (link_error(links, precision, reals) + 4.0 * u) / even,
            clover: if half { 11_f64.sqrt() * HALF_STEP } else { 12_f64.sqrt() * u } / even,
        }
    }

    fn of(&self, case: &Case) -> f64 {
        let Self { spinor, hop, .. } = *self;
        let clover = if case.c_sw == 0.0 { 0.0 } else { self.clover };
        let ends = spinor * (case.diagonal + case.hopping) + spinor;
        let between = (2.0 * hop + spinor + clover) * case.hopping;
        let last = match case.schur {
            Schur::Asymmetric => clover * case.diagonal,
            Schur::Symmetric => clover * (case.hopping + case.twisted),
        };
        // The symmetric adjoint stores A^-1 x, and its sum before the twist is added.
        let stored = case.schur == Schur::Symmetric && case.dagger && case.c_sw != 0.0;
        let more = if stored { spinor * (1.0 + case.hopping) } else { 0.0 };
        ends + between + last + more
    }
}

/// An operator, what it makes of a field, and the norms of its parts relative to that.
struct Case {
    c_sw: f64,
    schur: Schur,
    mu: f64,
    dagger: bool,
    expected: Vec<f64>,
    diagonal: f64,
    twisted: f64,
    hopping: f64,
}

fn cases(links: &Gauge, psi: &[plain::Spinor]) -> Vec<Case> {
    let odd = plain::restrict(EXTENTS, psi, ODD);
    let mut cases = Vec::new();
    for c_sw in [0.0, 1.3] {
        let dirac = dirac(links, c_sw);
        for (schur, dagger) in
            [Schur::Asymmetric, Schur::Symmetric].into_iter().flat_map(|s| [(s, false), (s, true)])
        {
            let plain_form = match (schur, dagger) {
                (Schur::Asymmetric, false) => dirac.schur_asymmetric(&odd),
                (Schur::Asymmetric, true) => dirac.schur_asymmetric_dagger(&odd),
                (Schur::Symmetric, false) => dirac.schur_symmetric(&odd),
                (Schur::Symmetric, true) => dirac.schur_symmetric_dagger(&odd),
            };
            let diagonal = match schur {
                Schur::Asymmetric => dirac.diagonal(&odd),
                Schur::Symmetric => odd.clone(),
            };
            // gamma_5 commutes with A.
            let twist = plain::gamma5_field(&match schur {
                Schur::Asymmetric => odd.clone(),
                Schur::Symmetric => dirac.diagonal_inverse(&odd),
            });
            for mu in [0.0, 0.3] {
                let signed = if dagger { -mu } else { mu };
                let i_mu: Vec<plain::Spinor> =
                    twist.iter().map(|site| site.map(|spin| spin.map(|z| su3::I * signed * z))).collect();
                let expected = reals(&plain::axpy(&plain_form, 1.0, &i_mu));
                let share = |part: &[plain::Spinor]| norm(&reals(part)) / norm(&expected);
                let (twisted, hopping) = (share(&i_mu), share(&plain::axpy(&plain_form, -1.0, &diagonal)));
                let diagonal = share(&diagonal) + twisted;
                cases.push(Case { c_sw, schur, mu, dagger, expected, diagonal, twisted, hopping });
            }
        }
    }
    cases
}

#[test]
fn every_storage_against_the_reference() {
    let links = Gauge::warm(EXTENTS, 0.5, 3).reunitarised();
    let psi = plain::random_field(EXTENTS, 7);
    let host = reals(&psi);
    let cases = cases(&links, &psi);
    let domains = domains(EXTENTS);
    let fields: Vec<_> =
        domains.iter().map(|d| MatrixField::from_host(d, &links.to_host()).unwrap()).collect();
    println!("precision reals   schur      c_sw  mu  dagger   found    bound   bound/found");
    for case in &cases {
        let p = params(case.c_sw, case.schur, case.mu);
        let clovers: Vec<_> = (domains.iter().zip(&fields))
            .map(|(domain, field)| {
                let mut clover = Wilson::clover_term(domain, &p).unwrap();
                if let Some(clover) = &mut clover {
                    clover.update(field).unwrap();
                }
                clover
            })
            .collect();
        for (precision, reals) in Precision::ALL.into_iter().flat_map(|p| LINK_REALS.map(|r| (p, r))) {
            let what = format!(
                "{precision:<9} {reals:>5}   {:<10} {:>3}  {:>3}  {:<6}",
                format!("{:?}", case.schur),
                case.c_sw,
                case.mu,
                case.dagger
            );
            let outputs: Vec<_> = (domains.iter().zip(&fields).zip(&clovers))
                .map(|((domain, field), clover)| {
                    let mut operator = Wilson::new(domain, precision, reals, p).unwrap();
                    operator.update(field, clover.as_ref()).unwrap();
                    let x = upload(domain, precision, &host);
                    let mut y = Spinor::new(domain, precision).unwrap();
                    operator.apply(&mut y, &x, case.dagger.into()).unwrap();
                    download(&y)
                })
                .collect();
            for (output, domain) in outputs.iter().zip(&domains) {
                assert_same_bits(output, &outputs[0], &format!("{what} lanes {}", domain.lanes().count()));
            }
            let found = distance(&outputs[0], &case.expected);
            let bound = Bound::new(&links, precision, reals).of(case);
            println!("{what}  {found:.1e}  {bound:.1e}  {:.1}", bound / found);
            assert!(found < bound, "{what}: {found:.2e} is not below {bound:.2e}");
        }
    }
}

/// |D' x - D x| / |D x|, D' with links of 8 reals and D with 18.
fn loss(domain: &Arc<Domain>, links: &Gauge, precision: Precision, host: &[f64]) -> f64 {
    let field = MatrixField::from_host(domain, &links.to_host()).unwrap();
    // Of even sites, which `hop` never asks about.
    let x = upload(domain, precision, host);
    let hop = |reals: usize| {
        let mut hopping = WilsonLinks::new(domain, precision, reals, 1, Boundary::phases(BOUNDARY)).unwrap();
        hopping.update(&field).unwrap();
        let mut y = Spinor::new(domain, precision).unwrap();
        hopping.hop(&mut y, &x, EVEN, Dagger::No).unwrap();
        download(&y)
    };
    distance(&hop(8), &hop(18))
}

fn filled(mut link: impl FnMut() -> M3) -> Gauge {
    let mut links = Gauge::unit(EXTENTS);
    links.links.iter_mut().flatten().for_each(|u| *u = link());
    links
}

fn diagonal(a: f64, b: f64) -> M3 {
    let mut u = su3::zero();
    for (k, angle) in [a, b, -a - b].into_iter().enumerate() {
        u[k][k] = Complex64::from_polar(1.0, angle);
    }
    u
}

/// Row i has its 1 in column `columns[i]`, times a sign that makes det 1.
fn permutation(columns: [usize; 3]) -> M3 {
    let mut u = su3::zero();
    for (row, column) in columns.into_iter().enumerate() {
        u[row][column] = su3::ONE;
    }
    let sign = su3::det(&u);
    u.map(|row| row.map(|z| sign * z))
}

/// Rotation by `angle` in the plane of colours i and j.
fn rotation(i: usize, j: usize, angle: f64) -> M3 {
    let mut u = su3::one();
    (u[i][i], u[j][j]) = (angle.cos().into(), angle.cos().into());
    (u[i][j], u[j][i]) = (angle.sin().into(), (-angle.sin()).into());
    u
}

#[test]
fn special_links_of_eight_reals() {
    let host = reals(&plain::random_field(EXTENTS, 7));
    let domain = domains(EXTENTS).remove(0);
    let mut rng = Rng(17);
    let turn = 2.0 * std::f64::consts::PI;
    let mut fields = vec![
        ("unit".into(), Gauge::unit(EXTENTS)),
        ("Haar".into(), Gauge::random(EXTENTS, 5)),
        ("diagonal phases".into(), filled(|| diagonal(turn * rng.uniform(), turn * rng.uniform()))),
    ];
    for epsilon in [1.0, 0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-6] {
        fields.push((format!("exp(i {epsilon:e} P)"), Gauge::warm(EXTENTS, epsilon, 3)));
    }
    for columns in [[1, 2, 0], [1, 0, 2], [0, 2, 1]] {
        fields.push((format!("permutation {columns:?}"), filled(|| permutation(columns))));
    }
    for (i, j) in [(0, 2), (1, 2), (0, 1)] {
        for near in [1e-1, 1e-2, 1e-3, 1e-4] {
            let mut g = Rng(23);
            let bent = filled(|| {
                su3::mul(
                    &diagonal(turn * g.uniform(), turn * g.uniform()),
                    &su3::mul(
                        &rotation(i, j, turn / 4.0 - near),
                        &diagonal(turn * g.uniform(), turn * g.uniform()),
                    ),
                )
            });
            fields.push((format!("1/4 turn - {near:e} in plane {i}{j}"), bent));
        }
    }
    println!("{:<32} {:>21} {:>21} {:>21}", "links", "double", "single", "half");
    for (name, links) in &fields {
        let links = &links.reunitarised();
        let mut line = format!("{name:<32}");
        for precision in Precision::ALL {
            let found = loss(&domain, links, precision, &host);
            // Both of the two are off.
            let bound: f64 = LINK_REALS[..1]
                .iter()
                .chain(&LINK_REALS[2..])
                .map(|&reals| Bound::new(links, precision, reals))
                .map(|b| b.hop + b.spinor)
                .sum();
            line += &format!(" {found:>9.1e} < {bound:<9.1e}");
            assert!(found < bound, "{name} in {precision}: {found:.2e} is not below {bound:.2e}");
        }
        println!("{}", line.trim_end());
    }
    // |u02| = 1 leaves nothing to divide by: the one place that the format does not have.
    for columns in [[2, 0, 1], [2, 1, 0]] {
        let links = filled(|| permutation(columns));
        for precision in Precision::ALL {
            let found = loss(&domain, &links, precision, &host);
            assert!(found > 0.5, "{columns:?} in {precision}: {found:.1e}");
        }
    }
}

#[test]
fn several_right_hand_sides() {
    let links = Gauge::warm(EXTENTS, 0.5, 3);
    let sources: Vec<Vec<f64>> = (0..5).map(|n| reals(&plain::random_field(EXTENTS, 40 + n))).collect();
    let forms: Vec<_> = [Schur::Asymmetric, Schur::Symmetric]
        .into_iter()
        .flat_map(|schur| [(0.0, 0.3), (1.3, 0.0), (1.3, 0.3)].map(|(c_sw, mu)| params(c_sw, schur, mu)))
        .flat_map(|p| {
            Precision::ALL.into_iter().zip(LINK_REALS).map(move |(precision, kept)| (p, precision, kept))
        })
        .collect();
    for domain in domains(EXTENTS) {
        let field = MatrixField::from_host(&domain, &links.to_host()).unwrap();
        for &(p, precision, kept) in &forms {
            let mut clover = Wilson::clover_term(&domain, &p).unwrap();
            if let Some(clover) = &mut clover {
                clover.update(&field).unwrap();
            }
            for dagger in [false, true] {
                let mut single = Wilson::new(&domain, precision, kept, p).unwrap();
                single.update(&field, clover.as_ref()).unwrap();
                let inputs: Vec<_> = sources.iter().map(|s| upload(&domain, precision, s)).collect();
                let mut out = Spinor::new(&domain, precision).unwrap();
                let mut expected = Vec::new();
                for x in &inputs {
                    single.apply(&mut out, x, dagger.into()).unwrap();
                    expected.push(download(&out));
                }
                for fields in [1, 2, 4, 5] {
                    let mut operator = Wilson::several(&domain, precision, kept, fields, p).unwrap();
                    operator.update(&field, clover.as_ref()).unwrap();
                    let mut x = Spinor::several(&domain, precision, fields).unwrap();
                    let mut y = Spinor::several(&domain, precision, fields).unwrap();
                    for (n, input) in inputs[..fields].iter().enumerate() {
                        x.set_field(n, input).unwrap();
                    }
                    operator.apply(&mut y, &x, dagger.into()).unwrap();
                    for (n, expected) in expected[..fields].iter().enumerate() {
                        y.field(n, &mut out).unwrap();
                        let what = format!(
                            "{p:?} {precision} dagger {dagger}, field {n} of {fields}, {} lanes",
                            domain.lanes().count()
                        );
                        assert_same_bits(&download(&out), expected, &what);
                    }
                }
            }
        }
    }
}

/// Links that leave a block set to zero.
fn cut(links: &Gauge, block: Extents) -> Gauge {
    let mut links = links.clone();
    let block_of = |x| {
        let at = coordinates(EXTENTS, x);
        std::array::from_fn::<_, 4, _>(|mu| at[mu] / block[mu])
    };
    for x in 0..links.links.len() {
        for mu in 0..4 {
            if block_of(x) != block_of(neighbour(EXTENTS, x, (mu, 1))) {
                links.links[x][mu] = su3::zero();
            }
        }
    }
    links
}

#[test]
fn schwarz_blocks() {
    let links = Gauge::warm(EXTENTS, 0.5, 3).reunitarised();
    let psi = plain::random_field(EXTENTS, 7);
    let (host, odd) = (reals(&psi), plain::restrict(EXTENTS, &psi, ODD));
    let domains = domains(EXTENTS);
    let fields: Vec<_> =
        domains.iter().map(|d| MatrixField::from_host(d, &links.to_host()).unwrap()).collect();
    for block in [Some([4, 4, 4, 4]), Some([2, 4, 4, 2]), None] {
        // The clover term is that of all links.
        let within = cut(&links, block.unwrap_or(EXTENTS));
        for c_sw in [0.0, 1.3] {
            let dirac = Dirac { gauge: &within, ..dirac(&links, c_sw) };
            for (schur, dagger) in
                [Schur::Asymmetric, Schur::Symmetric].into_iter().flat_map(|s| [(s, false), (s, true)])
            {
                let expected = reals(&match (schur, dagger) {
                    (Schur::Asymmetric, false) => dirac.schur_asymmetric(&odd),
                    (Schur::Asymmetric, true) => dirac.schur_asymmetric_dagger(&odd),
                    (Schur::Symmetric, false) => dirac.schur_symmetric(&odd),
                    (Schur::Symmetric, true) => dirac.schur_symmetric_dagger(&odd),
                });
                let p = params(c_sw, schur, 0.0);
                for (precision, kept) in Precision::ALL.into_iter().zip([18, 12, 8]) {
                    let what = format!("{block:?} {schur:?} c_sw {c_sw} dagger {dagger} {precision} {kept}");
                    let mut first: Option<Vec<f64>> = None;
                    for (domain, field) in domains.iter().zip(&fields) {
                        let mut clover = Wilson::clover_term(domain, &p).unwrap();
                        if let Some(clover) = &mut clover {
                            clover.update(field).unwrap();
                        }
                        let mut operator = Wilson::new(domain, precision, kept, p).unwrap();
                        operator.update(field, clover.as_ref()).unwrap();
                        let x = upload(domain, precision, &host);
                        let mut y = Spinor::new(domain, precision).unwrap();
                        let blocks = Blocks::new(domain.partition().local(), block);
                        let blocked = operator.blocked(&blocks).unwrap().expect("a side in blocks");
                        blocked.apply_in_blocks(&mut y, &x, dagger.into()).unwrap();
                        let found = download(&y);
                        if block.is_none() {
                            operator.apply(&mut y, &x, dagger.into()).unwrap();
                            assert_same_bits(&found, &download(&y), &format!("{what}: one block"));
                        }
                        let first = first.get_or_insert_with(|| found.clone());
                        assert_same_bits(&found, first, &format!("{what}, {} lanes", domain.lanes().count()));
                    }
                    // The greatest bounds of the same storage on the whole lattice, in the table above.
                    let (found, bound) = (
                        distance(&first.unwrap(), &expected),
                        match precision {
                            Precision::Double => 1e-15,
                            Precision::Single => 3.2e-7,
                            Precision::Half => 1.1e-4,
                        },
                    );
                    println!("{what}: {found:.1e} < {bound:.0e}");
                    assert!(found < bound, "{what}: {found:.1e}");
                }
            }
        }
    }
}
