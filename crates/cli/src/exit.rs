//! How loadline ends.

use std::io::Write as _;
use std::process::ExitCode;

use loadline_database::{Cause, Refusal, TargetError};
use loadline_live::serve::ServeError;
use loadline_load::TestError;
use loadline_run::PlanError;
use loadline_run::study::StudyError;
use loadline_storage::probe::ProbeError;
use loadline_store::StoreError;

use crate::secrets;

/// A test failed or is refused, or measuring failed.
pub(crate) const FAILED: u8 = 1;
/// The command line, a plan or a value is wrong; nothing was started.
pub(crate) const USAGE: u8 = 2;
/// The target does not answer, cannot be started or refuses the connection, or the doctor refuses the target.
pub(crate) const TARGET: u8 = 3;
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    /// Text for standard error.
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { code: USAGE, message: message.into() }
    }

    /// Any other failure of our own.
    pub(crate) fn failed(message: impl Into<String>) -> Failure {
        Failure { code: FAILED, message: message.into() }
    }
}

/// An error that says how loadline ends.
pub(crate) trait Ends {
    fn code(&self) -> u8;
}

/// The exit code of errors of each type. A [`Failure`] follows from it and from what the error says.
macro_rules! ends {
    ($($error:ty => |$e:pat_param| $code:expr;)*) => {
        $(impl $crate::exit::Ends for $error {
            fn code(&self) -> u8 {
                let $e = self;
                $code
            }
        }

        impl From<$error> for $crate::exit::Failure {
            fn from(e: $error) -> $crate::exit::Failure {
                $crate::exit::Failure { code: $crate::exit::Ends::code(&e), message: e.to_string() }
            }
        })*
    };
}

#[cfg(feature = "hub")]
pub(crate) use ends;

ends! {
    PlanError => |_| USAGE;
    TargetError => |e| match e {
        TargetError::Usage(_) => USAGE,
        TargetError::Unreachable(_)
        | TargetError::Refused(_)
        | TargetError::Lost(_)
        | TargetError::NoSpace(_)
        | TargetError::Server(Refusal { cause: Cause::Sessions, .. }) => TARGET,
        _ => FAILED,
    };
    StudyError => |e| match e {
        StudyError::Plan(_) | StudyError::Objective(_) | StudyError::TooManyJobs { .. } => USAGE,
        StudyError::Target(e) => e.code(),
        StudyError::Store(e) => e.code(),
        StudyError::Doctor(_)
        | StudyError::Impossible(_)
        | StudyError::Lost(_) => TARGET,
        StudyError::Interrupted => INTERRUPTED,
        StudyError::Test { source, .. } => source.code(),
    };
    TestError => |e| match e {
        TestError::Target(e) => e.code(),
        TestError::Interrupted => INTERRUPTED,
        TestError::Remote(_) => TARGET,
        TestError::Counters(_) | TestError::Thread { .. } | TestError::Limit(_) => FAILED,
    };
    StoreError => |e| match e {
        // What the user named is not what was asked for.
        StoreError::ResultsIsFile(_)
        | StoreError::BadName(_)
        | StoreError::Missing(_)
        | StoreError::NotARun(_)
        | StoreError::HoldsRuns { .. }
        | StoreError::NoSuchTest { .. }
        | StoreError::Damaged { .. }
        | StoreError::Newer { .. } => USAGE,
        _ => FAILED,
    };
    ProbeError => |e| match e {
        ProbeError::Option { .. } => USAGE,
        ProbeError::NotADirectory(_)
        | ProbeError::ReadOnly(_)
        | ProbeError::NoSpace { .. }
        | ProbeError::Device(_) => TARGET,
        ProbeError::Interrupted => INTERRUPTED,
        _ => FAILED,
    };
    ServeError => |e| if matches!(e, ServeError::Failed(_)) { FAILED } else { USAGE };
}

pub(crate) fn show(failure: &Failure) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "loadline: {}", secrets::harmless(&failure.message));
    ExitCode::from(failure.code)
}
