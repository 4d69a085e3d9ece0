//! D in every storage against the reference, and several fields against single ones.

use super::*;
use hmc::field::{EVEN, ODD};

const LATTICES: [Extents; 3] = [[4, 4, 6, 8], [2, 6, 4, 8], [16, 2, 4, 2]];

/// Half an ulp of 1 of the numbers that are computed with.
fn rounding(precision: Precision) -> f64 {
    if precision == D { 2_f64.powi(-53) } else { 2_f64.powi(-24) }
}

/// |delta X v| / |X v| of fat links as they are stored: integers are off by half a step of the greatest real times
/// sqrt(2) (`Staggered::update`), each, whatever an element's own size; floating-point reals by their own.
fn fat_error(links: &Gauge, precision: Precision) -> f64 {
    if precision != H {
        return rounding(precision);
    }
    let all = || links.links.iter().flatten().flatten().flatten().flat_map(|z| [z.re, z.im]);
    let greatest = all().fold(0.0_f64, |m, x| m.max(x.abs())) * 2_f64.sqrt();
    let mean = (all().map(|x| x * x).sum::<f64>() / all().count() as f64).sqrt();
    HALF_STEP * greatest / mean
}

/// |delta N v| / |v| of a unitary link as it is stored, the root mean square over all links, as in `storage.rs`.
///
/// 18 reals: a row's product sums 6 reals off by d each, sqrt(6) d; a floating-point real is off by its own size, d.
/// 14: row 2 is a product of two rows that are off and of a determinant off by sqrt(2) d, and rounded as they are. 9: the
/// moduli of the corners as for 8 reals of SU(3), and a determinant whose phase is off by 4 d at most, in two rows.
fn long_error(links: &Gauge, precision: Precision, reals: usize) -> f64 {
    let (d, square) = if precision == H { (HALF_STEP, 6.0) } else { (rounding(precision), 1.0) };
    let root = |z: Complex64| 2.0 / z.norm_sqr().max(d);
    let amplified = |u: &M3| root(u[0][0]) + root(u[2][2]);
    let all = links.links.iter().flatten();
    let mean = match reals {
        18 => square,
        14 => (4.0 * square + 2.0) / 3.0,
        _ => square + 2.0 * 16.0 / 3.0 + all.map(amplified).sum::<f64>() / (4 * links.links.len()) as f64,
    };
    d * mean.sqrt()
}

/// What |found - expected| / |expected| may be. Arithmetic: a chain of 96 products for each kind of hop, whose partial
/// sums grow like a walk, is off by sqrt(96 / 2) u of its end: 7 u; the reference is off as much. What is stored in half is
/// off by d times the site's greatest real, twice the root mean square of 6 Gaussians.
fn bound(links: &Links, (precision, reals): (Precision, usize), [fat, long]: [f64; 2]) -> f64 {
    let stored = if precision == H { 2.0 * HALF_STEP } else { 0.0 };
    let arithmetic = 7.0 * rounding(precision) + 7.0 * rounding(D);
    (fat_error(&links.fat, precision) + arithmetic) * fat
        + (long_error(&links.long, precision, reals) + arithmetic) * long
        + stored
        + rounding(precision)
}

#[test]
fn every_storage_against_the_reference() {
    const SCALE: f64 = -1.25;
    const SHIFT: f64 = 0.75;
    println!("lattice       parity  shifted  precision  long   found    bound   bound/found");
    for extents in LATTICES {
        let links = Links::random(extents, 3);
        let dirac = links.plain(BOUNDARY);
        let zero = |links: &Gauge| {
            let mut zero = links.clone();
            zero.links.iter_mut().flatten().for_each(|u| *u = su3::zero());
            zero
        };
        let parts = [
            plain::Staggered::of_links(dirac.fat.clone(), zero(&dirac.long), BOUNDARY),
            plain::Staggered::of_links(zero(&dirac.fat), dirac.long.clone(), BOUNDARY),
        ];
        let (psi, x) = (reals(&plain::random_field(extents, 7)), reals(&plain::random_field(extents, 8)));
        let domains = domains(extents);
        assert!(domains.len() > 1, "{extents:?} has no lanes");
        for (storage, parity) in Precision::ALL
            .into_iter()
            .flat_map(|p| LONG_REALS.map(|r| (p, r)))
            .flat_map(|storage| [(storage, EVEN), (storage, ODD)])
        {
            let (precision, long_reals) = storage;
            // The reference acts on what the fields hold.
            let held =
                |reals: &[f64], parity| download(&upload(&domains[0], precision, parity, reals), parity);
            let (psi_held, x_held) = (vectors(&held(&psi, 1 - parity)), vectors(&held(&x, parity)));
            let hopped = plain::scaled(SCALE, &dirac.apply(&psi_held));
            let size = parts.each_ref().map(|part| norm(&reals(&part.apply(&psi_held))) * SCALE.abs());
            for shifted in [false, true] {
                let shift = if shifted { SHIFT } else { 0.0 };
                let expected = reals(&plain::axpy(&hopped, shift, &x_held));
                let mut first: Option<Vec<f64>> = None;
                for domain in &domains {
                    let mut operator = links.operator(domain, storage, 1, BOUNDARY);
                    let input = upload(domain, precision, 1 - parity, &psi);
                    let x = upload(domain, precision, parity, &x);
                    let mut out = colour(domain, precision);
                    operator.hop(&mut out, &input, parity, SCALE, shifted.then_some((SHIFT, &x))).unwrap();
                    let found = download(&out, parity);
                    let what = format!(
                        "{:<13} {parity:>6}  {shifted:<7}  {precision:<9} {long_reals:>5}",
                        hmc::lattice::shape(extents)
                    );
                    match &first {
                        Some(first) => {
                            assert_same_bits(
                                &found,
                                first,
                                &format!("{what}, {} lanes", domain.lanes().count()),
                            );
                        }
                        None => {
                            let off = distance(&found, &expected);
                            let bound = bound(&links, storage, size.map(|size| size / norm(&expected)));
                            println!("{what}  {off:.1e}  {bound:.1e}  {:.1}", bound / off);
                            assert!(off < bound, "{what}: {off:.2e} is not below {bound:.2e}");
                            first = Some(found);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn several_fields_are_as_single_ones() {
    const EXTENTS: Extents = LATTICES[0];
    let links = Links::random(EXTENTS, 5);
    let sources: Vec<_> = (0..16).map(|n| reals(&plain::random_field(EXTENTS, 40 + n))).collect();
    for domain in domains(EXTENTS) {
        for storage in Precision::ALL.into_iter().flat_map(|p| LONG_REALS.map(|r| (p, r))) {
            let precision = storage.0;
            let inputs: Vec<_> = sources.iter().map(|s| upload(&domain, precision, ODD, s)).collect();
            let shifted: Vec<_> = sources.iter().rev().map(|s| upload(&domain, precision, EVEN, s)).collect();
            let mut single = links.operator(&domain, storage, 1, BOUNDARY);
            let expected: Vec<_> = (inputs.iter().zip(&shifted))
                .map(|(input, x)| {
                    let mut out = colour(&domain, precision);
                    single.hop(&mut out, input, EVEN, 0.8, Some((0.3, x))).unwrap();
                    download(&out, EVEN)
                })
                .collect();
            for fields in [1, 2, 3, 4, 8, 16] {
                let mut operator = links.operator(&domain, storage, fields, BOUNDARY);
                let (input, x) = (joined(&inputs[..fields]), joined(&shifted[..fields]));
                let mut out = Spinor::of(&domain, Kind::Colour, precision, fields).unwrap();
                operator.hop(&mut out, &input, EVEN, 0.8, Some((0.3, &x))).unwrap();
                for (n, expected) in expected[..fields].iter().enumerate() {
                    let lanes = domain.lanes().count();
                    let what = format!("{storage:?}, field {n} of {fields}, {lanes} lanes");
                    assert_same_bits(&download(&taken(&out, n), EVEN), expected, &what);
                }
            }
        }
    }
}
