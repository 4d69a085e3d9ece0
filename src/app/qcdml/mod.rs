//! `hmc qcdml`: an ensemble and its configurations in the words of ILDG's catalogues, QCDml 2.0.
//!
//! - `action`: the physics of an input
//! - `configuration`: one configuration
//!
//! `QCDmlEnsemble2.0.0.xsd` and `QCDmlConfig2.0.0.xsd` say what is there in which order. What a chain does not know, such as
//! names of people and the licence, comes from the command line.

mod action;
mod configuration;

use crate::app::AppError;
use crate::app::chain::jobs;
use crate::app::chain::kept::{Kept, kept};
use crate::app::chain::streams::require_chain;
use crate::app::commands::files::require_new;
use crate::app::output::{say, warn};
use crate::hmc::Scheme;
use crate::input::Input;
use crate::io::{self, Element, Format};
use std::fs;
use std::path::{Path, PathBuf};

const ENSEMBLE: &str = "http://www.lqcd.org/ildg/QCDml/ensemble2.0";

/// What `hmc qcdml` is told.
#[derive(Clone, Debug)]
pub struct Qcdml {
    /// The folder of the ensemble.
    pub folder: PathBuf,
    /// The name of the ensemble in the catalogue, `mc://GRID/PATH`.
    pub uri: String,
    /// The collaboration.
    pub collaboration: String,
    /// The project.
    pub project: String,
    /// Who made the configurations.
    pub participant: String,
    /// Where that person works, and where the machine stands.
    pub institution: String,
    /// The address of the licence.
    pub license: String,
    /// The machine; otherwise the host of the job.
    pub machine: Option<String>,
    /// Tells chains of one ensemble apart; otherwise the stream, else 1.
    pub series: Option<String>,
    /// Where to write; otherwise `qcdml` in the folder.
    pub out: Option<PathBuf>,
    /// Overwrite what is there.
    pub force: bool,
}

impl Qcdml {
    fn refuse_nonsense(&self) -> Result<(), AppError> {
        let rest = self.uri.strip_prefix("mc://").and_then(|rest| rest.split_once('/'));
        let is_uri = rest.is_some_and(|(grid, path)| !grid.is_empty() && !path.is_empty())
            && self.uri.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_uri {
            let what = format!("--uri: expected mc://GRID/PATH without spaces, found '{}'", self.uri);
            return Err(AppError::Refused(what));
        }
        let mut texts = vec![
            ("collaboration", &self.collaboration),
            ("project", &self.project),
            ("participant", &self.participant),
            ("institution", &self.institution),
            ("license", &self.license),
        ];
        texts.extend(self.series.iter().map(|series| ("series", series)));
        match texts.into_iter().find(|(_, text)| text.trim().is_empty()) {
            Some((name, _)) => Err(AppError::Refused(format!("--{name}: the text is empty"))),
            None => Ok(()),
        }
    }

    /// A time, and who is named with it.
    fn event(&self, action: &str, date: &str) -> Element {
        let who = [Element::text("name", &self.participant), Element::text("institution", &self.institution)];
        Element::of(
            "archiveEvent",
            [
                Element::text("revisionAction", action),
                Element::of("participant", who),
                Element::text("date", date),
            ],
        )
    }
}

/// `hmc qcdml`: writes `ensemble.xml`, and a file for each configuration that the chain has as an ILDG file.
///
/// # Errors
/// The folder is no ensemble's or has no ILDG files, QCDml has no words for its action, a file is there without `force`, is
/// damaged, or cannot be written.
pub fn qcdml(told: &Qcdml) -> Result<(), AppError> {
    told.refuse_nonsense()?;
    require_chain(&told.folder, "hmc qcdml")?;
    let inputs = kept(&told.folder);
    let Some(input) = inputs.iter().rev().find_map(|kept| kept.input.as_ref()) else {
        return Err(AppError::Refused(format!(
            "{}: no folder of an ensemble: it has no run.toml that this version can read",
            told.folder.display()
        )));
    };
    let files = ildg_files(&told.folder)?;
    let out = told.out.clone().unwrap_or_else(|| told.folder.join("qcdml"));
    let place = |name: &str| out.join(name).with_extension("xml");
    let ensemble = ensemble(told, input)?.document(ENSEMBLE);
    for path in [place("ensemble")].into_iter().chain(files.iter().map(|(_, path)| place(&stem(path)))) {
        require_new(&path, told.force)?;
    }
    let failed = |source| AppError::Folder { path: out.clone(), action: "make the folder", source };
    fs::create_dir_all(&out).map_err(failed)?;
    let jobs = jobs::recorded(&told.folder);
    let mut is_local = false;
    for (number, path) in &files {
        let in_force = |kept: &&Kept| kept.after < *number;
        let own = inputs.iter().rev().find(in_force).and_then(|kept| kept.input.as_ref());
        let found = configuration::Configuration::read(*number, path, input.extents)?;
        is_local |= found.is_local();
        io::write_text(&place(&stem(path)), &found.document(told, own.unwrap_or(input), &jobs))?;
    }
    io::write_text(&place("ensemble"), &ensemble)?;
    if is_local {
        warn(
            "the logical names lfn://hmc/... are local: a catalogue wants those of a grid (lfn in [run], hmc convert --lfn)",
        );
    }
    let count = files.len();
    say(format_args!(
        "{}: the ensemble and {count} configuration{}",
        out.display(),
        if count == 1 { "" } else { "s" }
    ))
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The trajectories and ILDG files of a chain.
fn ildg_files(folder: &Path) -> Result<Vec<(u64, PathBuf)>, AppError> {
    let entries = fs::read_dir(folder.join(Format::Ildg.ending())).into_iter().flatten().flatten();
    let number = |path: &Path| {
        let number = stem(path).strip_prefix("cfg_")?.parse().ok()?;
        (path == io::export_path(folder, Format::Ildg, number)).then_some(number)
    };
    let mut files: Vec<(u64, PathBuf)> =
        entries.filter_map(|entry| Some((number(&entry.path())?, entry.path()))).collect();
    files.sort();
    if files.is_empty() {
        return Err(AppError::Refused(format!(
            "{}: has no ILDG files; save_format = \"ildg\" in [run] makes them when the run resumes",
            folder.display()
        )));
    }
    Ok(files)
}

/// `<markovChain>`
fn ensemble(told: &Qcdml, input: &Input) -> Result<Element, AppError> {
    let management = [
        Element::text("collaboration", &told.collaboration),
        Element::text("projectName", &told.project),
        Element::text("ensembleLabel", &input.run.name),
        // Whoever adds it to a catalogue adds the event.
        Element::of("archiveHistory", []),
    ];
    Ok(Element::of(
        "markovChain",
        [
            Element::text("markovChainURI", &told.uri),
            Element::of("management", management),
            Element::of("license", [Element::text("licenseURI", &told.license)]),
            action::physics(input)?,
            algorithm(input),
        ],
    ))
}

/// `<algorithm>`: exact, for the Metropolis step decides; the trajectories of the thermalisation are no configurations of the
/// ensemble's distribution anyway.
fn algorithm(input: &Input) -> Element {
    let (name, glossary, reference) = if input.fermions.iter().any(|fermion| fermion.is_rational()) {
        ("RHMC", "https://arxiv.org/abs/hep-lat/0309084", "Nucl. Phys. B Proc. Suppl. 129 (2004) 850")
    } else {
        ("HMC", "https://doi.org/10.1016/0370-2693(87)91197-X", "Phys. Lett. B 195 (1987) 216")
    };
    Element::of(
        "algorithm",
        [
            Element::text("name", name),
            Element::text("glossary", glossary),
            Element::text("reference", reference),
            Element::text("exact", true),
            Element::text("reweightingNeeded", false),
            parameters(input),
        ],
    )
}

/// What of an input makes trajectories: lengths, integrators, steps. Of a chain that was tuned, those of this input.
fn parameters(input: &Input) -> Element {
    let mut all = vec![("trajectoryLength".to_owned(), input.hmc.tau.to_string())];
    all.push(("thermalisation".to_owned(), input.run.thermalisation.to_string()));
    for (n, (level, terms)) in input.hmc.levels.iter().zip(&input.hmc.terms).enumerate() {
        let scheme = match level.scheme {
            Scheme::Leapfrog => "leapfrog",
            Scheme::Omelyan2 { .. } => "2mn",
            Scheme::Omelyan2Position { .. } => "2mn-position",
            Scheme::Omelyan4 => "omf4",
            Scheme::ForceGradient => "force-gradient",
            Scheme::ThreeToOne => "3g1f",
        };
        all.push((format!("level{n}.integrator"), scheme.to_owned()));
        all.push((format!("level{n}.steps"), level.steps.to_string()));
        all.push((format!("level{n}.terms"), terms.join(" ")));
    }
    let one = |(name, value): (String, String)| {
        Element::of("parameter", [Element::text("name", name), Element::text("value", value)])
    };
    Element::of("parameters", all.into_iter().map(one))
}
