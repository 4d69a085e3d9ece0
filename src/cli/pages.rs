//! What is made of the command line's own description: completions of shells, and the manual page.

use super::Cli;
use clap::CommandFactory;
use clap_complete::{Shell, generate};
use clap_mangen::Man;
use hmc::app::{self, AppError};

/// Prints the completions of a shell.
pub(super) fn completions(shell: Shell) -> Result<(), AppError> {
    let mut text = Vec::new();
    generate(shell, &mut Cli::command(), "hmc", &mut text);
    app::say_text(&text)
}

/// Prints the manual page of the program, or that of a command.
pub(super) fn manual(command: Option<&str>) -> Result<(), AppError> {
    let mut all = Cli::command();
    all.build();
    let page = match command {
        None => all,
        Some(name) => {
            let found = all.find_subcommand(name).cloned();
            found.ok_or_else(|| {
                AppError::Refused(format!("man: there is no command '{name}'; see hmc --help"))
            })?
        }
    };
    let mut text = Vec::new();
    Man::new(page).render(&mut text).map_err(AppError::Output)?;
    app::say_text(&text)
}
