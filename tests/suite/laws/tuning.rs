//! The error of H is a sum over levels, each with the power of its step that its scheme has: dH with other steps, also in
//! drifts of unequal lengths, is what the model makes of a few trials.

use crate::devices::domain;
use hmc::action::GaugeAction;
use hmc::field::{HostLinks, MatrixField};
use hmc::hmc::{Chain, Level, Model, Scheme, Trial};

const TAU: f64 = 0.8;
const TWO: Scheme = Scheme::Omelyan2 { lambda: 0.193 };
const POSITION: Scheme = Scheme::Omelyan2Position { lambda: 0.193 };

/// A weak gauge action outside, a strong one inside, and two starts near equilibrium.
fn starts() -> (Chain, Vec<HostLinks>) {
    let domain = domain([4; 4]);
    let gauge = |beta| Box::new(GaugeAction::new(&domain, beta, [1.0, 0.0, 0.0]).unwrap());
    let levels = [Level { scheme: TWO, steps: 10 }, Level { scheme: TWO, steps: 4 }];
    let links = MatrixField::hot(&domain, 1).unwrap();
    let mut chain = Chain::new(links, &levels, vec![vec![gauge(0.4)], vec![gauge(5.3)]], TAU, 7).unwrap();
    for number in 0..12 {
        chain.trajectory(number, true).unwrap();
    }
    let starts = (12..14).map(|number| {
        let start = chain.links.to_host().unwrap();
        chain.trajectory(number, true).unwrap();
        start
    });
    let starts = starts.collect();
    (chain, starts)
}

fn walk(chain: &mut Chain, starts: &[HostLinks], choice: [(Scheme, u32); 2]) -> Trial {
    let levels = choice.map(|(scheme, steps)| Level { scheme, steps });
    chain.set_levels(&levels).unwrap();
    let delta_h = (0..).zip(starts).map(|(number, start)| {
        chain.links.set_host(start).unwrap();
        chain.trajectory(number, true).unwrap().delta_h
    });
    Trial {
        delta_h: delta_h.collect(),
        levels: levels.to_vec(),
        force_seconds: vec![1.0; 2],
        iterations: vec![0.0; 2],
        end_seconds: 1.0,
        drift_seconds: 1.0,
    }
}

#[test]
fn the_errors_of_levels_add_up() {
    let (mut chain, starts) = starts();
    let tried = [
        [(TWO, 6), (TWO, 3)],
        [(TWO, 6), (TWO, 6)],
        [(TWO, 12), (TWO, 3)],
        [(Scheme::Omelyan4, 3), (TWO, 8)],
        [(POSITION, 6), (TWO, 8)],
        [(Scheme::ForceGradient, 4), (TWO, 8)],
        [(TWO, 6), (Scheme::Omelyan4, 1)],
    ];
    let trials = tried.map(|choice| walk(&mut chain, &starts, choice));
    let model = Model::of(&trials, TAU).unwrap();
    for choice in [
        // Inner steps dominate, in drifts of 0.5 of the outer step; of 0.25, -0.03 and 0.56; or of 0.19 and 0.61.
        [(TWO, 7), (TWO, 4)],
        [(Scheme::ForceGradient, 4), (TWO, 4)],
        [(Scheme::Omelyan4, 3), (TWO, 4)],
        [(POSITION, 6), (TWO, 3)],
        [(POSITION, 7), (Scheme::Omelyan4, 1)],
    ] {
        let found = walk(&mut chain, &starts, choice);
        let expected = model.expected(&found.levels).unwrap();
        for (found, expected) in found.delta_h.iter().zip(&expected.delta_h) {
            println!("{choice:?}: {found:+.5} {expected:+.5}");
            assert!((found - expected).abs() < 0.08 * found.abs() + 4e-4, "{choice:?}: {found} {expected}");
        }
    }
}
