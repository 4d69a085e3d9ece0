//! Speed of the hopping term and of the clover operator.

use super::{probe, random_links, seconds};
use crate::app::AppError;
use crate::device::Precision;
use crate::family::{Schur, Wilson, WilsonParams};
use crate::field::{Dagger, Domain, EVEN, Kind, ODD, Spinor};
use crate::lattice::{Boundary, volume};
use crate::operator::{Operator, WilsonLinks};
use std::sync::Arc;

/// Flops per site: the hopping term; the even-odd clover operator as counted by QUDA.
pub(super) const HOP_FLOPS: f64 = 1320.0;
pub(super) const CLOVER_FLOPS: f64 = 3792.0;
/// Numbers of right-hand sides that share links.
const FIELDS: [usize; 4] = [2, 4, 8, 16];

/// `fields` random fields of one kind in any precision.
pub(super) fn spinors(
    domain: &Arc<Domain>,
    kind: Kind,
    precision: Precision,
    fields: usize,
) -> Result<Spinor, AppError> {
    let of = |precision, fields| Spinor::of(domain, kind, precision, fields);
    let (mut double, mut one, mut all) =
        (of(Precision::Double, 1)?, of(precision, 1)?, of(precision, fields)?);
    double.set_random(ODD, 1.0, probe(0))?;
    one.copy_from(&double)?;
    (0..fields).try_for_each(|n| all.set_field(n, &one))?;
    Ok(all)
}

/// One row. The bound is the memory traffic, with each real moved once.
pub(super) fn row(what: &str, sites: f64, flops: f64, bytes: f64, time: f64, copy: f64) -> String {
    let (speed, rate) = (sites * flops / time / 1e9, sites * bytes / time / 1e9);
    let bound = copy * flops / bytes;
    format!(
        "  {what:34} {speed:8.0} GFLOP/s per rank  bound {bound:6.0}  share {:4.0}%  {rate:5.0} GB/s  {:9.2} us",
        100.0 * rate / copy,
        time * 1e6
    )
}

/// The hopping term in every storage, then with several right-hand sides.
pub(super) fn hops(domain: &Arc<Domain>, copy: f64, say: &dyn Fn(&str)) -> Result<(), AppError> {
    let links = random_links(domain)?;
    let sites = volume(domain.partition().local()) as f64 / 2.0;
    let one = |precision: Precision, reals: usize, fields: usize| -> Result<(), AppError> {
        let mut hop = WilsonLinks::new(domain, precision, reals, fields, Boundary::ANTIPERIODIC)?;
        hop.update(&links)?;
        let input = spinors(domain, Kind::Dirac, precision, fields)?;
        let mut out = Spinor::several(domain, precision, fields)?;
        let time = seconds(domain, || Ok(hop.hop(&mut out, &input, EVEN, Dagger::No)?))?;
        let all = fields as f64;
        let bytes = (precision.stored(8 * reals, 0) as f64) / all + 2.0 * precision.stored(24, 1) as f64;
        let what = if fields == 1 {
            format!("Wilson hop {precision:6} {reals:2} reals")
        } else {
            format!("Wilson hop {precision:6} {reals:2} reals, n = {fields}")
        };
        say(&row(&what, sites * all, HOP_FLOPS, bytes, time, copy));
        Ok(())
    };
    for precision in Precision::ALL {
        for reals in [18, 12, 8] {
            one(precision, reals, 1)?;
        }
    }
    for precision in [Precision::Single, Precision::Half] {
        for fields in FIELDS {
            one(precision, 12, fields)?;
        }
    }
    Ok(())
}

/// `A_oo - D_oe A_ee^-1 D_eo / 4` in every storage.
pub(super) fn clover(domain: &Arc<Domain>, copy: f64, say: &dyn Fn(&str)) -> Result<(), AppError> {
    let links = random_links(domain)?;
    // On random links the term is positive only for small c_sw. Its value does not affect the speed.
    let params = WilsonParams {
        kappa: 0.12,
        mu: 0.0,
        c_sw: 0.1,
        boundary: Boundary::ANTIPERIODIC,
        schur: Schur::Asymmetric,
    };
    let mut term = Wilson::clover_term(domain, &params)?;
    if let Some(term) = &mut term {
        term.update(&links)?;
    }
    let sites = volume(domain.partition().local()) as f64 / 2.0;
    for precision in Precision::ALL {
        for reals in [18, 12, 8] {
            let mut operator = Wilson::new(domain, precision, reals, params)?;
            operator.update(&links, term.as_ref())?;
            let input = spinors(domain, Kind::Dirac, precision, 1)?;
            let mut out = Spinor::new(domain, precision)?;
            let time = seconds(domain, || Ok(operator.apply(&mut out, &input, Dagger::No)?))?;
            // Two hops with their links, A and A^-1; five spinors: in, an intermediate one (written and read), x, out.
            let bytes = 2 * precision.stored(8 * reals, 0)
                + 2 * precision.stored(72, 2)
                + 5 * precision.stored(24, 1);
            let what = format!("clover even-odd {precision:6} {reals:2} reals");
            say(&row(&what, sites, CLOVER_FLOPS, bytes as f64, time, copy));
        }
    }
    Ok(())
}
