//! `[fermion.NAME.rational]` and `[fermion.NAME.pseudofermion.rational]` of staggered quarks: the source of a
//! pseudofermion's rational functions.

use crate::config::forms::PATH;
use crate::config::key::{Absent, Bound, Change, Key, integer, number};
use crate::config::raw::Table;
use crate::config::section::Section;
use crate::family::keys::{self, FORCE_ERROR};
use crate::io::read_plain;
use crate::math::{MilcPseudofermion, milc_rationals};
use std::path::PathBuf;

/// A lower bound on the greatest eigenvalue of -D^2.
const LEAST_LAMBDA_MAX: f64 = 1.0;
const MOST_LAMBDA_MAX: f64 = 1e4;
/// Bytes of a file of rational functions, much more than any has.
const LARGEST_FILE: u64 = 16 << 20;

/// `[fermion.NAME.pseudofermion.rational]`, with what it inherits from `[fermion.NAME.rational]`.
#[derive(Clone, Debug, PartialEq)]
pub enum RationalSource {
    /// Made at the start of each job.
    Made {
        /// Upper end of the spectrum of `-D^2`.
        lambda_max: f64,
        /// Greatest relative error of the function of the heat bath.
        heat_bath_error: f64,
        /// Greatest relative error of the function of the action.
        action_error: f64,
        /// Greatest relative error of the function of the force.
        force_error: f64,
        /// Trajectories between measurements of the spectrum's upper end, which enforce it.
        check_every: u64,
    },
    /// Read from a file in MILC's format.
    File {
        /// The file, as given by the user.
        path: PathBuf,
        /// The number of the pseudofermion in the file, from 0.
        index: usize,
        /// The pseudofermion's functions and weight in the file.
        functions: MilcPseudofermion,
        /// As in `Made`.
        check_every: u64,
    },
}

const FILE: Key<PathBuf> = Key::new(
    "file",
    PATH,
    Absent::Means("this or `lambda_max`"),
    Change::Tuning,
    "a file of functions for MILC's RHMC, as its `poly4` makes them",
)
.settled_as("file");
const LAMBDA_MAX: Key<f64> = Key::new(
    "lambda_max",
    number("a positive number", Bound::Without(0.0), Bound::Free),
    Absent::Means("this or `file`"),
    Change::Tuning,
    "upper end of the spectrum of -D^2, 1 at least; enforced, and measured as the `range` of one Wilson flavour is. The \
     lower end is 0",
)
.settled_as("lambda_max");
const HEAT_BATH_ERROR: Key<f64> = Key::new(
    "heat_bath_error",
    keys::ACTION_ERROR.form(),
    Absent::Is("1e-12"),
    Change::Tuning,
    "greatest relative error of the function of the heat bath",
)
.settled_as("heat_bath_error");
const ACTION_ERROR: Key<f64> = Key::new(
    "action_error",
    keys::ACTION_ERROR.form(),
    Absent::Is("1e-12"),
    Change::Tuning,
    "greatest relative error of the function of the action",
)
.settled_as("action_error");
const OWN_FORCE_ERROR: Key<f64> = FORCE_ERROR.settled_as("force_error");
const CHECK_EVERY: Key<u64> = keys::CHECK_EVERY.settled_as("check_every");
const INDEX: Key<usize> = Key::new(
    "index",
    integer(0, 1000),
    Absent::Means("the pseudofermion's place in the list, from 0"),
    Change::Tuning,
    "which pseudofermion of the file; only in the table of a pseudofermion",
)
.settled_as("file");

/// `[fermion.NAME.rational]` and `[fermion.NAME.pseudofermion.rational]`.
pub(crate) const STAGGERED_RATIONAL: Section = Section {
    keys: &[&LAMBDA_MAX, &HEAT_BATH_ERROR, &ACTION_ERROR, &OWN_FORCE_ERROR, &FILE, &INDEX, &CHECK_EVERY],
    tables: &[],
};
/// The keys of the table `rational` of a fermion or a pseudofermion.
pub(super) struct RationalKeys {
    file: Option<File>,
    index: Option<usize>,
    /// `None` if absent, or after a mistake.
    lambda_max: Option<f64>,
    /// Whether the table has `lambda_max`, valid or not.
    has_lambda_max: bool,
    /// The errors of heat bath, action and force.
    errors: [Given; 3],
    /// Whether the table has a key for making functions.
    makes: bool,
    /// 1 by default.
    check_every: u64,
    has_check_every: bool,
}

/// An error, and whether it is from the table or the default.
#[derive(Clone, Copy)]
struct Given {
    error: f64,
    is_own: bool,
}

/// A file, and its pseudofermions; `None` after a mistake.
struct File {
    path: PathBuf,
    list: Option<Vec<MilcPseudofermion>>,
}

impl RationalKeys {
    /// Reads the table.
    pub(super) fn read(table: &mut Table) -> Self {
        const ERRORS: [&Key<f64>; 3] = [&HEAT_BATH_ERROR, &ACTION_ERROR, &OWN_FORCE_ERROR];
        let file = table.get(&FILE).map(|path| read_file(table, path));
        let lambda_max = table.get(&LAMBDA_MAX);
        if let Some(low) = lambda_max.filter(|lambda_max| *lambda_max < LEAST_LAMBDA_MAX) {
            let message = format!(
                "lambda_max: {low:e} is below the spectrum: the greatest eigenvalue of -D^2 is about 4 to 22, of smooth \
                 links the greatest; give a bound above it"
            );
            table.mistake("lambda_max", message);
        }
        if let Some(high) = lambda_max.filter(|lambda_max| *lambda_max > MOST_LAMBDA_MAX) {
            let message = format!(
                "lambda_max: {high:e} is far above the spectrum, and would take far more poles; give a bound near it"
            );
            table.mistake("lambda_max", message);
        }
        let errors =
            ERRORS.map(|key| Given { error: table.get_or(key, None), is_own: table.has(key.name()) });
        let keys = ["lambda_max"].into_iter().chain(ERRORS.map(Key::name));
        let made: Vec<_> = keys.filter(|key| table.has(key)).collect();
        if table.has("file") {
            for key in &made {
                table.mistake(
                    key,
                    format!("{key}: a file's functions cannot be changed; keep one of the two"),
                );
            }
        }
        Self {
            file,
            index: table.get(&INDEX),
            lambda_max,
            has_lambda_max: table.has("lambda_max"),
            errors,
            makes: !made.is_empty(),
            check_every: table.get_or(&CHECK_EVERY, None),
            has_check_every: table.has("check_every"),
        }
    }

    /// The source of the functions of the pseudofermion at `place` in the list, from its own `table` and the
    /// `defaults`.
    pub(super) fn source(&self, table: &mut Table, place: usize, defaults: &Self) -> Option<RationalSource> {
        let check_every = if self.has_check_every { self.check_every } else { defaults.check_every };
        table.keep("check_every", &check_every);
        let inherited = defaults.file.as_ref().filter(|_| !self.makes);
        if table.has("file") || inherited.is_some() {
            let File { path, list } = self.file.as_ref().or(inherited.filter(|_| !table.has("file")))?;
            let list = list.as_ref()?;
            let index = self.index.unwrap_or(place);
            if index >= list.len() {
                let found = list.len();
                let message = format!("index: pseudofermion {index}, from 0, of a file that has {found}");
                table.mistake("index", message);
            }
            let functions = list.get(index)?.clone();
            // The same functions may be in another file.
            table.keep("file", &functions);
            table.kept_elsewhere();
            return Some(RationalSource::File { path: path.clone(), index, functions, check_every });
        }
        if table.has("index") {
            table.mistake("index", "index: it selects a pseudofermion of a 'file', but there is no 'file'");
        }
        if !self.has_lambda_max && !defaults.has_lambda_max {
            let message = "a pseudofermion needs 'lambda_max' or 'file', in its own table 'rational' or in \
                           its fermion's";
            table.mistake("", message);
        }
        let [heat_bath_error, action_error, force_error] = std::array::from_fn(|i| {
            let own = self.errors[i];
            if own.is_own { own.error } else { defaults.errors[i].error }
        });
        let lambda_max = if self.has_lambda_max { self.lambda_max } else { defaults.lambda_max }?;
        table.keep("lambda_max", &lambda_max);
        table.keep("heat_bath_error", &heat_bath_error);
        table.keep("action_error", &action_error);
        table.keep("force_error", &force_error);
        table.kept_elsewhere();
        Some(RationalSource::Made { lambda_max, heat_bath_error, action_error, force_error, check_every })
    }
}

/// The pseudofermions of a file in MILC's format; the key `file` of `table` names it.
fn read_file(table: &Table, path: PathBuf) -> File {
    let bytes = read_plain(&path, LARGEST_FILE).map_err(|error| error.to_string());
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is no text".to_owned()));
    let list = text.and_then(|text| milc_rationals(&text).map_err(|error| error.to_string()));
    let list = list.map_err(|error| table.mistake("file", format!("file: {}: {error}", path.display())));
    File { path, list: list.ok() }
}
