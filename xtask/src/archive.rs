//! Archives whose bytes depend on their files only.

use std::fs;
use std::path::Path;
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::build::Source;
use crate::{Result, command};

/// An archive of a folder's files under `prefix`, whose bytes depend on the files only. All belong to root.
pub(crate) fn tar(source: &Source, folder: &Path, prefix: &str) -> Result<Vec<u8>> {
    let mut tar = Command::new("tar");
    tar.args([
        "--create", "--sort=name", "--format=gnu", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX",
    ]);
    tar.arg(format!("--mtime=@{}", source.epoch)).arg(format!("--transform=s,^\\.,{prefix},"));
    command::output(tar.arg("--directory").arg(folder).arg("."))
}

/// Compressed bytes, without a time or a name in them.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let file = tempfile::NamedTempFile::new()?;
    fs::write(file.path(), bytes)?;
    command::output(Command::new("gzip").args(["--no-name", "--best", "--stdout"]).arg(file.path()))
}

/// SHA-256 as hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}
