//! Reads an input file, which may be a pipe.

use super::report::{InputError, Report};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The largest input, in MiB.
const LIMIT: u64 = 16;
/// The first bytes of gauge configurations.
const CONFIGURATIONS: [(&[u8], &str); 5] = [
    (b"\x89HDF\r\n\x1a\n", "HDF5"),
    (b"BEGIN_HEADER", "NERSC"),
    (&[0x45, 0x67, 0x89, 0xab], "ILDG"),
    // 20103, in both byte orders.
    (&[0x87, 0x4e, 0, 0], "MILC"),
    (&[0, 0, 0x4e, 0x87], "MILC"),
];

/// Reads the text of a file.
///
/// # Errors
/// The file cannot be read, is too large, is a gauge configuration, or is not UTF-8 text.
pub(crate) fn read(path: &Path) -> Result<String, InputError> {
    let file = path.display().to_string();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take((LIMIT << 20) + 1).read_to_end(&mut bytes));
    if let Err(source) = read {
        return Err(InputError::Unreadable { file, source });
    }
    if let Some((_, format)) = CONFIGURATIONS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Err(InputError::Configuration { file, format });
    }
    if bytes.len() as u64 > LIMIT << 20 {
        return Err(InputError::TooLarge { file, limit: LIMIT });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(&error.as_bytes()[..good]);
        let report = Report::new(&file, &text);
        report.mistake(good, "not UTF-8 text");
        report.finish::<()>(None).expect_err("there is a mistake")
    })
}
