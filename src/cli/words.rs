//! A first word that is neither a command nor a file: what may have been meant.

use super::Cli;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use std::ffi::OsStr;
use std::path::Path;

/// Words that users of other programs try, and what does it here.
const OTHERS: [(&str, &str); 6] = [
    ("check", "hmc --check RUN.toml"),
    ("resume", "hmc RUN.toml, which resumes a chain by itself"),
    ("start", "hmc RUN.toml"),
    ("plot", "hmc report FOLDER"),
    ("version", "hmc --version"),
    ("list", "hmc init, or hmc status FOLDER"),
];

/// The command line, or the end of the program with what is wrong with it.
pub fn parse() -> Cli {
    if let Some(word) = std::env::args_os().nth(1).as_deref().and_then(OsStr::to_str)
        && let Some(told) = stray(word)
    {
        Cli::command().error(ErrorKind::InvalidSubcommand, told).exit();
    }
    Cli::parse()
}

/// What to say of a first word that is no option, command or file, and does not look like a file.
fn stray(word: &str) -> Option<String> {
    let all = Cli::command();
    let commands: Vec<&str> =
        all.get_subcommands().map(|command| command.get_name()).chain(["help"]).collect();
    let looks_like_file = word.starts_with('-') || word.contains(['.', '/']) || Path::new(word).exists();
    if word.is_empty() || looks_like_file || commands.contains(&word) {
        return None;
    }
    let near = commands.iter().map(|command| (strsim::damerau_levenshtein(word, command), command));
    let meant = match OTHERS.iter().find(|(other, _)| *other == word) {
        Some((_, instead)) => format!("; say {instead}"),
        None => match near.min().filter(|(distance, _)| *distance <= 1 + word.len() / 4) {
            Some((_, command)) => format!("; did you mean '{command}'?"),
            None => "; hmc --help lists the commands".to_owned(),
        },
    };
    Some(format!("there is no command or file '{word}'{meant}"))
}
