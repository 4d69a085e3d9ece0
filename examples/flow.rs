//! Reads a configuration in any format (`cargo run --example flow CFG`) and flows it; without one, a hot start.
use hmc::comm::Solo;
use hmc::io;
use hmc::prelude::*;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let links = match std::env::args().nth(1) {
        Some(name) => {
            let path = Path::new(&name);
            let domain = Domain::local(io::header(path)?.extents)?;
            let (host, _) = read_links(path, domain.partition(), &Solo)?;
            MatrixField::from_host(&domain, &host)?
        }
        None => MatrixField::hot(&Domain::local([4, 4, 4, 8])?, 1)?,
    };
    for point in flow(&links, FlowKernel::Wilson, 0.02, 0.2, 1, &|| false)? {
        println!("t {:.2}  t^2 E {:.6}  Q {:+.6}", point.t, point.t * point.t * point.e_clover, point.q);
    }
    Ok(())
}
