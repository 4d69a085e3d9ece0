//! `hmc bench all --json`: every operator and solver, and numbers that agree with each other. The tools that draw them.

use super::{Ended, Scratch, command, objects, python};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The least that shows every row: one application a sample, solves that end soon.
const SHORT: [&str; 14] = [
    "--json",
    "--device",
    "cpu",
    "--threads",
    "1",
    "--sample-seconds",
    "0",
    "--residual",
    "1e-6",
    "--slices",
    "4",
    "--mass",
    "0.1",
    "4x4x4x8",
];
/// Sites of one parity.
const SITES: f64 = 256.0;
/// A few roundings of 2^-53 each.
const ROUNDING: f64 = 1e-14;

fn bench(ranks: usize, tables: &[&str]) -> Ended {
    let ended = Scratch::new().run(ranks, &[&["bench"], tables, &SHORT].concat());
    ended.succeeded();
    ended
}

fn document(ended: &Ended) -> Value {
    let [document] = &objects(&ended.out)[..] else { panic!("one object: {}", ended.out) };
    document.clone()
}

fn real(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"))
}

fn assert_close(a: f64, b: f64, row: &Value) {
    assert!(a.is_finite() && (a - b).abs() <= ROUNDING * b.abs(), "{a} and {b} in {row}");
}

/// The values of some keys of each row: numbers as in JSON, texts without quotes.
fn words(rows: &[Value], keys: &[&str]) -> BTreeSet<String> {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    rows.iter().map(|row| keys.iter().map(|key| word(&row[*key])).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn all_is_one_document_whose_numbers_agree() {
    let ended = bench(0, &["all"]);
    let document = document(&ended);
    let lattices = document["lattices"].as_array().unwrap();
    assert_eq!((lattices.len(), &document["ranks"]), (1, &Value::from(1)));
    let copy = real(&lattices[0], "copy_gb_per_second");
    let operators = document["operators"].as_array().unwrap();

    // Every operator in all precisions and reals.
    let mut expected = BTreeSet::new();
    for precision in ["double", "single", "half"] {
        for operator in ["Wilson hop", "clover even-odd", "D_w", "M5 D_w", "C C^dag"] {
            expected.extend([18, 12, 8].map(|reals| format!("{operator} {precision} {reals}")));
        }
        expected.insert(format!("clover 1+1 even-odd {precision} 12"));
        expected.extend([18, 14, 9].map(|reals| format!("staggered D {precision} {reals}")));
        expected.extend(["M5 T", "M5 1 + T"].map(|operator| format!("{operator} {precision} null")));
    }
    assert_eq!(words(operators, &["operator", "precision", "reals"]), expected);
    for (operator, most) in [("Wilson hop", 16), ("staggered D", 16), ("D_w", 4), ("M5 D_w", 4)] {
        let several = |row: &&Value| row["operator"] == operator && row["right_hand_sides"] == most;
        assert!(operators.iter().any(|row| several(&row)), "{operator}, n = {most}");
    }

    for row in operators {
        assert_eq!(row["lattice"], "4x4x4x8");
        let slices = if row["slices"].is_null() { 1.0 } else { real(row, "slices") };
        assert_close(real(row, "sites"), SITES * slices * real(row, "right_hand_sides"), row);
        let (flops, bytes) = (real(row, "flops_per_site"), real(row, "bytes_per_site"));
        let [speed, rate] = ["gflop_per_second", "gb_per_second"].map(|key| real(row, key));
        // In units of 1e9.
        let sites_a_second = real(row, "sites") / real(row, "microseconds") * 1e-3;
        assert_close(speed, sites_a_second * flops, row);
        assert_close(rate, sites_a_second * bytes, row);
        assert_close(real(row, "share_of_bound"), rate / copy, row);
        assert!(row["joules"].is_null(), "a CPU that counts energy: {row}");
        assert_close(real(row, "share_of_bound"), speed / real(row, "bound_gflop_per_second"), row);
    }

    let solvers = document["solvers"].as_array().unwrap();
    let found = words(solvers, &["operator", "method", "precisions"]);
    for (operator, methods) in
        [("symmetric even-odd clover", &["CG", "BiCGstab"][..]), ("HISQ", &["CG"]), ("domain walls", &["CG"])]
    {
        for (method, precisions) in
            methods.iter().flat_map(|m| ["double", "double-single", "double-half"].map(|p| (m, p)))
        {
            assert!(found.contains(&format!("{operator} {method} {precisions}")), "{method} {precisions}");
        }
    }
    for one in [
        "symmetric even-odd clover GCR-DD rank double-half-half",
        "HISQ multi-shift CG double",
        "HISQ block CG double-single",
    ] {
        assert!(found.contains(one), "{one} in {found:?}");
    }
    for row in solvers {
        assert!(real(row, "residual") <= 1e-6 && row["error"].is_null(), "{row}");
        assert!(real(row, "iterations") > 0.0 && real(row, "applications") > 0.0, "{row}");
        let flops = real(row, "applications") * real(row, "sites") * real(row, "flops_per_site");
        assert_close(real(row, "gflop_per_second") * real(row, "seconds"), 1e-9 * flops, row);
        let shares = ["operator_share", "preconditioner_share", "algebra_share"].map(|key| real(row, key));
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < ROUNDING, "{row}");
    }

    // The tables have the same rows.
    assert_eq!(ended.err.matches(" GFLOP/s per rank ").count(), operators.len(), "{}", ended.err);
}

/// A term that is not positive ends the benchmark with its message; the rows before it are kept.
#[test]
fn a_table_that_fails_leaves_those_before_it() {
    let tables = ["bench", "wilson", "solver", "--kappa", "0.4"];
    let ended = Scratch::new().run(0, &[&tables[..], &SHORT].concat());
    ended.failed(1, &["the clover term is not positive definite"]);
    let document = document(&ended);
    let rows = |kind: &str| document[kind].as_array().unwrap().len();
    assert_eq!((rows("operators"), rows("solvers")), (17, 0));
    Scratch::new().run(0, &["bench", "--json", "5x4x4x4"]).failed(2, &["5"]);
}

/// However many ranks, one of them prints.
#[test]
fn two_ranks_print_one_document() {
    let document = document(&bench(2, &["wilson", "--grid", "1x1x1x2"]));
    assert_eq!(document["ranks"], 2);
    assert_eq!(document["lattices"][0]["grid"], "1x1x1x2");
    let operators = document["operators"].as_array().unwrap();
    assert!(operators.iter().all(|row| row["operator"] == "Wilson hop"));
    assert_eq!(document["solvers"], serde_json::json!([]));
    let row = &operators[0];
    assert_close(real(row, "sites"), SITES / 2.0, row);
}

/// Every exchange of two ranks, and none of one.
#[test]
fn halos_of_all_families_are_measured() {
    let alone = document(&bench(0, &["halo"]));
    assert_eq!(alone["exchanges"], serde_json::json!([]));
    let document = document(&bench(2, &["halo", "--grid", "1x1x1x2"]));
    let rows = document["exchanges"].as_array().unwrap();
    for (name, precision, bytes) in [
        // 64 sites of a face, 32 of a parity, to either side: half spinors; three layers of colour vectors.
        ("Wilson hop", "double", 2 * 32 * 12 * 8),
        ("Wilson hop", "half", 2 * 32 * 32),
        ("domain-wall hop", "single", 4 * 2 * 32 * 12 * 4),
        ("staggered hop", "single", 2 * 32 * 18 * 4),
        ("staggered hop", "half", 2 * 32 * 3 * 16),
        ("links, 1 layer", "double", 2 * 64 * 4 * 18 * 8),
        ("norm, with its sum", "single", 0),
    ] {
        let row = rows.iter().find(|row| row["exchange"] == name && row["precision"] == precision);
        let row = row.unwrap_or_else(|| panic!("{name} {precision} in {rows:?}"));
        assert_eq!(real(row, "bytes"), f64::from(bytes), "{row}");
        assert_close(real(row, "gb_per_second") * real(row, "microseconds"), 1e-3 * f64::from(bytes), row);
    }
    let is_message = |row: &&Value| row["exchange"].as_str().unwrap().starts_with("messages in t, 2 x ");
    assert_eq!(rows.iter().filter(is_message).count(), 5, "{rows:?}");
}

/// The same rows on one rank and on two, strong and weak, and what became of their times.
#[test]
fn scaling_compares_numbers_of_ranks() {
    for (weak, second) in [(false, "4x4x4x8"), (true, "4x4x4x16")] {
        let asked = if weak { &["scaling", "wilson", "--weak"][..] } else { &["wilson", "--ranks", "1,2"] };
        let document = document(&bench(2, asked));
        let lattices: Vec<_> = document["lattices"].as_array().unwrap().iter().collect();
        let found: Vec<_> = lattices.iter().map(|row| (&row["lattice"], &row["ranks"])).collect();
        assert_eq!(found, [(&"4x4x4x8".into(), &1.into()), (&second.into(), &2.into())]);
        let points = document["scaling"].as_array().unwrap();
        let (first, rest) = points.split_at(17);
        assert_eq!(rest.len(), 17, "{points:?}");
        for (one, two) in first.iter().zip(rest) {
            assert_eq!(
                (&one["name"], &one["lattice"], &one["ranks"]),
                (&two["name"], &two["lattice"], &1.into())
            );
            let ratio = real(one, "seconds") / real(two, "seconds");
            assert_close(real(two, "speed"), if weak { 2.0 * ratio } else { ratio }, two);
            assert_close(real(two, "efficiency"), 0.5 * real(two, "speed"), two);
        }
    }
    let refused = |arguments: &[&str]| Scratch::new().run(2, &[&["bench", "scaling"], arguments].concat());
    refused(&["--ranks", "1,4"]).failed(2, &["scaling on 4 ranks: 2 run"]);
    refused(&["--grid", "1x1x1x2"]).failed(2, &["--grid is for one number of ranks"]);
}

/// What a tool prints that writes `target`; it writes over nothing.
fn drawn(scratch: &Scratch, tool: &str, sources: &[&str], target: &str) -> Option<String> {
    let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(tool);
    // Python's compiled modules would lie beside the tools.
    let mut command = command(python()?);
    command.arg("-B").arg(tool).args(sources).arg(target).current_dir(scratch.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let again = command.output().unwrap();
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists already"), "{again:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_roofline_has_a_point_for_each_operator() {
    let scratch = Scratch::new();
    let ended = bench(0, &["clover", "domain-wall"]);
    scratch.write("all.json", &ended.out);
    let Some(table) = drawn(&scratch, "roofline.py", &["all.json"], "roofline.svg") else { return };
    let rows = document(&ended)["operators"].as_array().unwrap().len();
    let svg = fs::read_to_string(scratch.at("roofline.svg")).unwrap();
    let points = ["<circle ", "<polygon ", "width=\"6\""].map(|mark| svg.matches(mark).count());
    // The names of 7 operators, 3 precisions, and of open points.
    assert_eq!(points.iter().sum::<usize>(), rows + 7 + 3 + 1);
    // Heads and a rule, then each operator's fastest storage in each precision.
    assert_eq!(table.lines().count(), 2 + 7 * 3, "{table}");
}

#[test]
fn scaling_is_relative_to_the_fewest_ranks() {
    let scratch = Scratch::new();
    for (ranks, seconds) in [(1, 8.0), (2, 5.0), (4, 2.5)] {
        let joules = if ranks == 4 { "1200.0" } else { "null" };
        let text = format!(
            r#"{{"lattice":"16x16x16x32","ranks":{ranks},"device":"a GPU","seconds":{seconds},"trajectories_a_day":1.0,"joules":{joules},"terms":[{{"iterations":30}},{{"iterations":12}}]}}"#
        );
        scratch.write(&format!("{ranks}.json"), text);
    }
    let sources = ["4.json", "1.json", "2.json"];
    let Some(table) = drawn(&scratch, "scaling.py", &sources, "scaling.svg") else { return };
    let rows: Vec<&str> = table.lines().skip(2).collect();
    assert_eq!(
        rows,
        [
            "| 1 | 8 | 1 | 1.00 | 100% | 42 |  |",
            "| 2 | 5 | 1 | 1.60 | 80% | 42 |  |",
            "| 4 | 2.5 | 1 | 3.20 | 80% | 42 | 1200 |"
        ]
    );
}
