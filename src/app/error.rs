//! Errors of the program. Exit codes: 0 done, 2 wrong input, 1 anything else.

use crate::action::ActionError;
use crate::comm::CommError;
use crate::config::InputError;
use crate::device::DeviceError;
use crate::family::FamilyError;
use crate::field::FieldError;
use crate::hmc::HmcError;
use crate::io::IoError;
use crate::lattice::PartitionError;
use crate::measure::MeasureError;
use crate::operator::OperatorError;
use crate::quark::QuarkError;
use crate::solver::SolverError;
use std::path::PathBuf;

/// Why the program ends before its work is done.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The input is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The input is valid but not for this run: it belongs to another ensemble, or this machine cannot run it.
    #[error("{0}")]
    Refused(String),
    /// A file or folder cannot be used.
    #[error("{}: cannot {action}: {source}", path.display())]
    Folder {
        /// The file or folder.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Threads cannot be started.
    #[error(
        "cannot start {count} threads: {message}; look at the limits on address space and processes (ulimit -v, -u), and at \
         'threads' in [parallel]"
    )]
    Threads {
        /// Their number.
        count: usize,
        /// The system's reason.
        message: String,
    },
    /// A limit of the system.
    #[error("{0}")]
    Limit(String),
    /// What `--check` found to prevent a run.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\nerror: "))]
    Several(Vec<AppError>),
    /// Some files could not be measured; each was reported.
    #[error("{failed} of {all} files were not measured")]
    Files {
        /// Their number.
        failed: usize,
        /// The number of files.
        all: usize,
    },
    /// A file failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A field failed.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A trajectory failed.
    #[error("trajectory {number}: {source}")]
    Trajectory {
        /// Its number.
        number: u64,
        /// The reason.
        source: HmcError,
    },
    /// A trajectory was walked twice, and something had other bits the second time.
    #[error(
        "trajectory {number} is not what it should be: {what}. A GPU, a node, its memory or a wire has a fault. Nothing of the \
         trajectory is kept; the chain stays at its last checkpoint. Resume on other nodes, and test these"
    )]
    Unverified {
        /// Its number.
        number: u64,
        /// What differs.
        what: String,
    },
    /// The self-test found a device with other bits.
    #[error(
        "the self-test of the devices has found a fault:\n  {0}\nLeave these nodes out, and have them tested. With \
         self_test = \"off\" in [parallel] a run begins without the test"
    )]
    Faulty(String),
    /// A trajectory from a state failed.
    #[error("replay: {0}")]
    Replay(HmcError),
    /// A measurement failed.
    #[error("measurement: {0}")]
    Measure(#[from] MeasureError),
    /// An operator failed.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A term of the Hamiltonian failed.
    #[error(transparent)]
    Action(#[from] ActionError),
    /// Communication between ranks failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// The lattice cannot be divided in this way.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// Output cannot be written.
    #[error("standard output: {0}")]
    Output(std::io::Error),
    /// A comparison found a difference.
    #[error("{0}")]
    Differs(String),
}

/// The application itself uses quarks only in measurements.
impl From<QuarkError> for AppError {
    fn from(error: QuarkError) -> Self {
        Self::Measure(error.into())
    }
}

impl AppError {
    /// The program's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Input(_)
            | Self::Refused(_)
            | Self::Partition(_)
            | Self::Device(DeviceError::NoCuda)
            | Self::Measure(MeasureError::Refused(_)) => 2,
            Self::Several(errors) => errors.iter().map(Self::exit_code).max().unwrap_or(1),
            _ if self.is_size() => 2,
            _ => 1,
        }
    }

    /// Whether the lattice is larger than kernels count, wherever that was found.
    fn is_size(&self) -> bool {
        let field = match self {
            Self::Device(DeviceError::TooMany { .. }) => return true,
            Self::Field(error) => Some(error),
            Self::Trajectory { source, .. } | Self::Replay(source) => of_hmc(source),
            Self::Measure(error) => of_measure(error),
            Self::Operator(error) => of_operator(error),
            Self::Action(error) => of_action(error),
            _ => None,
        };
        matches!(field, Some(FieldError::Partition(_) | FieldError::Device(DeviceError::TooMany { .. })))
    }
}

fn of_operator(error: &OperatorError) -> Option<&FieldError> {
    if let OperatorError::Field(error) = error { Some(error) } else { None }
}

fn of_solver(error: &SolverError) -> Option<&FieldError> {
    if let SolverError::Field(error) = error { Some(error) } else { None }
}

fn of_action(error: &ActionError) -> Option<&FieldError> {
    match error {
        ActionError::Operator(error) => of_operator(error),
        ActionError::Solver(error) => of_solver(error),
        _ => None,
    }
}

fn of_hmc(error: &HmcError) -> Option<&FieldError> {
    match error {
        HmcError::Term { source, .. } => of_action(source),
        HmcError::Field(error) => Some(error),
        _ => None,
    }
}

fn of_measure(error: &MeasureError) -> Option<&FieldError> {
    match error {
        MeasureError::Field(error) => Some(error),
        MeasureError::Operator(error) => of_operator(error),
        MeasureError::Solver(error) => of_solver(error),
        _ => None,
    }
}

impl From<FamilyError> for AppError {
    fn from(error: FamilyError) -> Self {
        match error {
            FamilyError::Field(error) => Self::Field(error),
            FamilyError::Action(error) => Self::Action(error),
            FamilyError::Refused(why) => Self::Refused(why),
        }
    }
}
