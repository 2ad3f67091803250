//! Archives whose bytes depend on their files only.

use std::io::Write;

use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

use crate::Result;

/// A file of a package.
#[derive(Clone)]
pub(crate) struct File {
    /// Path without the leading slash: `usr/bin/loadline`.
    pub(crate) path: String,
    pub(crate) mode: u32,
    pub(crate) bytes: Vec<u8>,
}

impl File {
    /// A file that all may read.
    pub(crate) fn data(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> File {
        File { path: path.into(), mode: 0o644, bytes: bytes.into() }
    }
}

/// An archive of files under `prefix`, in order of their names, with their directories. All belong to root and are as
/// old as `epoch` [s since 1970].
pub(crate) fn tar(files: &[File], prefix: &str, epoch: u64) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut made = std::collections::BTreeSet::new();
    let mut sorted: Vec<&File> = files.iter().collect();
    sorted.sort_by(|a, b| a.path.cmp(&b.path));
    for file in sorted {
        let path = format!("{prefix}/{}", file.path);
        for (end, _) in path.match_indices('/') {
            let directory = format!("{}/", &path[..end]);
            if made.insert(directory.clone()) {
                archive.append_data(&mut header(tar::EntryType::Directory, 0o755, 0, epoch), directory, &[][..])?;
            }
        }
        let size = u64::try_from(file.bytes.len())?;
        archive.append_data(&mut header(tar::EntryType::Regular, file.mode, size, epoch), path, &file.bytes[..])?;
    }
    Ok(archive.into_inner()?)
}

fn header(kind: tar::EntryType, mode: u32, size: u64, epoch: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(epoch);
    header.set_uid(0);
    header.set_gid(0);
    header
}

/// Compressed bytes, without a time or a name in them.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(bytes)?;
    Ok(gzip.finish()?)
}

/// SHA-256 as hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}
