//! The program. Exit codes: 0 done, 2 wrong input, 130 after a second SIGINT, 1 anything else.

mod cli;

use hmc::app;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::parse();
    app::report_crashes();
    let ranks = match app::start_ranks() {
        Ok(ranks) => ranks,
        Err(code) => return ExitCode::from(code),
    };
    app::report_crashes_of(&*ranks);
    let work = std::panic::AssertUnwindSafe(|| app::guard(&*ranks, || cli::perform(cli, &ranks)));
    let code = std::panic::catch_unwind(work).unwrap_or_else(|_| {
        if ranks.size() > 1 {
            ranks.abort(1);
        }
        1
    });
    ExitCode::from(code)
}
