//! Inputs: rank 0 reads them, and all ranks check the same text. A node on which a file system is not mounted, or a file that is
//! edited while a job starts, then ends all ranks with one message.

use crate::app::{AppError, Ranks};
use crate::comm::from_first;
use crate::config::{InputError, Loaded};
use crate::input;
use std::fmt::Debug;
use std::path::Path;

/// Reads the input at `path` on rank 0 and checks its text by `parse` on every rank, which is told the file's name, too; warns of
/// what is odd. Collective.
///
/// # Errors
/// The file cannot be read, all mistakes in it, or ranks read other files that it names.
pub(in crate::app) fn load<T: Debug>(
    path: &Path,
    comm: &Ranks,
    parse: impl FnOnce(&str, &str) -> Result<Loaded<T>, InputError>,
) -> Result<Loaded<T>, AppError> {
    let read = if comm.rank() == 0 { input::read(path) } else { Ok(String::new()) };
    let told = match &read {
        Ok(text) => format!("+{text}"),
        Err(error) => format!("-{error}"),
    };
    let told = from_first(&**comm, told.into_bytes());
    let told = String::from_utf8_lossy(&told);
    // The first byte is one of two.
    let (is_text, text) = (told.starts_with('+'), told.get(1..).unwrap_or_default());
    if !is_text {
        return Err(read.err().unwrap_or_else(|| InputError::OfFirst(text.to_owned())).into());
    }
    let parsed = parse(text, &path.display().to_string());
    require_same(path, &parsed, comm)?;
    let loaded = parsed?;
    if comm.rank() == 0 {
        loaded.warnings.iter().for_each(crate::app::output::warn);
    }
    Ok(loaded)
}

/// Refuses an input in which ranks do not read the same: files that it names differ.
fn require_same<T: Debug>(
    path: &Path,
    parsed: &Result<Loaded<T>, InputError>,
    comm: &Ranks,
) -> Result<(), AppError> {
    let own = match parsed {
        Ok(loaded) => format!("+{:08x}", crc32fast::hash(format!("{loaded:?}").as_bytes())),
        Err(error) => format!("-{error}"),
    };
    let all = comm.gather(own.as_bytes());
    let Some(rank) = all.iter().position(|other| *other != all[0]) else { return Ok(()) };
    let wrong = all[rank].strip_prefix(b"-").or(all[0].strip_prefix(b"-")).unwrap_or(b"other numbers");
    Err(AppError::Refused(format!(
        "{}: ranks 0 and {rank} do not read the same in the files that it names: {}",
        path.display(),
        String::from_utf8_lossy(wrong)
    )))
}
