//! Reads a configuration in any format (`cargo run --example flow CFG`) and flows it. Without one it writes one first, in
//! ILDG's format, in a temporary folder.
use hmc::comm::Solo;
use hmc::io::{Format, Meta, header};
use hmc::prelude::*;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let links = match std::env::args().nth(1) {
        Some(name) => read(Path::new(&name))?,
        None => written_and_read()?,
    };
    let points = flow(&links, FlowKernel::Wilson, 0.02, 0.2, 1, &|| false)?;
    for point in &points {
        println!("t {:.2}  t^2 E {:.6}  Q {:+.6}", point.t, point.t * point.t * point.e_clover, point.q);
    }
    // The flow goes down the gradient of Wilson's action.
    assert!(points.windows(2).all(|pair| pair[1].e_plaquette < pair[0].e_plaquette));
    Ok(())
}

fn read(path: &Path) -> Result<MatrixField, Box<dyn std::error::Error>> {
    let domain = Domain::local(header(path)?.extents)?;
    let (host, _) = read_links(path, domain.partition(), &Solo)?;
    Ok(MatrixField::from_host(&domain, &host)?)
}

fn written_and_read() -> Result<MatrixField, Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("hmc-flow-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let domain = Domain::local([4, 4, 4, 8])?;
    let host = MatrixField::hot(&domain, 1)?.to_host()?;
    let path = folder.join("hot.ildg");
    write_links(&path, Format::Ildg, &host, domain.partition(), &Solo, &Meta::default())?;
    let links = read(&path)?;
    std::fs::remove_dir_all(&folder)?;
    assert_eq!(links.to_host()?, host);
    Ok(links)
}
