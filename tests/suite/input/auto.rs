//! `method = "auto"`: what it tries, and the input that a choice makes of it.

use super::{input, mistakes, with};
use hmc::solver::{Choice, Choices};

/// `GOOD` with these keys of the light quark's solver, and these of its factor's.
fn solvers(keys: &str, of_factor: &str) -> String {
    let tables = format!(
        "[fermion.light.solver]\n{keys}\n[[fermion.light.hasenbusch]]\nname = \"l1\"\nmu = 0.5\n\
         [fermion.light.hasenbusch.solver]\n{of_factor}\n"
    );
    with("c_sw = 1.0\n", &format!("c_sw = 1.0\n{tables}")).replacen("[\"light\"]", "[\"light\", \"l1\"]", 1)
}

/// The candidates of each term.
fn tried(text: &str) -> Vec<(String, Vec<String>)> {
    let input = input(text);
    let open = input.open_choices().into_iter();
    open.map(|(term, all)| (term.to_owned(), all.iter().map(ToString::to_string).collect())).collect()
}

const PLAIN: [&str; 4] =
    ["cg in double-single", "cg in double-half", "bicgstab in double-single", "bicgstab in double-half"];
const SCHWARZ: [&str; 2] = ["gcr-dd in double-single-half", "gcr-dd in double-half-half"];

#[test]
fn only_what_fits_is_tried() {
    let auto = "method = \"auto\"";
    let terms = |all: &[(String, Vec<String>)]| all.iter().map(|(term, _)| term.clone()).collect::<Vec<_>>();
    // A factor inherits it, with the block; bits depend on the grid of ranks only where the block is named so.
    let all = tried(&solvers(auto, ""));
    assert_eq!(terms(&all), ["light", "l1"]);
    assert!(all.iter().all(|(_, tried)| *tried == PLAIN), "{all:?}");
    for block in ["[4, 4, 4, 4]", "\"rank\""] {
        let all = tried(&solvers(&format!("{auto}\ngcr-dd = {{ n_mr = 4, block = {block} }}"), ""));
        assert!(all.iter().all(|(_, tried)| *tried == [&PLAIN[..], &SCHWARZ].concat()), "{all:?}");
    }
    // A given precision is the only one.
    let all = tried(&solvers(&format!("{auto}\nprecision = \"double\""), "precision = \"double-half\""));
    assert_eq!(all[0].1, ["cg in double", "bicgstab in double"]);
    assert_eq!(all[1].1, [PLAIN[1], PLAIN[3]]);
    // Some may have it, others not.
    assert_eq!(terms(&tried(&solvers(auto, "method = \"cg\""))), ["light"]);
    assert_eq!(terms(&tried(&solvers("method = \"bicgstab\"", auto))), ["l1"]);
    assert!(tried(&solvers("", "")).is_empty());
}

/// With all shifts at once there is one method.
#[test]
fn one_flavour_has_no_choice() {
    let flavour = |solver: &str| {
        let keys = "flavours = 1\n[fermion.light.rational]\nrange = [0.1, 30]\n[fermion.light.solver]\n";
        with("c_sw = 1.0\n", &format!("c_sw = 1.0\n{keys}{solver}"))
    };
    let (auto, named) = (input(&flavour("method = \"auto\"\n")), input(&flavour("")));
    assert!(auto.open_choices().is_empty());
    assert_eq!((auto.fermions, auto.kept), (named.fermions, named.kept));
}

#[test]
fn a_choice_makes_the_input_that_names_it() {
    let block = "gcr-dd = { block = [4, 4, 4, 4], k_max = 8 }";
    for (method, precision, keys) in [
        ("cg", "double-single", ""),
        ("cg", "double-half", ""),
        ("bicgstab", "double-half", ""),
        ("gcr-dd", "double-half-half", block),
    ] {
        let auto = input(&solvers(&format!("method = \"auto\"\n{block}"), ""));
        let choice = Choice { method: method.into(), precision: precision.into() };
        let both = |name: &str| (name.to_owned(), choice.clone());
        let choices = Choices::from(["light", "l1"].map(both));
        let chosen = auto.with_choices(&choices).unwrap();
        let table = format!("method = \"{method}\"\nprecision = \"{precision}\"\n{keys}");
        let named = input(&solvers(&table, ""));
        assert_eq!(chosen.kept, named.kept);
        assert_eq!(chosen.choices(), choices);
        assert_eq!(named.choices(), choices);
        assert_eq!(chosen.text, auto.text);
        if method == "gcr-dd" {
            assert_eq!(chosen.fermions, named.fermions);
        }
        assert!(hmc::input::compare(&auto, &auto).is_empty());
        assert!(!hmc::input::compare(&auto, &named).is_empty());
    }
    let auto = input(&solvers("method = \"auto\"", ""));
    let unknown = Choice { method: "guess".into(), precision: "double".into() };
    let error = auto.with_choices(&Choices::from([("light".to_owned(), unknown)])).unwrap_err().to_string();
    assert!(
        error.contains("the chain has chosen guess in double, which this program does not know"),
        "{error}"
    );
}

/// A factor inherits it.
#[test]
fn multigrid_is_a_candidate_where_it_has_a_table() {
    for (keys, has) in
        [("", false), ("multigrid = {}", true), ("multigrid = { aggregate = [4, 4, 4, 4], k_max = 8 }", true)]
    {
        let auto = input(&solvers(&format!("method = \"auto\"\n{keys}"), "method = \"auto\""));
        let open = auto.open_choices();
        assert_eq!(open.len(), 2);
        for (term, candidates) in open {
            let found = candidates.iter().any(|choice| choice.method == "multigrid");
            assert_eq!(found, has, "{keys}: {term}");
        }
    }
}

/// Every candidate of every term occurs.
#[test]
fn all_choices_have_every_candidate() {
    let auto = input(&solvers("method = \"auto\"", "precision = \"double\""));
    let all = auto.all_choices();
    for (term, candidates) in auto.open_choices() {
        assert!(candidates.iter().all(|candidate| all.iter().any(|choices| choices[term] == *candidate)));
    }
    assert_eq!(all.len(), 4);
    assert_eq!(input(&solvers("", "")).all_choices(), [Choices::new()]);
}

#[test]
fn tables_that_no_candidate_has() {
    let only = |word: &str| {
        format!("{word}: only the method \"{word}\" has this table, which \"auto\" tries without a precision")
    };
    let cases = [
        (
            "method = \"auto\"\nprecision = \"double\"\ngcr-dd = { block = [4, 4, 4, 4] }",
            format!("run.toml:17:10: {}", only("gcr-dd")),
        ),
        (
            "method = \"auto\"\nprecision = \"double\"\nmultigrid = { vectors = 8 }",
            format!("run.toml:17:13: {}", only("multigrid")),
        ),
        (
            "method = \"auto\"\nmultigrid = { aggregate = [4, 4, 4, 6] }",
            "run.toml:16:27: aggregate: aggregates of 4x4x4x6 do not divide the lattice of 8x8x8x16 into several, one or an \
             even number in each direction"
                .into(),
        ),
        (
            "method = \"auto\"\ngcr-dd = { block = [4, 4, 4, 6] }",
            "run.toml:16:20: block: blocks of 4x4x4x6 do not divide the lattice of 8x8x8x16".into(),
        ),
    ];
    for (keys, expected) in cases {
        assert_eq!(mistakes(&solvers(keys, ""), 1), [expected], "{keys}");
    }
}
