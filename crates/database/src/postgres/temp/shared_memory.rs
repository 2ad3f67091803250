//! The shared memory that a killed server leaves: one System V segment, and the POSIX segments
//! (`/dev/shm/PostgreSQL.NUMBER`) that its control segment lists.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::temp::owner::Owner;
use crate::temp::user::ServerUser;

/// The POSIX shared memory files that the server maps (`/dev/shm/PostgreSQL.…`), read as the server's user; empty if that
/// fails.
pub(super) fn mapped_files(pid: Pid, user: &ServerUser) -> Vec<PathBuf> {
    let output = user.command("cat", Signal::SIGKILL).arg(format!("/proc/{pid}/maps")).output();
    let maps = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let mut files: Vec<PathBuf> = maps
        .lines()
        .filter_map(|line| line.find(FILES).map(|at| PathBuf::from(line[at..].trim_end())))
        .filter(|path| is_segment(path))
        .collect();
    files.sort();
    files.dedup();
    files
}

const FILES: &str = "/dev/shm/PostgreSQL.";

fn is_segment(path: &Path) -> bool {
    let number = path.to_str().and_then(|path| path.strip_prefix(FILES));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Removes the shared memory of a killed server. Call it only when no process of the server runs.
pub(super) fn remove(owner: &Owner) {
    if !owner.is_of_this_boot() {
        return;
    }
    let theirs = |file: &&PathBuf| {
        is_segment(file) && std::fs::symlink_metadata(file).is_ok_and(|m| m.is_file() && m.uid() == owner.uid)
    };
    let control = owner.shared_memory.iter().filter(theirs);
    let listed: Vec<PathBuf> =
        control.flat_map(|file| listed_files(&std::fs::read(file).unwrap_or_default())).collect();
    for file in listed.iter().chain(&owner.shared_memory).filter(theirs) {
        if let Err(e) = std::fs::remove_file(file) {
            log::warn!("{} of a private server could not be removed: {e}", file.display());
        }
    }
    let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let Some(postmaster) = owner.postmaster else { return };
    for id in abandoned_segments(&table, postmaster, owner.uid) {
        // As the user that created it: root in a container may have no privilege.
        let user = ServerUser::of_ids(owner.uid, owner.gid);
        let removed = user.command("ipcrm", Signal::SIGKILL).args(["-m", &id.to_string()]).output();
        if !removed.is_ok_and(|output| output.status.success()) {
            log::warn!("System V shared memory {id} of a private server could not be removed: try `ipcrm -m {id}`");
        }
    }
}

/// The files of the segments that the control segment `bytes` lists; empty if it is not a control segment.
///
/// Source: PostgreSQL 14 to 18, `src/backend/storage/ipc/dsm.c`, `dsm_control_header` and `dsm_control_item` on 64-bit
/// machines. The result may include handles in main shared memory, which have no file.
fn listed_files(bytes: &[u8]) -> Vec<PathBuf> {
    const MAGIC: u32 = 0x9a50_3d32;
    const HEADER: usize = 16;
    const ITEM: usize = 40;
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if word(0) != Some(MAGIC) || cfg!(not(target_pointer_width = "64")) {
        return Vec::new();
    }
    let items = word(4).unwrap_or(0) as usize;
    let used = (0..items.min(bytes.len() / ITEM)).map(|n| HEADER + n * ITEM);
    used.filter(|at| word(at + 4).is_some_and(|references| references > 0))
        .filter_map(word)
        .map(|handle| PathBuf::from(format!("{FILES}{handle}")))
        .collect()
}

/// Ids of the System V segments that `creator` created and no process uses, from `/proc/sysvipc/shm`.
fn abandoned_segments(table: &str, creator: i32, uid: u32) -> Vec<i64> {
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let column = |name: &str| header.iter().position(|h| *h == name);
    let (Some(id), Some(cpid), Some(attached), Some(owner)) =
        (column("shmid"), column("cpid"), column("nattch"), column("uid"))
    else {
        return Vec::new();
    };
    lines
        .filter_map(|line| {
            let fields: Vec<i64> = line.split_whitespace().map(|f| f.parse().unwrap_or(-1)).collect();
            let is = |column: usize, value: i64| fields.get(column) == Some(&value);
            (is(cpid, i64::from(creator)) && is(attached, 0) && is(owner, i64::from(uid)))
                .then(|| fields.get(id).copied())?
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_in_use_or_of_others_are_kept() {
        let table = "       key      shmid perms  size  cpid  lpid nattch   uid   gid\n\
             5432001 3 600 56 70 70 0 101 104\n\
             5432002 4 600 56 70 70 6 101 104\n\
             5432003 5 600 56 71 71 0 101 104\n\
             5432004 6 600 56 70 70 0 0 0\n";
        assert_eq!(abandoned_segments(table, 70, 101), [3]);
        assert!(abandoned_segments("", 70, 101).is_empty());
    }

    #[test]
    fn only_shared_memory_is_ever_unlinked() {
        assert!(is_segment(Path::new("/dev/shm/PostgreSQL.1234")));
        assert!(!is_segment(Path::new("/dev/shm/PostgreSQL.1/../x")));
        assert!(!is_segment(Path::new("/etc/passwd")));
    }

    #[test]
    fn a_control_segment_lists_the_others() {
        let item =
            |handle: u32, references: u32| [&handle.to_ne_bytes()[..], &references.to_ne_bytes(), &[0; 32]].concat();
        let head: Vec<u8> = [0x9a50_3d32, 3, 64, 0].iter().flat_map(|word: &u32| word.to_ne_bytes()).collect();
        let bytes = [head, item(7, 2), item(8, 0), item(9, 1), item(10, 2)].concat();
        assert_eq!(listed_files(&bytes), ["/dev/shm/PostgreSQL.7", "/dev/shm/PostgreSQL.9"].map(PathBuf::from));
        assert!(listed_files(&bytes[..20]).is_empty());
        assert!(listed_files(&[0; 64]).is_empty());
    }
}
