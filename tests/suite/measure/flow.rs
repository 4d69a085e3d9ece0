//! The gradient flow with steps that are chosen by their error.

use super::ALONE;
use crate::program::{Scratch, objects, parallel};
use crate::reference::data;
use serde_json::Value;

/// As a flow of fine steps, at the same times; the same on ranks; rougher with a greater error.
#[test]
fn steps_by_their_error_are_as_good_as_fine_ones() {
    let Some(links) = data::find("configs/q844n1.openqcd") else { return };
    let links = links.to_str().unwrap().to_owned();
    let scratch = Scratch::new();
    let flow = |keys: &str, (ranks, grid, lanes): (usize, [usize; 4], usize)| -> Vec<Value> {
        let text = format!("[measure.flow]\nt_max = 2.0\n{keys}{}", parallel(grid, lanes, 1));
        let ended = scratch.measure(ranks, &text, &["--json", &links]);
        ended.succeeded();
        let [found] = &objects(&ended.out)[..] else { panic!("one configuration") };
        let points = found["flow"].as_array().unwrap().clone();
        points.into_iter().chain([found["t0"].clone()]).collect()
    };
    let one = (0, ALONE, 0);
    let fine = flow("step = 0.0025\nevery = 200\n", one);
    let mut before = f64::INFINITY;
    for error in ["1e-3", "1e-5", "1e-7"] {
        let keys = format!("step = 0.02\nevery = 25\nerror = {error}\n");
        let found = flow(&keys, one);
        assert_eq!(found, flow(&keys, (2, [1, 1, 1, 2], 1)));
        let mut worst = 0.0_f64;
        for (fine, found) in fine.iter().zip(&found).filter(|(fine, _)| fine.is_object()) {
            assert_eq!(fine["t"], found["t"]);
            for key in ["e_plaquette", "e_clover"] {
                let [fine, found] = [fine, found].map(|point| point[key].as_f64().unwrap());
                worst = worst.max((found / fine - 1.0).abs());
            }
        }
        println!("error {error}: E off by {worst:.1e} at most");
        assert!(worst < 0.3 * before && found.len() == 6, "{worst:e}");
        before = worst;
    }
    assert!(before < 1e-6, "{before:e}");
    let wrong = "[measure.flow]\nt_max = 2.0\nerror = 0.1\n";
    scratch.measure(0, wrong, &[&links]).failed(2, &["error: expected an error from 1e-12 to 1e-2"]);
}
