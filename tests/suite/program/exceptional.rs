//! What cannot be solved, or is no action, ends a job with its term named and what was reached, and leaves the chain as
//! it was: solves that do not converge, of every method; quarks beyond the critical kappa; a clover term that is not
//! positive; a spectrum outside the range of rational functions.

use crate::program::{Scratch, chain_contents, names, on, read_chain, with};

/// Nf = 2+1 with a solver of each kind. `@` stands for its `max_iterations`.
const CHAIN: &str = r#"[run]
name = "chain"
seed = 5
trajectories = 2
[lattice]
extents = [4, 4, 4, 8]
[gauge]
action = "wilson"
beta = 5.5
[fermion.light]
action = "wilson-clover"
kappa = 0.12
c_sw = 1.0
[fermion.light.solver]
method = "gcr-dd"
gcr-dd = { block = [2, 4, 4, 4] }
max_iterations = @light
[[fermion.light.hasenbusch]]
name = "middle"
mu = 0.2
[fermion.light.hasenbusch.solver]
method = "bicgstab"
precision = "double-half"
max_iterations = @middle
[[fermion.light.hasenbusch]]
name = "heavy"
kappa = 0.11
[fermion.light.hasenbusch.solver]
method = "cg"
max_iterations = @heavy
[fermion.strange]
action = "wilson-clover"
flavours = 1
kappa = 0.115
c_sw = 1.0
[fermion.strange.rational]
range = [0.1, 60.0]
action_error = 1e-9
force_error = 1e-5
[fermion.strange.solver]
max_iterations = @strange
[[hmc.level]]
integrator = "2mn"
steps = 2
terms = ["light", "middle", "heavy", "strange"]
[[hmc.level]]
integrator = "omf4"
steps = 1
terms = ["gauge"]
"#;
const FOLDER: &str = "ensembles/chain";
const TERMS: [&str; 4] = ["light", "middle", "heavy", "strange"];

/// The chain where every term has 5000 iterations, `term` but `few`.
fn chain(term: &str, few: usize) -> String {
    TERMS.iter().fold(CHAIN.to_owned(), |text, name| {
        text.replace(&format!("@{name}"), if *name == term { few } else { 5000 }.to_string().as_str())
    })
}

/// `residual X after N iterations, Y was asked for`: X and Y.
fn told(message: &str) -> (f64, f64) {
    let part = message.split("did not converge: ").nth(1).unwrap_or_else(|| panic!("{message}"));
    let part = part.trim_start_matches("residual ");
    let words: Vec<&str> = part.split_whitespace().collect();
    assert_eq!(
        [words[1], words[3], words[5], words[6]],
        ["after", "iterations,", "was", "asked"],
        "{message}"
    );
    (words[0].parse().unwrap(), words[4].parse().unwrap())
}

/// Whichever term and method it is: the heat bath's solves as well as the action's and the force's.
#[test]
fn solves_that_do_not_converge_leave_the_chain_as_it_was() {
    let [scratch, other] = [(); 2].map(|()| Scratch::new());
    scratch.chain(0, &on(&with(&chain("", 0), "trajectories", "1"), 0));
    let folder = scratch.at(FOLDER);
    let before = chain_contents(&folder);
    for (number, term) in TERMS.into_iter().enumerate() {
        let ranks = 2 * (number % 2);
        let input = scratch.write("few.toml", on(&chain(term, 3), ranks));
        let ended = scratch.run(ranks, &[&input]);
        // The heat bath of a ratio solves with the heavier quark, by that one's solver, and is the ratio's.
        let name = match term {
            "middle" => "light",
            "heavy" => "middle",
            same => same,
        };
        ended.failed(1, &[&format!("error: trajectory 2: term '{name}': the solver did not converge: ")]);
        assert_eq!(ended.err.matches("did not converge").count(), 1, "{ended:?}");
        let (reached, wanted) = told(&ended.err);
        assert!(reached > wanted && reached.is_finite() && wanted > 0.0, "{ended:?}");
        assert!(chain_contents(&folder) == before, "{term}: files changed: {:?}", names(&folder));
    }
    // With the iterations that it needs it goes on, as if nothing had been.
    let ended = scratch.chain(2, &on(&chain("", 0), 2));
    assert!(ended.out.contains("resumes after 1 of 2"), "{ended:?}");
    other.chain(0, &on(&chain("", 0), 0));
    assert_eq!(read_chain(&folder), read_chain(&other.at(FOLDER)));
    let last = format!("{FOLDER}/cfg/cfg_000002.h5");
    assert_eq!(scratch.checksum(&scratch.at(&last)), other.checksum(&other.at(&last)));
}

/// Gauge fields alone, far enough from the start: `ensembles/quenched/cfg/cfg_000004.h5`.
fn quenched() -> Scratch {
    let scratch = Scratch::new();
    let text = CHAIN.split("[fermion.light]").next().unwrap();
    let text =
        with(&with(text, "name", "\"quenched\""), "trajectories", "4\nthermalisation = 4\nsave_every = 4");
    scratch.chain(
        0,
        &on(&format!("{text}[[hmc.level]]\nintegrator = \"2mn\"\nsteps = 8\nterms = [\"gauge\"]\n"), 0),
    );
    scratch
}

/// A chain from a quenched configuration, with two flavours of this table.
fn from_quenched(fermion: &str) -> String {
    let text = CHAIN.split("[fermion.light]").next().unwrap();
    let start = "5\nstart = \"./ensembles/quenched/cfg/cfg_000004.h5\"";
    let level = "[[hmc.level]]\nintegrator = \"2mn\"\nsteps = 4\nterms = [\"light\", \"gauge\"]\n";
    let text = with(&with(text, "seed", start), "trajectories", "1\nthermalisation = 1");
    format!("{text}[fermion.light]\naction = \"wilson-clover\"\n{fermion}\n{level}")
}

/// The files of a chain that has no trajectory: the start and its checkpoint.
fn nothing_done(scratch: &Scratch) {
    let folder = scratch.at(FOLDER);
    assert_eq!(names(&folder.join("checkpoint")), ["ckpt_000000.h5"]);
    assert!(names(&folder.join("cfg")).is_empty());
    assert!(read_chain(&folder).history.is_empty());
}

/// Beyond the critical kappa the quark's operator has eigenvalues near zero on either side: few iterations do not do,
/// by any method; more of them do, or the fallback's.
#[test]
fn a_kappa_beyond_the_critical_one() {
    for method in ["cg", "bicgstab", "gcr-dd", "multigrid"] {
        let scratch = quenched();
        let text = |most: usize| {
            let block = match method {
                "gcr-dd" => "gcr-dd = { block = [2, 4, 4, 4] }\n",
                "multigrid" => "multigrid = { aggregate = [2, 2, 2, 2], vectors = 8 }\n",
                _ => "",
            };
            from_quenched(&format!(
                "kappa = 0.17\nc_sw = 1.0\n[fermion.light.solver]\nmethod = {method:?}\n{block}max_iterations = {most}"
            ))
        };
        let mut before: Option<String> = None;
        for ranks in [0, 2] {
            // Of multigrid they do.
            let few = if method == "multigrid" { 3 } else { 30 };
            let input = scratch.write("run.toml", on(&text(few), ranks));
            let ended = scratch.run(ranks, &[&input]);
            ended.failed(1, &["error: trajectory 1: term 'light': the solver did not converge: residual "]);
            let (reached, wanted) = told(&ended.err);
            assert!(reached > wanted, "{ended:?}");
            nothing_done(&scratch);
            // The second time it resumes, from the start.
            let links = scratch.checksum(&scratch.at(FOLDER).join("checkpoint/ckpt_000000.h5"));
            assert_eq!(*before.get_or_insert(links.clone()), links, "{method}: the checkpoint changed");
        }
        let ended = scratch.chain(0, &on(&text(5000), 0));
        assert!(ended.out.contains("done: 1 trajectories"), "{ended:?}");
    }
}

/// On rough links a large `c_sw` makes the clover term indefinite: its log det is then no action.
#[test]
fn a_clover_term_that_is_not_positive() {
    let scratch = quenched();
    for ranks in [0, 2] {
        let input = scratch.write("run.toml", on(&from_quenched("kappa = 0.13\nc_sw = 12.0"), ranks));
        let ended = scratch.run(ranks, &[&input]);
        ended.failed(1, &["error: trajectory 1: term 'light': the clover term is not positive definite: "]);
        assert_eq!(ended.err.matches("not positive definite").count(), 1, "{ended:?}");
        nothing_done(&scratch);
    }
}

/// The spectrum is measured before anything is made of it; the range that the message gives is good.
#[test]
fn a_spectrum_outside_the_range() {
    let scratch = Scratch::new();
    scratch.chain(0, &on(&with(&chain("", 0), "trajectories", "1"), 0));
    let text = |name: &str, range: &str| {
        // Chains beside each other have seeds of their own.
        let start = format!("{}\nstart = \"./{FOLDER}/cfg/cfg_000001.h5\"", 6 + name.len());
        let text =
            with(&chain("", 0).replace("name = \"chain\"", &format!("name = {name:?}")), "range", range);
        with(&with(&text, "seed", &start), "trajectories", "1\nthermalisation = 1")
    };
    let mut wanted = String::new();
    for (name, range) in [("low", "[1e-4, 1.0]"), ("high", "[8.0, 60.0]")] {
        for ranks in [0, 2] {
            let input = scratch.write("run.toml", on(&text(name, range), ranks));
            let ended = scratch.run(ranks, &[&input]);
            let told = ["error: trajectory 1: term 'strange': the eigenvalues", "give a wider range, as ["];
            ended.failed(1, &told);
            let folder = scratch.at("ensembles").join(name);
            assert_eq!(names(&folder.join("checkpoint")), ["ckpt_000000.h5"]);
            assert!(names(&folder.join("cfg")).is_empty() && read_chain(&folder).history.is_empty());
            wanted =
                ended.err.split("give a wider range, as ").nth(1).unwrap().lines().next().unwrap().to_owned();
        }
    }
    // With that, the chain goes on; no trajectory was made with the other range, so that it is no retuning.
    let ended = scratch.chain(0, &on(&text("high", &wanted), 0));
    assert!(!ended.err.contains("not of this chain any more"), "{ended:?}");
    assert!(ended.out.contains("done: 1 trajectories") && !ended.out.contains("range: was"), "{ended:?}");
    let ended = scratch.chain(2, &on(&text("other", &wanted), 2));
    assert!(ended.out.contains("done: 1 trajectories"), "{ended:?}");
}

/// Staggered quarks whose -D^2 reaches beyond the rational functions, or whose poles do not converge.
#[test]
fn staggered_quarks_beyond_their_functions() {
    let text = |lambda_max: f64, iterations: usize| {
        let quarks = format!(
            "[fermion.sea]\naction = \"hisq\"\n[fermion.sea.rational]\nlambda_max = {lambda_max}\naction_error = 1e-9\n\
             heat_bath_error = 1e-9\n[fermion.sea.solver]\nmax_iterations = {iterations}\n\
             [[fermion.sea.pseudofermion]]\nfactors = [{{ mass = 0.1, power = [1, 4] }}]\n"
        );
        let run = "[run]\nname = \"chain\"\nseed = 5\ntrajectories = 1\n[lattice]\nextents = [4, 4, 4, 4]\n\
                   [gauge]\naction = \"wilson\"\nbeta = 5.5\n";
        let level = "[[hmc.level]]\nintegrator = \"2mn\"\nsteps = 2\nterms = [\"gauge\", \"sea\"]\n";
        on(&format!("{run}{quarks}{level}"), 0)
    };
    let run = |text: &str| {
        let scratch = Scratch::new();
        scratch.write("run.toml", text);
        scratch.run(0, &["run.toml"])
    };
    let beyond = ["error: trajectory 1: term 'sea': -D^2 has eigenvalues up to ", "a greater lambda_max"];
    run(&text(5.0, 1000)).failed(1, &beyond);
    run(&text(60.0, 12)).failed(1, &["error: trajectory 1: term 'sea': ", "did not converge"]);
    assert_eq!(run(&text(60.0, 1000)).code, Some(0));
}
