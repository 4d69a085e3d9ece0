//! Another program reads our files: h5py sees `/gauge/U` as complex128 with the values written.

use crate::files::plaquette;
use crate::program::{self, Scratch};
use hmc::comm::Solo;
use hmc::field::HostLinks;
use hmc::io::{Format, Meta, write_links};
use hmc::lattice::Partition;

const SCRIPT: &str = "
import sys, h5py, numpy
with h5py.File(sys.argv[1]) as f:
    u = f['/gauge/U']
    assert u.dtype == numpy.complex128, u.dtype
    assert u.shape == (8, 6, 4, 2, 4, 3, 3), u.shape
    assert u.chunks is None and not u.fletcher32
    assert f.attrs['trajectory'] == 7 and f.attrs['input'] == 'text'
    print(repr(complex(u[7, 5, 3, 1, 2, 1, 0])))
";

#[test]
fn h5py_reads_links() {
    let Some(python) = program::python() else { return };
    let partition = Partition::whole([2, 4, 6, 8]).unwrap();
    let mut links = HostLinks::unit([2, 4, 6, 8]);
    // A special unitary link at the last site, direction z: a turn in the plane of rows 0 and 1.
    let at = (links.reals.len() / 72 - 1) * 72 + 2 * 18;
    for (k, value) in [(0, 0.6), (2, -0.8), (6, 0.8), (8, 0.6)] {
        links.reals[at + k] = value;
    }
    let scratch = Scratch::new();
    let path = scratch.at("links.h5");
    let meta = Meta {
        trajectory: Some(7),
        plaquette: plaquette(&links),
        input: "text".into(),
        solvers: None,
        logical_name: None,
    };
    write_links(&path, Format::Hdf5, &links, &partition, &Solo, &meta).unwrap();
    let output = program::command(python).args(["-c", SCRIPT]).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "(0.8+0j)");
}
