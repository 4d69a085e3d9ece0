//! What is wrong is refused with a code and a message, and leaves everything as it was. Files, measurements and the gauge
//! action are those of the library.

use super::calls::{Links, Quark, Session, c, done, given, message};
use crate::compare::relative;
use crate::program::Scratch;
use crate::reference::gauge::{Gauge, GaugeAction, inner};
use hmc::capi::{
    HMC_FAILED, HMC_NOT_CONVERGED, HMC_REFUSED, hmc_box, hmc_close, hmc_free_text, hmc_links_checksum,
    hmc_links_extents, hmc_links_free, hmc_links_gauge, hmc_links_get, hmc_links_info, hmc_links_measure,
    hmc_links_new, hmc_links_plaquette, hmc_links_read, hmc_links_write, hmc_open, hmc_open_mpi,
    hmc_quark_apply, hmc_quark_free, hmc_quark_new, hmc_quark_propagator, hmc_quark_solve, hmc_version,
    hmc_warnings,
};
use hmc::lattice::Extents;
use serde_json::Value;
use std::ffi::{CStr, c_int};
use std::ptr::{null, null_mut};

const EXTENTS: Extents = [4, 4, 4, 4];
const REALS: usize = 72 * 256;

/// A code and a part of the message.
fn refused(code: c_int, expected: c_int, part: &str) {
    assert_eq!(code, expected, "{}", message());
    assert!(message().contains(part), "'{part}' is not in '{}'", message());
}

#[test]
fn null_pointers_and_wrong_numbers_are_refused() {
    let session = Session::new();
    let u = Gauge::warm(EXTENTS, 0.3, 5).to_host().reals;
    let links = Links::new(&session, EXTENTS, &u);
    let quark =
        Quark::new(&links, "[fermion.q]\naction = \"wilson\"\nkappa = 0.1\n[quark]\nfermion = \"q\"\n");
    let (mut made, mut other, mut out) = (null_mut(), null_mut(), vec![7.0; 24 * 256]);
    let reals = out.len();
    // SAFETY: pointers are null or good, and lengths are no longer than what is there.
    unsafe {
        refused(hmc_open(null(), null_mut()), HMC_REFUSED, "session: a null pointer");
        refused(hmc_open(c("[paralel]").as_ptr(), &mut null_mut()), HMC_REFUSED, "parallel");
        refused(hmc_open_mpi(null(), null(), &mut null_mut()), HMC_REFUSED, "comm");
        let new = |extents: Extents, u: &[f64], made: *mut _| {
            hmc_links_new(session.0, extents.as_ptr(), u.as_ptr(), u.len(), made)
        };
        refused(new(EXTENTS, &u[1..], &mut made), HMC_REFUSED, "18431 reals, 18432 expected");
        refused(new([4, 4, 4, 5], &u, &mut made), HMC_REFUSED, "5");
        refused(new([0, 4, 4, 4], &u, &mut made), HMC_REFUSED, "extents");
        refused(new([usize::MAX; 4], &u, &mut made), HMC_REFUSED, "extents");
        refused(new(EXTENTS, &vec![0.5; REALS], &mut made), HMC_REFUSED, "SU(3)");
        refused(new(EXTENTS, &vec![f64::NAN; REALS], &mut made), HMC_REFUSED, "SU(3)");
        refused(new(EXTENTS, &u, null_mut()), HMC_REFUSED, "links: a null pointer");
        refused(
            hmc_links_new(null(), EXTENTS.as_ptr(), u.as_ptr(), REALS, &mut made),
            HMC_REFUSED,
            "session",
        );
        refused(hmc_links_new(session.0, null(), u.as_ptr(), REALS, &mut made), HMC_REFUSED, "extents");
        refused(
            hmc_links_new(session.0, EXTENTS.as_ptr(), null(), REALS, &mut made),
            HMC_REFUSED,
            "u: a null",
        );
        refused(hmc_links_read(session.0, null(), &mut made), HMC_REFUSED, "path");
        refused(hmc_links_read(session.0, c("\u{1}").as_ptr(), &mut made), HMC_FAILED, "cannot");
        refused(hmc_links_get(links.0, out.as_mut_ptr(), reals), HMC_REFUSED, "18432 expected");
        refused(hmc_links_get(links.0, null_mut(), REALS), HMC_REFUSED, "u: a null pointer");
        refused(hmc_links_get(null(), out.as_mut_ptr(), reals), HMC_REFUSED, "links: a null pointer");
        refused(hmc_links_extents(links.0, null_mut()), HMC_REFUSED, "extents");
        refused(hmc_links_plaquette(links.0, null_mut()), HMC_REFUSED, "plaquette");
        refused(hmc_links_checksum(null(), &mut 0), HMC_REFUSED, "links");
        refused(hmc_links_info(links.0, null_mut()), HMC_REFUSED, "json");
        let path = c("/nowhere/x.h5");
        refused(hmc_links_write(links.0, path.as_ptr(), c("xyz").as_ptr(), 0), HMC_REFUSED, "'xyz'");
        refused(hmc_links_write(links.0, c("x.y").as_ptr(), null(), 0), HMC_REFUSED, "no format");
        refused(hmc_links_write(links.0, path.as_ptr(), null(), 0), HMC_FAILED, "/nowhere");
        let mut json = null_mut();
        let measure = |toml: &str, json: *mut _| hmc_links_measure(links.0, c(toml).as_ptr(), json);
        refused(measure("[measure.flou]", &mut json), HMC_REFUSED, "flou");
        refused(measure("[measure", &mut json), HMC_REFUSED, "not valid TOML");
        let gauge = c("[gauge]\naction = \"wilson\"\nbeta = 6.0\n");
        let mut action = 7.0;
        let code = hmc_links_gauge(links.0, gauge.as_ptr(), &mut action, out.as_mut_ptr(), 3);
        refused(code, HMC_REFUSED, "8192 expected");
        refused(hmc_quark_new(links.0, c("[quark]\nfermion = \"q\"").as_ptr(), &mut other), HMC_REFUSED, "q");
        let two = c("[fermion.q]\naction = \"wilson\"\nkappa = 0.1\n[quark]\nfermion = \"q\"\nmass = 0.1\n");
        refused(hmc_quark_new(links.0, two.as_ptr(), &mut other), HMC_REFUSED, "mass");
        let (x, at) = (out.clone(), out.as_mut_ptr());
        refused(hmc_quark_apply(quark.0, 0, x.as_ptr(), at, reals - 1), HMC_REFUSED, "6144 expected");
        refused(hmc_quark_apply(null_mut(), 0, x.as_ptr(), at, reals), HMC_REFUSED, "quark");
        refused(hmc_quark_solve(quark.0, x.as_ptr(), at, 0, null_mut()), HMC_REFUSED, "expected");
        refused(hmc_quark_solve(quark.0, x.as_ptr(), at, reals - 8, null_mut()), HMC_REFUSED, "expected");
        refused(hmc_quark_solve(quark.0, x.as_ptr().byte_add(1), at, 1, null_mut()), HMC_REFUSED, "aligned");
        let huge = usize::MAX;
        refused(hmc_quark_solve(quark.0, x.as_ptr(), at, huge, null_mut()), HMC_REFUSED, "fit");
        let origin = [0; 4];
        refused(hmc_quark_propagator(quark.0, origin.as_ptr(), at, 5, null_mut()), HMC_REFUSED, "73728");
        let far = [0, 0, 0, 4];
        let mut all = vec![7.0; 73728];
        let code = hmc_quark_propagator(quark.0, far.as_ptr(), all.as_mut_ptr(), 73728, null_mut());
        refused(code, HMC_REFUSED, "outside");
        assert!(all.iter().chain(&out).all(|x| *x == 7.0) && action == 7.0, "nothing was written");
        assert!(made.is_null() && other.is_null() && json.is_null());
        hmc_quark_free(null_mut());
        hmc_links_free(null_mut());
        hmc_close(null_mut());
        hmc_free_text(null_mut());
        assert_eq!(CStr::from_ptr(hmc_version()).to_str().unwrap(), env!("CARGO_PKG_VERSION"));
    }
}

#[test]
fn a_solver_that_does_not_converge_says_so() {
    let session = Session::new();
    let links = Links::new(&session, EXTENTS, &Gauge::warm(EXTENTS, 0.3, 5).to_host().reals);
    let toml = "[fermion.q]\naction = \"wilson\"\nkappa = 0.1\n[fermion.q.solver]\nmax_iterations = 2\n\
                [quark]\nfermion = \"q\"\n";
    let quark = Quark::new(&links, toml);
    let (b, mut x) = (vec![1.0; 24 * 256], vec![7.0; 24 * 256]);
    // SAFETY: as many reals.
    let code = unsafe { hmc_quark_solve(quark.0, b.as_ptr(), x.as_mut_ptr(), b.len(), null_mut()) };
    refused(code, HMC_NOT_CONVERGED, "did not converge");
    assert!(x.iter().all(|x| *x == 7.0));
}

/// Files of all formats, what is known of links, the gauge action with its force; handles in any order.
#[test]
fn links_go_through_files_of_all_formats() {
    let scratch = Scratch::new();
    let session = Session::new();
    let gauge = Gauge::warm(EXTENTS, 0.3, 8);
    let u = gauge.to_host().reals;
    let links = Links::new(&session, EXTENTS, &u);
    let json = |links: &Links| -> Value {
        // SAFETY: links, and room for a pointer.
        serde_json::from_str(&given(|text| unsafe { hmc_links_info(links.0, text) })).unwrap()
    };
    let info = json(&links);
    relative("plaquette", info["plaquette"].as_f64().unwrap(), gauge.plaquette(), 1e-13);
    for (ending, format) in [
        ("h5", None),
        ("ildg", None),
        ("nersc", None),
        ("openqcd", None),
        ("x", Some("openQCD")),
        ("milc", None),
    ] {
        let path = c(scratch.at(&format!("cfg.{ending}")).to_str().unwrap());
        let format = format.map(c);
        let at = format.as_ref().map_or(null(), |format| format.as_ptr());
        let mut back = null_mut();
        // SAFETY: texts, and room for a pointer.
        unsafe {
            done(hmc_links_write(links.0, path.as_ptr(), at, 0));
            refused(hmc_links_write(links.0, path.as_ptr(), at, 0), HMC_REFUSED, "exists already");
            done(hmc_links_write(links.0, path.as_ptr(), at, 1));
            done(hmc_links_read(session.0, path.as_ptr(), &mut back));
        }
        let back = Links(back);
        let mut reals = vec![0.0; REALS];
        // SAFETY: room for so many.
        done(unsafe { hmc_links_get(back.0, reals.as_mut_ptr(), REALS) });
        let rounded = |x: f64| if ending == "milc" { f64::from(x as f32) } else { x };
        assert!(reals.iter().zip(&u).all(|(a, b)| *a == rounded(*b)), "{ending}");
        let found = json(&back);
        assert!(found["links_checksum"] == info["links_checksum"] || ending == "milc");
    }
    // SAFETY: a session, and room for a pointer.
    let warnings = given(|text| unsafe { hmc_warnings(session.0, text) });
    assert!(warnings.contains("openqcd: has no checksum"), "{warnings}");

    let action = GaugeAction::rectangle(5.5, -1.0 / 12.0);
    let (mut value, mut force) = (0.0, vec![0.0; 32 * 256]);
    let toml = c("[gauge]\naction = \"symanzik\"\nbeta = 5.5\n");
    // SAFETY: a text, and room for so many.
    done(unsafe { hmc_links_gauge(links.0, toml.as_ptr(), &mut value, force.as_mut_ptr(), force.len()) });
    relative("action", value, action.value(&gauge), 1e-12);
    let norm2: f64 = force.iter().map(|f| f * f).sum();
    let expected = action.force(&gauge);
    relative("force", norm2, inner(&expected, &expected), 1e-10);

    let [mut local, mut offset] = [[0; 4], [1; 4]];
    // SAFETY: four numbers, and room for as many.
    done(unsafe { hmc_box(session.0, [8, 4, 2, 6].as_ptr(), local.as_mut_ptr(), offset.as_mut_ptr()) });
    assert_eq!((local, offset), ([8, 4, 2, 6], [0; 4]));
    // What is made with a session outlives it.
    drop(session);
    let mut plaquette = 0.0;
    // SAFETY: room for one.
    done(unsafe { hmc_links_plaquette(links.0, &mut plaquette) });
    assert_eq!(plaquette, info["plaquette"].as_f64().unwrap());
}

/// Threads take turns.
#[test]
fn threads_may_share_a_session() {
    struct Shared(*mut hmc::capi::hmc_links);
    // SAFETY: the interface lets any thread call.
    unsafe impl Sync for Shared {}
    let session = Session::new();
    let links = Links::new(&session, EXTENTS, &Gauge::warm(EXTENTS, 0.3, 9).to_host().reals);
    let shared = Shared(links.0);
    let measured = |shared: &Shared| {
        let toml = c("[measure.flow]\nt_max = 0.1\nevery = 5\n");
        // SAFETY: a text, and room for a pointer.
        given(|text| unsafe { hmc_links_measure(shared.0, toml.as_ptr(), text) })
    };
    let all: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| measured(&shared))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(all.iter().all(|one| *one == all[0] && one.contains("\"flow\"")));
}
