//! Opens the log device that a URL describes.

use std::path::Path;
use std::time::Duration;

use loadline_logwriter::device::file::{FileConfig, FileDevice, FileSync, Via};
use loadline_logwriter::device::{Member, PmemDevice, Receiver, Replicas, Rule, open_standby};
use loadline_logwriter::{DeviceError, LogDevice};
use loadline_model::{Finding, Severity};
use loadline_storage::StorageFacts;

use super::wal_url::{Device, WalUrl};
use crate::error::TargetError;
use crate::folder::OwnedFolder;
use crate::storage::free_space;

/// An open log device, with warnings for the user.
pub(super) struct Opened {
    pub(super) device: Box<dyn LogDevice>,
    pub(super) warnings: Vec<String>,
    /// The standby; it stops when this is dropped.
    pub(super) standby: Option<Receiver>,
}

pub(super) fn failed(e: DeviceError) -> TargetError {
    TargetError::Local(e.to_string())
}

/// How long a standby on this machine may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) fn open_copy(address: &WalUrl, folder: &Path) -> Result<Box<dyn LogDevice>, DeviceError> {
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

/// Opens all copies that the URL names.
pub(super) fn open(address: &WalUrl, folders: &[OwnedFolder]) -> Result<Opened, TargetError> {
    let member = |folder: &OwnedFolder| {
        open_copy(address, folder.path()).map(|device| Member::new(folder.path(), device)).map_err(failed)
    };
    let set = |set: Replicas, standby| {
        let warnings = set.warnings.clone();
        Ok(Opened { device: Box::new(set), warnings, standby })
    };
    match (folders, &address.standby) {
        ([only], _) => {
            let device = open_copy(address, only.path()).map_err(failed)?;
            Ok(Opened { device, warnings: Vec::new(), standby: None })
        }
        ([first, second], Some(_)) => {
            let device = open_copy(address, second.path()).map_err(failed)?;
            let receiver = Receiver::start(device, None).map_err(failed)?;
            let rule = address.rule.unwrap_or(Rule::Both);
            let (replicas, _) = open_standby(member(first)?, receiver.address(), rule, TIMEOUT).map_err(failed)?;
            set(replicas, Some(receiver))
        }
        (copies, _) => {
            let (what, rule) = match (&address.flash, address.quorum) {
                (Some(_), _) => ("flash log", Rule::Quorum(1)),
                (None, quorum) => ("mirror", quorum.map_or(Rule::All, Rule::Quorum)),
            };
            let members = copies.iter().map(member).collect::<Result<_, _>>()?;
            set(Replicas::open(what, rule, members).map_err(failed)?, None)
        }
    }
}

/// The doctor's finding on the filesystem under `directory`.
pub(super) fn filesystem(directory: &Path) -> Finding {
    match StorageFacts::read(directory) {
        Ok(facts) => match facts.kind.caveat() {
            Some(caveat) => Finding::new(
                "filesystem",
                Severity::Warning,
                "filesystem under the log",
                facts.storage.filesystem.as_str(),
                caveat,
            ),
            None => free_space(directory),
        },
        Err(e) => {
            Finding::new("filesystem", Severity::Warning, "filesystem", format!("unknown: {e}"), "check it by hand")
        }
    }
}
