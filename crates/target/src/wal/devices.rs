//! From a URL's words to a log device.

use std::path::Path;

use loadline_logwriter::LogDevice;
use loadline_logwriter::device::file::{FileConfig, FileDevice, FileSync};
use loadline_model::{Finding, Severity};

use super::address::{Address, Device};
use super::place::Folder;
use crate::error::TargetError;

/// A device that is open, and what a user should know of it.
pub(super) struct Opened {
    pub(super) device: Box<dyn LogDevice>,
    pub(super) warnings: Vec<String>,
}

fn failed(path: &Path) -> impl Fn(loadline_logwriter::DeviceError) -> TargetError + '_ {
    move |e| TargetError::Local(format!("no log can be kept in {}: {e}", path.display()))
}

/// One copy.
fn one(address: &Address, folder: &Path) -> Result<Box<dyn LogDevice>, TargetError> {
    let file = |sync| {
        let config = FileConfig { file_bytes: address.file_bytes, sync, ..FileConfig::default() };
        FileDevice::open(folder, &config).map(|d| Box::new(d) as Box<dyn LogDevice>).map_err(failed(folder))
    };
    match address.device {
        Device::Fdatasync => file(FileSync::Fdatasync),
        Device::Dsync => file(FileSync::Dsync),
        Device::Direct | Device::Pmem => Err(TargetError::Unsupported("not yet".into())),
    }
}

/// Opens what the URL names.
pub(super) fn open(address: &Address, folders: &[Folder]) -> Result<Opened, TargetError> {
    let first = folders.first().ok_or_else(|| TargetError::Local("there is no folder for the log".into()))?;
    Ok(Opened { device: one(address, first.path())?, warnings: Vec::new() })
}

/// What the doctor says about the filesystem under `directory`.
pub(super) fn filesystem(directory: &Path) -> Finding {
    match nix::sys::statfs::statfs(directory) {
        Ok(s) if s.filesystem_type() == nix::sys::statfs::TMPFS_MAGIC => Finding::new(
            "log-on-tmpfs",
            Severity::Warning,
            "filesystem under the log",
            "tmpfs",
            "it is no disk: the figures are those of memory",
        ),
        Ok(s) => {
            let free = s.blocks_available().saturating_mul(s.block_size().unsigned_abs());
            Finding::new("free-space", Severity::Ok, "free space", loadline_model::format::bytes(free as f64), "")
        }
        Err(e) => {
            Finding::new("free-space", Severity::Warning, "free space", format!("unknown: {e}"), "check it by hand")
        }
    }
}
