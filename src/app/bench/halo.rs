//! Speed of the exchanges between ranks: halos of hops and of links, sums, and plain messages.

use super::operators::spinors;
use super::random_links;
use super::rows::{Bench, Exchange};
use crate::app::AppError;
use crate::comm::Message;
use crate::device::Precision;
use crate::family::Staggered;
use crate::field::{Dagger, EVEN, Kind, LINK_REALS};
use crate::lattice::{Boundary, volume};
use crate::operator::WilsonLinks;
use Precision::{Double as D, Half as H, Single as S};

/// Bytes of the messages.
const MESSAGES: [usize; 5] = [8, 1 << 12, 1 << 16, 1 << 20, 1 << 24];

/// All exchanges of the domain's cuts.
pub(super) fn table(bench: &mut Bench) -> Result<(), AppError> {
    let domain = bench.domain;
    if domain.comm().size() == 1 {
        bench.rows.line("  one rank exchanges nothing");
        return Ok(());
    }
    hops(bench)?;
    borders(bench)?;
    sums(bench)?;
    messages(bench)
}

/// The halos of a hop, from packing until all has come.
fn hops(bench: &mut Bench) -> Result<(), AppError> {
    let (domain, slices) = (bench.domain, bench.args.wall.slices);
    let links = random_links(domain)?;
    let mut wilson = |name, kind: Kind, precision: Precision| -> Result<(), AppError> {
        let mut hop = WilsonLinks::new(domain, precision, 12, kind.slices(), Boundary::ANTIPERIODIC)?;
        hop.update(&links)?;
        let input = spinors(domain, kind, precision, 1)?;
        let exchange = Exchange::new(name, Some(precision), hop.bytes_sent());
        bench.exchange(exchange, || Ok(hop.exchange(&input, EVEN, Dagger::No)?))
    };
    for precision in [D, S, H] {
        wilson("Wilson hop", Kind::Dirac, precision)?;
    }
    for precision in [S, H] {
        wilson("domain-wall hop", Kind::Wall(slices), precision)?;
    }
    for precision in [D, S, H] {
        let mut operator = Staggered::new(domain, precision, 14, 1, Boundary::ANTIPERIODIC)?;
        operator.update(&links, &links, -1.0 / 24.0)?;
        let input = spinors(domain, Kind::Colour, precision, 1)?;
        let exchange = Exchange::new("staggered hop", Some(precision), operator.bytes_sent());
        bench.exchange(exchange, || Ok(operator.exchange(&input, EVEN)?))?;
    }
    Ok(())
}

/// A layer of links from either side of every cut. Their corners do not count.
fn borders(bench: &mut Bench) -> Result<(), AppError> {
    let domain = bench.domain;
    let mut links = random_links(domain)?;
    let local = domain.partition().local();
    let faces: usize = domain.cut_directions().map(|mu| 2 * volume(local) / local[mu]).sum();
    let bytes = faces * 4 * LINK_REALS * size_of::<f64>();
    bench.exchange(Exchange::new("links, 1 layer", Some(D), bytes), || Ok(links.fill_borders_to(1)?))
}

/// The norm of a spinor, known to the host.
fn sums(bench: &mut Bench) -> Result<(), AppError> {
    let spinor = spinors(bench.domain, Kind::Dirac, S, 1)?;
    bench.exchange(Exchange::new("norm, with its sum", Some(S), 0), || Ok(spinor.norm2().map(drop)?))
}

/// Messages of the hosts to both neighbours in each cut direction, and from them.
fn messages(bench: &mut Bench) -> Result<(), AppError> {
    let domain = bench.domain;
    for mu in domain.cut_directions() {
        let neighbours = [true, false].map(|forward| domain.partition().neighbour(mu, forward));
        for bytes in MESSAGES {
            let (sent, mut received) = (vec![0u8; bytes], [vec![0u8; bytes], vec![0u8; bytes]]);
            let name = format!("messages in {}, 2 x {bytes} B", ["x", "y", "z", "t"][mu]);
            bench.exchange(Exchange::new(name, None, 2 * bytes), || {
                let sends = [(neighbours[0], 0), (neighbours[1], 1)];
                let sends = sends.map(|(peer, tag)| Message { peer, tag, bytes: &sent[..] });
                // What goes forward comes from the rank before.
                let [one, other] = &mut received;
                let receives = [(neighbours[1], 0, one), (neighbours[0], 1, other)];
                let mut receives =
                    receives.map(|(peer, tag, bytes)| Message { peer, tag, bytes: &mut bytes[..] });
                domain.comm().exchange(&sends, &mut receives);
                Ok(())
            })?;
        }
    }
    Ok(())
}
