//! How loadline ends.

use std::process::ExitCode;

use loadline_database::{Cause, Refusal, TargetError};
use loadline_load::TestError;
use loadline_run::PlanError;
use loadline_run::plans::NamedPlanError;
use loadline_run::study::StudyError;
use loadline_run::watch::WatchError;
use loadline_store::StoreError;

use crate::secrets;

/// A test failed or is refused, or measuring failed.
pub(crate) const FAILED: u8 = 1;
/// The command line, a plan or a value is wrong; nothing was started.
pub(crate) const USAGE: u8 = 2;
/// The target does not answer, cannot be started or refuses the connection, or the doctor refuses the target.
pub(crate) const TARGET: u8 = 3;
/// Interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Exit code.
    pub(crate) code: u8,
    /// Text for standard error.
    pub(crate) message: String,
}

impl Failure {
    /// A usage error.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { code: USAGE, message: message.into() }
    }

    /// Any other failure of our own.
    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure { code: FAILED, message: message.into() }
    }
}

impl From<NamedPlanError> for Failure {
    fn from(e: NamedPlanError) -> Failure {
        Failure::usage(e.to_string())
    }
}

impl From<PlanError> for Failure {
    fn from(e: PlanError) -> Failure {
        Failure::usage(e.to_string())
    }
}

impl From<TargetError> for Failure {
    fn from(e: TargetError) -> Failure {
        let code = match e {
            TargetError::Usage(_) => USAGE,
            TargetError::Unreachable(_)
            | TargetError::Refused(_)
            | TargetError::Lost(_)
            | TargetError::NoSpace(_)
            | TargetError::Server(Refusal { cause: Cause::Sessions, .. }) => TARGET,
            TargetError::Server(_)
            | TargetError::Statement(_)
            | TargetError::Conflict(_)
            | TargetError::Unsupported(_)
            | TargetError::Local(_) => FAILED,
        };
        Failure { code, message: e.to_string() }
    }
}

impl From<StudyError> for Failure {
    fn from(e: StudyError) -> Failure {
        let message = e.to_string();
        let code = match e {
            StudyError::Plan(_) | StudyError::TooManyJobs { .. } => USAGE,
            StudyError::Target(e) => return e.into(),
            StudyError::Store(e) => return e.into(),
            StudyError::Doctor(_)
            | StudyError::Impossible(_)
            | StudyError::NodesLost(_)
            | StudyError::NoNodeLeft { .. }
            | StudyError::AgentsLost(_) => TARGET,
            StudyError::Interrupted => INTERRUPTED,
            StudyError::Test { source, .. } => match source {
                TestError::Target(e) => Failure::from(e).code,
                TestError::Interrupted => INTERRUPTED,
                TestError::Remote(_) => TARGET,
                TestError::Counters(_) | TestError::Thread { .. } | TestError::Limit(_) => FAILED,
            },
        };
        Failure { code, message }
    }
}

impl From<WatchError> for Failure {
    fn from(e: WatchError) -> Failure {
        match e {
            WatchError::Target(e) => e.into(),
            WatchError::Refused { .. } => Failure::usage(e.to_string()),
            WatchError::Counters(_) => Failure::failed(e.to_string()),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(e: StoreError) -> Failure {
        use StoreError as E;
        let code = match e {
            // What the user named is not what was asked for.
            E::ResultsIsFile(_) | E::BadName(_) | E::Missing(_) | E::NotARun(_) | E::HoldsRuns { .. } => USAGE,
            E::NoSuchTest { .. } | E::Damaged { .. } | E::Newer { .. } => USAGE,
            _ => FAILED,
        };
        Failure { code, message: e.to_string() }
    }
}

/// Prints the failure and returns its exit code.
#[allow(clippy::print_stderr)]
pub(crate) fn show(failure: &Failure) -> ExitCode {
    eprintln!("loadline: {}", secrets::harmless(&failure.message));
    ExitCode::from(failure.code)
}
