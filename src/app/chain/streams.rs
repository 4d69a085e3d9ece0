//! Chains beside a chain: streams, which are independent chains of one ensemble with equal physics and other seeds, and chains
//! of other ensembles, whose seeds have to be other ones, too.
//!
//! Each is a chain like any other, in a folder of its own within that of the ensemble. Nothing is written for all of them
//! together: what they have in common is read from their folders.

use super::kept::kept;
use super::resume::{MEASUREMENTS, fixed, newest_header, stored_input};
use crate::app::AppError;
use crate::input::{self, Input, Start};
use crate::io;
use std::fs;
use std::path::{Path, PathBuf};

/// A chain among others of its ensemble.
pub(in crate::app) struct Stream {
    /// Its name, that of the folder.
    pub name: String,
    pub folder: PathBuf,
    /// The input in force, if this version can read it; before the first trajectory, that in the checkpoint.
    input: Option<Input>,
}

impl Stream {
    /// The chain in a folder; `None` if there is none.
    fn read(folder: PathBuf) -> Option<Self> {
        let name = folder.file_name()?.to_str()?.to_owned();
        let stored = || {
            let (file, header) = newest_header(&folder).ok()??;
            stored_input(&file, &header).ok()
        };
        let input = holds_chain(&folder)
            .then(|| kept(&folder).into_iter().rev().find_map(|kept| kept.input).or_else(stored))?;
        Some(Self { name, folder, input })
    }

    /// Whether it is one of this ensemble's: by its input, or as a chain that was moved here from the ensemble's folder. A folder
    /// of ensembles has others.
    fn is_of(&self, ensemble: &str) -> bool {
        self.input.as_ref().is_none_or(|input| input.run.stream.is_some() || input.run.name == ensemble)
    }
}

/// The name of a folder.
pub(in crate::app) fn name_of(folder: &Path) -> String {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let full = || folder.canonicalize().ok().and_then(|path| name(&path));
    name(folder).or_else(full).unwrap_or_default()
}

/// Whether the files of a chain are in a folder.
pub(in crate::app) fn holds_chain(folder: &Path) -> bool {
    ["run.toml", "history.csv", MEASUREMENTS].iter().any(|name| folder.join(name).exists())
        || io::states(folder).is_ok_and(|states| !states.is_empty())
}

/// The streams in the folder of an ensemble, by name; none in the folder of a chain.
pub(in crate::app) fn streams(ensemble: &Path) -> Vec<Stream> {
    if holds_chain(ensemble) {
        return Vec::new();
    }
    let name = name_of(ensemble);
    let entries = fs::read_dir(ensemble).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| Stream::read(entry.path()));
    let mut found: Vec<Stream> = found.filter(|stream| stream.is_of(&name)).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// All chains of a folder of ensembles.
fn chains(ensembles: &Path) -> Vec<Stream> {
    let entries = fs::read_dir(ensembles).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    let all = folders.into_iter().flat_map(|folder| match Stream::read(folder.clone()) {
        Some(chain) => vec![chain],
        None => streams(&folder),
    });
    all.collect()
}

/// The seeds of all chains of a folder of ensembles.
pub(in crate::app) fn seeds(ensembles: &Path) -> Vec<u64> {
    chains(ensembles).iter().filter_map(|chain| Some(chain.input.as_ref()?.run.seed)).collect()
}

/// A chain beside that of `input` which draws the same momenta: it has the same seed and lattice. Such chains are correlated,
/// whatever they start from and whatever their actions are: plaquettes of Wilson's and Symanzik's action by 0.3 on 4^4.
struct Twin {
    folder: PathBuf,
    /// Whether actions, couplings and masses are equal, too: one would take both for the same ensemble.
    is_same: bool,
}

impl Twin {
    fn of(input: &Input) -> Option<Self> {
        let own = input.run.folder();
        let twin = |chain: Stream| {
            let other =
                chain.input.filter(|other| other.run.seed == input.run.seed && chain.folder != own)?;
            let mut differ = fixed(&other, input).ok()?;
            differ.retain(|found| !found.key.starts_with("run."));
            if differ.iter().any(|found| found.key == "lattice.extents") {
                return None;
            }
            Some(Self { folder: chain.folder, is_same: differ.is_empty() })
        };
        let mut twins: Vec<Self> = chains(&input.run.ensembles).into_iter().filter_map(twin).collect();
        twins.sort_by_key(|twin| !twin.is_same);
        twins.into_iter().next()
    }
}

/// The names of streams in a sentence.
pub(super) fn named(streams: &[Stream]) -> String {
    let names: Vec<String> = streams.iter().map(|stream| format!("'{}'", stream.name)).collect();
    names.join(", ")
}

/// Refuses the folder of several streams where that of one chain is needed, to do `what`.
///
/// # Errors
/// It holds streams.
pub(in crate::app) fn require_chain(folder: &Path, what: &str) -> Result<(), AppError> {
    let streams = streams(folder);
    let Some(first) = streams.first() else { return Ok(()) };
    Err(AppError::Refused(format!(
        "{}: holds the streams {}; {what} takes the folder of one, such as {}",
        folder.display(),
        named(&streams),
        first.folder.display()
    )))
}

/// Whether the chain of `input` may be where it is to be: alone in its folder, or a stream with the physics of the others; with a
/// seed of its own if it `is_new`. The answer is warnings.
///
/// # Errors
/// It may not.
pub(in crate::app) fn judge(input: &Input, is_new: bool) -> Result<Vec<String>, AppError> {
    let (run, ensemble) = (&input.run, input.run.ensemble_folder());
    let others = streams(&ensemble);
    let Some(own) = &run.stream else {
        if !others.is_empty() {
            return Err(AppError::Refused(format!(
                "{} holds the streams {}; name one of them or a new one as 'stream' in [run], or give the run another name",
                ensemble.display(),
                named(&others)
            )));
        }
        return Ok(judge_seed(input, is_new)?.into_iter().collect());
    };
    if holds_chain(&ensemble) {
        return Err(AppError::Refused(format!(
            "{} holds a chain without a stream; give the run another name, or make that chain a stream: move all of its files into a \
             folder there, such as {}, and write its name as 'stream' into its input",
            ensemble.display(),
            ensemble.join("first").display()
        )));
    }
    let mut warnings = Vec::new();
    for other in others.iter().filter(|other| other.name != *own) {
        match &other.input {
            Some(theirs) => compare(&other.name, theirs, own, input)?,
            None => warnings.push(format!(
                "{}: has no input that this version can read; its physics is not compared",
                other.folder.display()
            )),
        }
    }
    warnings.extend(judge_seed(input, is_new)?);
    Ok(warnings)
}

/// Whether a chain beside this one draws the same momenta; the answer is a warning.
///
/// # Errors
/// It has the same physics, and this one `is_new`.
fn judge_seed(input: &Input, is_new: bool) -> Result<Option<String>, AppError> {
    let Some(twin) = Twin::of(input) else { return Ok(if is_new { seed_of_start(input) } else { None }) };
    let what = format!(
        "run.seed = {} is also that of {}, with the same lattice: both draw the same random numbers, and are \
         correlated whatever they start from",
        input.run.seed,
        twin.folder.display()
    );
    if is_new && twin.is_same {
        return Err(AppError::Refused(format!("{what}; give the new one another seed")));
    }
    Ok(Some(what))
}

/// A warning if the configuration that the chain starts from was made with the chain's own seed, on the same lattice.
fn seed_of_start(input: &Input) -> Option<String> {
    let Start::File(path) = &input.run.start else { return None };
    let header = io::header(path).ok().filter(|header| header.extents == input.extents)?;
    let stored = input::parse_stored(&header.input?, "").ok()?.input.run;
    let told = || {
        format!(
            "run.seed = {} is also that of the chain of {}, '{}': both draw the same random numbers, and are correlated; give the new \
             one another seed",
            input.run.seed,
            path.display(),
            stored.chain_name()
        )
    };
    (stored.seed == input.run.seed).then(told)
}

/// Compares two streams of an ensemble.
///
/// # Errors
/// Their physics differ, or their seeds are equal.
pub(in crate::app) fn compare(a: &str, of_a: &Input, b: &str, of_b: &Input) -> Result<(), AppError> {
    let mut differences = fixed(of_a, of_b)?;
    // Seed, start and thermalisation are each chain's own.
    differences.retain(|difference| !difference.key.starts_with("run."));
    if !differences.is_empty() {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
        let told = differences.iter().map(|difference| {
            format!(
                "\n  {}: {} in '{a}', {} in '{b}'",
                difference.key,
                shown(&difference.was),
                shown(&difference.is)
            )
        });
        let told: String = told.collect();
        return Err(AppError::Refused(format!(
            "the stream '{b}' has other physics than '{a}' of the same ensemble; take that of '{a}', or give the run another name:{told}"
        )));
    }
    if of_a.run.seed == of_b.run.seed {
        return Err(AppError::Refused(format!(
            "the streams '{a}' and '{b}' have the same run.seed = {}, and so the same random numbers; give the new one another, and \
             remove its folder if it has begun",
            of_a.run.seed
        )));
    }
    Ok(())
}
