//! Opens the log device that a URL describes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loadline_logwriter::device::file::{FileConfig, FileDevice, FileSync, Via};
use loadline_logwriter::device::{Member, PmemDevice, Replicas, Rule, Standby, open_standby, over_tcp};
use loadline_logwriter::{DeviceError, LogDevice};
use loadline_model::{Finding, Severity};
use loadline_storage::StorageFacts;

use super::wal_url::{Device, WalUrl};
use crate::error::TargetError;
use crate::folder::OwnedFolder;
use crate::relay::Relay;
use crate::storage::free_space;

pub(super) struct Opened {
    pub(super) device: Box<dyn LogDevice>,
    pub(super) description: String,
    pub(super) warnings: Vec<String>,
    pub(super) standby: Option<Arc<Standby>>,
    /// The link to the standby of levels.
    pub(super) relay: Option<Arc<Relay>>,
}

pub(super) fn failed(e: DeviceError) -> TargetError {
    TargetError::Local(e.to_string())
}

/// How long a standby may take to answer, and one of levels, whose link may be slow on purpose.
const TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT_OF_LEVELS: Duration = Duration::from_secs(120);

fn open_copy(address: &WalUrl, folder: &Path) -> Result<Box<dyn LogDevice>, DeviceError> {
    let file_bytes = address.file_bytes;
    let in_files = |sync, direct| {
        let config = FileConfig { file_bytes, sync, direct, ..FileConfig::default() };
        FileDevice::open(folder, &config).map(|d| Box::new(d) as Box<dyn LogDevice>)
    };
    match address.device {
        // Measured (`loadline-bench log-writer`): one job reaches 0.98 to 0.99 of the raw device.
        Device::Best => {
            in_files(FileSync::Dsync, Some(Via::SystemCalls)).or_else(|_| in_files(FileSync::Fdatasync, None))
        }
        Device::Files(sync, direct) => in_files(sync, direct),
        Device::Pmem => PmemDevice::open(folder, file_bytes).map(|d| Box::new(d) as Box<dyn LogDevice>),
    }
}

/// Opens all copies; with `levels` the second is a standby whose rule and distance can be changed.
pub(super) fn open(address: &WalUrl, folders: &[OwnedFolder], levels: bool) -> Result<Opened, TargetError> {
    let copy = |folder: &OwnedFolder| open_copy(address, folder.path()).map_err(failed);
    let opened = |device: Box<dyn LogDevice>, warnings| {
        let description = device.describe();
        Opened { device, description, warnings, standby: None, relay: None }
    };
    match folders {
        [only] => Ok(opened(copy(only)?, Vec::new())),
        [first, second] if levels || address.standby.is_some() => {
            let (own, device) = (copy(first)?, copy(second)?);
            let of_levels = format!(
                "{}, and its standby in {}; their rule is the level of each test",
                own.describe(),
                second.path().display()
            );
            let relay = levels.then(Arc::<Relay>::default);
            let ends = relay.as_ref().map_or_else(over_tcp, |relay| relay.pair());
            let ends = ends.map_err(|e| TargetError::Local(format!("no link to the standby can be made: {e}")))?;
            let (rule, timeout) = match (levels, address.rule) {
                (true, _) => (Rule::Local, TIMEOUT_OF_LEVELS),
                (false, rule) => (rule.unwrap_or(Rule::Both), TIMEOUT),
            };
            let set = open_standby(Member::new(first.path(), own), device, ends, rule, timeout);
            let (set, standby) = set.map_err(failed)?;
            let opened = Opened { standby: Some(Arc::new(standby)), relay, ..opened(Box::new(set), Vec::new()) };
            Ok(if levels { Opened { description: of_levels, ..opened } } else { opened })
        }
        copies => {
            let (what, rule) = match (&address.flash, address.quorum) {
                (Some(_), _) => ("flash log", Rule::Quorum(1)),
                (None, quorum) => ("mirror", quorum.map_or(Rule::All, Rule::Quorum)),
            };
            let member = |folder: &OwnedFolder| copy(folder).map(|device| Member::new(folder.path(), device));
            let set =
                Replicas::open(what, rule, copies.iter().map(member).collect::<Result<_, _>>()?).map_err(failed)?;
            let warnings = set.warnings.clone();
            Ok(opened(Box::new(set), warnings))
        }
    }
}

pub(super) fn filesystem(directory: &Path) -> Finding {
    let (subject, facts) = ("filesystem under the log", StorageFacts::read(directory));
    match facts.map(|facts| (facts.kind.caveat(), facts.storage.filesystem)) {
        Ok((None, _)) => free_space(directory),
        Ok((Some(caveat), kind)) => Finding::new("filesystem", Severity::Warning, subject, kind, caveat),
        Err(e) => Finding::new("filesystem", Severity::Warning, subject, format!("unknown: {e}"), "check it by hand"),
    }
}
