//! `hmc init` and `hmc branch`: inputs to start from, of this program's own and of a configuration.

use super::files;
use crate::app::AppError;
use crate::app::chain::streams;
use crate::app::output::{say, warn};
use crate::input;
use crate::io;
use std::path::Path;
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

/// Inputs of the program, from small to large: name and text.
const INPUTS: [(&str, &str); 20] = [
    ("quickstart", include_str!("../../../inputs/quickstart.toml")),
    ("quenched-b6.0", include_str!("../../../inputs/quenched-b6.0.toml")),
    ("clover-nf2-8x8", include_str!("../../../inputs/clover-nf2-8x8.toml")),
    ("tm-nf2-4x4", include_str!("../../../inputs/tm-nf2-4x4.toml")),
    ("tm-nf2p1p1-4x4", include_str!("../../../inputs/tm-nf2p1p1-4x4.toml")),
    ("clover-nf2-open-8x16", include_str!("../../../inputs/clover-nf2-open-8x16.toml")),
    ("swf-nf3-8x8", include_str!("../../../inputs/swf-nf3-8x8.toml")),
    ("clover-nf2p1-8x16", include_str!("../../../inputs/clover-nf2p1-8x16.toml")),
    ("clover-nf2-32c64", include_str!("../../../inputs/clover-nf2-32c64.toml")),
    ("clover-nf2p1-32c64", include_str!("../../../inputs/clover-nf2p1-32c64.toml")),
    ("clover-nf2p1-open-32c96", include_str!("../../../inputs/clover-nf2p1-open-32c96.toml")),
    ("swf-nf3-24c96", include_str!("../../../inputs/swf-nf3-24c96.toml")),
    ("tm-nf2p1p1-48c96", include_str!("../../../inputs/tm-nf2p1p1-48c96.toml")),
    ("mobius-2p1-small", include_str!("../../../inputs/mobius-2p1-small.toml")),
    ("odwf-nf2-16c32", include_str!("../../../inputs/odwf-nf2-16c32.toml")),
    ("dwf-2p1-16c32", include_str!("../../../inputs/dwf-2p1-16c32.toml")),
    ("asqtad-2p1", include_str!("../../../inputs/asqtad-2p1.toml")),
    ("hisq-2p1-6x6", include_str!("../../../inputs/hisq-2p1-6x6.toml")),
    ("hisq-2p1p1-16c32", include_str!("../../../inputs/hisq-2p1p1-16c32.toml")),
    ("hisq-2p1p1-physical-64c96", include_str!("../../../inputs/hisq-2p1p1-physical-64c96.toml")),
];

/// What is changed in an input, and where it goes.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// `KEY=VALUE`: a key with its tables, as `hmc.level.0.steps`, and a value of TOML, or a text without quotes.
    pub set: Vec<String>,
    /// The file; `None`: stdout.
    pub write: Option<std::path::PathBuf>,
    /// Whether it may exist.
    pub force: bool,
}

/// `hmc init [NAME] [--set KEY=VALUE ..] [--write FILE [--force]]`: an input of the program with some keys changed; without a name, a
/// list of them. With another `run.name` or `run.stream` and no `run.seed` it has a seed that follows from them, since chains of one
/// seed are correlated.
///
/// # Errors
/// There is no such input or key, or the input is wrong then.
pub fn init(name: Option<&str>, draft: &Draft) -> Result<(), AppError> {
    let Some(name) = name else {
        for (name, text) in INPUTS {
            let about: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("# ")).collect();
            let about = about.join(" ");
            let end = [": ", ". ", ", ", " ("].iter().filter_map(|mark| about.find(mark)).min();
            say(format_args!("{name:<26} {}", &about[..end.unwrap_or(about.len())]))?;
        }
        return Ok(());
    };
    let Some((_, text)) = INPUTS.iter().find(|(other, _)| *other == name) else {
        let all: Vec<&str> = INPUTS.iter().map(|(name, _)| *name).collect();
        return Err(AppError::Refused(format!(
            "init: there is no input '{name}'; there are {}",
            all.join(", ")
        )));
    };
    let change = |key| {
        let mut changes = draft.set.iter().map(String::as_str);
        changes.find(|change| change.split('=').next().map(str::trim) == Some(key))
    };
    let mut set = draft.set.clone();
    let names: Vec<&str> = ["run.name", "run.stream"].into_iter().filter_map(change).collect();
    if !names.is_empty() && change("run.seed").is_none() {
        set.push(format!("run.seed={}", seed_of(&format!("{name} {}", names.join(" ")), &[])));
    }
    finish(text, &Draft { set, ..draft.clone() })
}

/// `hmc init --schema`: the JSON schema of inputs, for editors of TOML.
///
/// # Errors
/// stdout is closed.
pub fn schema() -> Result<(), AppError> {
    say(format_args!("{:#}", input::schema()))
}

/// The chain that `hmc branch` makes.
#[derive(Clone, Debug, Default)]
pub struct Twig {
    /// The name of its ensemble; `None`: that of the stored input.
    pub name: Option<String>,
    /// Its name among the streams of the ensemble; `None`: as in the stored input.
    pub stream: Option<String>,
    /// Its seed; `None`: one that follows from the stored one, the trajectory and the new chain's name, and that no chain of the
    /// folder has.
    pub seed: Option<u64>,
}

/// `hmc branch CFG [--name NAME] [--stream STREAM] [--seed N] [--set KEY=VALUE ..] [--write FILE]`: the input of another chain that
/// starts from the configuration, by the input that is stored in it.
///
/// # Errors
/// Neither a name nor a stream is given, the header of the configuration cannot be read or has no input, or the new input is
/// wrong.
pub fn branch(configuration: &Path, twig: &Twig, draft: &Draft) -> Result<(), AppError> {
    if twig.name.is_none() && twig.stream.is_none() {
        return Err(AppError::Refused(
            "branch: --name NAME is wanted for another ensemble, or --stream STREAM for another chain of the same one".to_owned(),
        ));
    }
    // The run reads the links, and verifies them.
    let header = io::header(configuration)?;
    let refused = |what: &str| AppError::Refused(format!("{}: {what}", configuration.display()));
    let text = header.input.as_deref().filter(|text| !text.is_empty());
    let text =
        text.ok_or_else(|| refused("it has no input; write one with this file as 'start' in [run]"))?;
    let stored = input::parse_stored(text, &configuration.display().to_string())?.input.run;
    let told = |(key, value): &(String, String)| {
        warn(format_args!("{key} = {value:?} is what the stored input says; --set changes it"));
    };
    paths_of(text).iter().for_each(told);
    let start = std::path::absolute(configuration).unwrap_or_else(|_| configuration.to_owned());
    let start = Value::from(start.display().to_string());
    let name = twig.name.clone().unwrap_or_else(|| stored.name.clone());
    let own = || {
        let stream = twig.stream.as_ref().or(stored.stream.as_ref());
        let from = format!("{} {:?} {name} {stream:?}", stored.seed, header.links_checksum);
        seed_of(&from, &[streams::seeds(&stored.ensembles), vec![stored.seed]].concat())
    };
    let mut set = vec![
        format!("run.name={}", Value::from(&name)),
        format!("run.seed={}", twig.seed.unwrap_or_else(own)),
        format!("run.start={start}"),
    ];
    set.extend(twig.stream.iter().map(|stream| format!("run.stream={}", Value::from(stream))));
    set.extend(draft.set.iter().cloned());
    let origin = format!(
        "# A branch of the chain '{}' after trajectory {}: links_checksum {:016x}, written by {}.\n",
        stored.chain_name(),
        header.trajectory.unwrap_or_default(),
        header.links_checksum.unwrap_or_default(),
        header.program.as_deref().unwrap_or("an unknown program"),
    );
    let given = draft.set.iter().find_map(|change| change.strip_prefix("run.seed=")?.trim().parse().ok());
    if given.or(twig.seed) == Some(stored.seed) {
        warn(format_args!(
            "run.seed = {} is that of the stored input: both chains draw the same random numbers, and are correlated",
            stored.seed
        ));
    }
    let kept = stored.thermalisation;
    if kept > 0 && !draft.set.iter().any(|change| change.starts_with("run.thermalisation")) {
        warn(format_args!(
            "thermalisation = {kept} is that of the stored input: --set run.thermalisation=N gives another"
        ));
    }
    finish(&(origin + text), &Draft { set, ..draft.clone() })
}

/// The keys of an input that name files or folders of whoever wrote it, and are none of this chain's own making.
fn paths_of(text: &str) -> Vec<(String, String)> {
    fn collect(table: &dyn TableLike, prefix: &str, found: &mut Vec<(String, String)>) {
        for (key, item) in table.iter() {
            let name = format!("{prefix}{key}");
            if let (true, Some(value)) = (["ensembles", "lfn", "file"].contains(&key), item.as_str()) {
                found.push((name, value.to_owned()));
            } else if let Some(inner) = item.as_table_like() {
                collect(inner, &format!("{name}."), found);
            } else if let Some(list) = item.as_array_of_tables() {
                list.iter().zip(0..).for_each(|(inner, n)| collect(inner, &format!("{name}.{n}."), found));
            }
        }
    }
    let mut found = Vec::new();
    if let Ok(document) = text.parse::<DocumentMut>() {
        collect(document.as_table(), "", &mut found);
    }
    found
}

/// A seed that follows from a text and is not one of `taken`. Chains of one seed draw the same momenta and pseudofermions, and are
/// correlated whatever they start from; so are two branches of one configuration, if they have the same.
fn seed_of(text: &str, taken: &[u64]) -> u64 {
    let mut numbered = (0_u64..).map(|n| u64::from(crc32fast::hash(format!("{n} {text}").as_bytes())));
    numbered.find(|seed| !taken.contains(seed)).expect("few seeds are taken")
}

/// Makes the changes, checks the input, also beside the chains that are there, and writes it.
fn finish(text: &str, draft: &Draft) -> Result<(), AppError> {
    let mut document: DocumentMut =
        text.parse().map_err(|error| AppError::Refused(format!("the input is no TOML: {error}")))?;
    for change in &draft.set {
        set(&mut document, change).map_err(|what| AppError::Refused(format!("--set {change}: {what}")))?;
    }
    let text = document.to_string();
    let name = draft.write.as_ref().map_or_else(|| "the input".to_owned(), |path| path.display().to_string());
    let loaded = input::parse_stored(&text, &name)?;
    loaded.warnings.iter().for_each(warn);
    if loaded.input.run.stream.is_some() {
        // The folder may be another's, or be set in order before the run.
        match streams::judge(&loaded.input, true) {
            Ok(warnings) => warnings.iter().for_each(warn),
            Err(refused) => warn(format_args!("a run would be refused: {refused}")),
        }
    }
    let Some(path) = &draft.write else { return say(text.trim_end()) };
    files::require_new(path, draft.force)?;
    io::write_text(path, &text)?;
    say(path.display())
}

/// Sets one key of a document, or a whole table: `parallel={threads=1}`. Tables that are not there are made.
fn set(document: &mut DocumentMut, change: &str) -> Result<(), String> {
    let (key, value) = change.split_once('=').ok_or("expected KEY=VALUE")?;
    let mut value: Value = value.trim().parse().unwrap_or_else(|_| Value::from(value.trim()));
    let names: Vec<&str> = key.trim().split('.').collect();
    let (key, tables) = names.split_last().ok_or("expected KEY=VALUE")?;
    if tables.is_empty() && !value.is_inline_table() {
        return Err("expected a key with its table, as run.seed".to_owned());
    }
    let mut item: &mut Item = document.as_item_mut();
    for name in tables {
        item = match name.parse::<usize>() {
            Ok(place) => item.get_mut(place).ok_or_else(|| format!("there is no table '{name}'"))?,
            Err(_) => {
                let table = item.as_table_like_mut().ok_or_else(|| format!("there is no table '{name}'"))?;
                // One within which there are tables alone is not written itself.
                let mut new = Table::new();
                new.set_implicit(true);
                table.entry(name).or_insert(Item::Table(new))
            }
        };
    }
    let path = tables.join(".");
    let table = item.as_table_like_mut().ok_or_else(|| format!("'{path}' is no table"))?;
    // Comments behind a value stay.
    if let Some(old) = table.get(key).and_then(Item::as_value) {
        *value.decor_mut() = old.decor().clone();
    }
    let item = match value {
        Value::InlineTable(inline) if table.get(key).is_none_or(Item::is_table) => {
            Item::Table(inline.into_table())
        }
        value => Item::Value(value),
    };
    table.insert(key, item);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_of_the_folder_can_be_had() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("inputs");
        let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> =
            names.filter_map(|name| name.strip_suffix(".toml").map(String::from)).collect();
        names.sort();
        let mut own: Vec<&str> = INPUTS.iter().map(|(name, _)| *name).collect();
        own.sort_unstable();
        assert_eq!(own, names);
    }

    #[test]
    fn keys_are_set_where_they_are() {
        let text = "[run]\nname = \"a\" # mine\n[[hmc.level]]\nsteps = 1\n[[hmc.level]]\nsteps = 2\n";
        let mut document: DocumentMut = text.parse().unwrap();
        for change in ["run.name=b-c", "run.start=\"./x.h5\"", "hmc.level.1.steps=5"] {
            set(&mut document, change).unwrap();
        }
        let expected = "[run]\nname = \"b-c\" # mine\nstart = \"./x.h5\"\n[[hmc.level]]\nsteps = 1\n[[hmc.level]]\nsteps = 5\n";
        assert_eq!(document.to_string(), expected);
        for change in ["parallel.threads=1", "a.b.c=2", "gauge={beta=5.7}", "parallel.device=cpu"] {
            set(&mut document, change).unwrap();
        }
        let made = "\n[parallel]\nthreads = 1\ndevice = \"cpu\"\n\n[a.b]\nc = 2\n\n[gauge]\nbeta = 5.7\n";
        assert_eq!(document.to_string(), format!("{expected}{made}"));
        for (change, told) in [
            ("run", "KEY=VALUE"),
            ("run=1", "with its table"),
            ("hmc.level.7.steps=1", "no table '7'"),
            ("run.name.x=1", "is no table"),
        ] {
            assert!(set(&mut document, change).unwrap_err().contains(told), "{change}");
        }
    }
}
