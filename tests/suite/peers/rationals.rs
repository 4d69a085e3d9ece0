//! Our rational functions against those that MILC ships for its samples.
#![allow(clippy::pedantic, reason = "indices and names as in the formulas")]

use crate::reference::data;
use hmc::math::{Factor, Rational, milc_rationals};

/// One function of a file of MILC.
struct Milc {
    name: String,
    factors: Vec<Factor>,
    rational: Rational,
}

/// MILC's format: a comment with the bounds, then `y_X` and `z_X` (numerators and denominators of the
/// exponents), `m_X` (masses, the shifts are 4 m^2), `order_X`, and a line for each `res_X` (the constant first)
/// and `pole_X` (the first is a dummy), X = MD, GR or FA. The error in the comments belongs to the function before
/// them, and serves GR and FA alike.
fn functions(text: &str) -> Vec<Milc> {
    let numbers =
        |line: &str| -> Vec<f64> { line.split_whitespace().skip(1).map(|w| w.parse().unwrap()).collect() };
    let (mut range, mut error) = ([0.0; 2], 0.0);
    let mut found: Vec<Milc> = Vec::new();
    let mut y = Vec::new();
    let mut z = Vec::new();
    for line in text.lines() {
        if let Some(bounds) = line.strip_prefix("# Approximation bounds are ") {
            let ends: Vec<f64> =
                bounds.trim_matches(['[', ']']).split(',').map(|w| w.parse().unwrap()).collect();
            range = [ends[0], ends[1]];
        } else if let Some((_, printed)) = line.split_once("error = ") {
            error = printed.trim().parse().unwrap();
        } else if line.starts_with("y_") {
            y = numbers(line);
        } else if line.starts_with("z_") {
            z = numbers(line);
        } else if line.starts_with("m_") {
            let factor = |(m, (y, z)): (&f64, (&f64, &f64))| Factor {
                shift: 4.0 * m * m,
                power: (*y as i32, *z as u32),
            };
            let factors = numbers(line).iter().zip(y.iter().zip(&z)).map(factor).collect();
            let rational = Rational { constant: 0.0, residues: vec![], poles: vec![], range, error };
            let name = line.split_whitespace().next().unwrap()[2..].to_owned();
            found.push(Milc { name, factors, rational });
        } else if line.starts_with("res_") {
            found.last_mut().unwrap().rational.residues.push(numbers(line)[0]);
        } else if line.starts_with("pole_") {
            found.last_mut().unwrap().rational.poles.push(numbers(line)[0]);
        }
    }
    for function in &mut found {
        let r = &mut function.rational;
        r.constant = r.residues.remove(0);
        r.poles.remove(0);
        assert_eq!(r.residues.len(), r.poles.len());
    }
    found
}

/// f(x), in double.
fn exact(factors: &[Factor], x: f64) -> f64 {
    factors.iter().map(|f| (x + f.shift).powf(f64::from(f.power.0) / f64::from(f.power.1))).product()
}

fn compare(file: &str, expected: usize) {
    let Some(path) = data::find(&format!("milc_rationals/{file}")) else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let list = functions(&text);
    assert_eq!(list.len(), expected);
    let read = milc_rationals(&text).unwrap();
    let read: Vec<_> = read.iter().flat_map(|p| [&p.md, &p.heat_bath, &p.action]).collect();
    assert_eq!(read.len(), expected);
    for (Milc { name, rational: theirs, .. }, read) in list.iter().zip(read) {
        let measured = read.measured(theirs.range).unwrap();
        assert_eq!((measured.constant, &measured.residues), (theirs.constant, &theirs.residues), "{name}");
        assert_eq!(measured.poles, theirs.poles, "{name}");
        // What is printed is the relative error, before 17 digits of the coefficients and of 4 m^2; see below.
        let apart = (measured.error - theirs.error).abs();
        println!("{name}: measured {:.6e}, printed {:.6e}", measured.error, theirs.error);
        assert!(apart <= 1e-4 * theirs.error + 1e-14, "{file} {name}: {:e}", measured.error);
    }
    for Milc { name, factors, rational: theirs } in list {
        let ours = Rational::minimax(&factors, theirs.range, theirs.degree()).unwrap();
        // 20000 points even in ln(x + least shift) see an extremum to (1/2) (pi/1000)^2 of its height.
        let least = factors.iter().filter(|f| f.power.0 != 0).map(|f| f.shift).fold(f64::INFINITY, f64::min);
        let [lo, hi] = theirs.range;
        let ratio = (hi + least) / (lo + least);
        let (mut their_error, mut apart) = (0f64, 0f64);
        for n in 0..=20_000 {
            let x = ((lo + least) * ratio.powf(f64::from(n) / 20_000.0) - least).clamp(lo, hi);
            let f = exact(&factors, x);
            let (a, b) = (ours.value(x), theirs.value(x));
            their_error = their_error.max((b / f - 1.0).abs());
            apart = apart.max((a / b - 1.0).abs());
            // f is rounded to 2e-15.
            assert!((a / f - 1.0).abs() <= ours.error + 2e-15, "{file} {name} at {x:e}");
        }
        let poles =
            ours.poles.iter().zip(&theirs.poles).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
        println!(
            "{name} degree {}: ours {:.6e} theirs {their_error:.6e} printed {:.6e} apart {apart:.1e} poles {poles:.1e}",
            ours.degree(),
            ours.error,
            theirs.error
        );
        // Seven digits are printed; their coefficients and f in double add some 1e-14.
        assert!(ours.error <= their_error * (1.0 + 1e-5) + 1e-14, "{file} {name}: worse than MILC's");
        assert!(
            (ours.error - theirs.error).abs() <= 1e-5 * theirs.error + 1e-14,
            "{file} {name}: not as printed"
        );
        assert!(
            apart <= (ours.error + their_error) * (1.0 + 1e-9) + 1e-15,
            "{file} {name}: too far from MILC's"
        );
    }
}

#[test]
fn asqtad_two_masses() {
    compare("rationals.sample.su3_omelyan_rhmc", 3);
}

#[test]
fn hisq_four_flavours() {
    compare("rationals.sample.su3_rhmc_hisq_f211", 15);
}

/// The weights of four flavours at the physical point, as (mass, numerator over 4), in the variable M^dag M at the
/// least mass m_0: shifts 4 (m^2 - m_0^2) on [4 m_0^2, 90 + 4 m_0^2].
#[test]
fn functions_of_the_physical_point() {
    let weights: [(&str, &[(f64, i32)]); 3] = [
        ("light and strange over 0.2", &[(0.0012, 2), (0.0363, 1), (0.2, -3)]),
        ("0.2", &[(0.2, 1)]),
        ("charm", &[(0.432, 1)]),
    ];
    for (name, weight) in weights {
        let least = weight[0].0;
        let range = [4.0 * least * least, 90.0 + 4.0 * least * least];
        // Force, heat bath, action.
        for (sign, root, error) in [(-1, 1, 1e-7), (1, 2, 1e-12), (-1, 2, 1e-12)] {
            let factor = |&(mass, p): &(f64, i32)| Factor {
                shift: 4.0 * (mass * mass - least * least),
                power: (sign * p, 4 * root),
            };
            let factors: Vec<Factor> = weight.iter().map(factor).collect();
            let start = std::time::Instant::now();
            let r = Rational::to_error(&factors, range, error);
            let r = r.unwrap_or_else(|why| panic!("{name}, {sign}/{root}, {error:e}: {why}"));
            let seconds = start.elapsed().as_secs_f64();
            println!("{name}, power {sign}/{root}: degree {} for {error:e}, {seconds:.2} s", r.degree());
            assert!(r.error <= error);
            // 20000 points even in ln x; f is rounded to 2e-15.
            for n in 0..=20_000 {
                let x = (range[0] * (range[1] / range[0]).powf(f64::from(n) / 20_000.0))
                    .clamp(range[0], range[1]);
                assert!((r.value(x) / exact(&factors, x) - 1.0).abs() <= r.error + 2e-15, "{name} at {x:e}");
            }
        }
    }
}
