//! The shared memory that a killed PostgreSQL leaves: a System V segment, and the POSIX segments `/dev/shm/PostgreSQL.NUMBER`.
//!
//! The System V segment is known by its creator, whose process id is in the server's folder before the server begins
//! ([`super::folder`]). In it is the number of the control segment, which lists the others. Structures: PostgreSQL 14 to 18 on 64-bit
//! machines, `PGShmemHeader` in `pg_shmem.h`, `dsm_control_header` and `dsm_control_item` in `dsm.c`.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::signal::Signal;

use super::programs::User;

/// Bytes of a segment's header that are read: the number of the control segment is at their end.
const HEADER: usize = 28;
const HEADER_MAGIC: u32 = 679_834_894;
const CONTROL_MAGIC: u32 = 0x9a50_3d32;
/// Time for killed processes to detach.
const DETACH: Duration = Duration::from_secs(5);

/// Removes the shared memory of servers that were killed. Call it only when no process of them runs. `creators` are their process ids.
pub(crate) fn remove(creators: &[i32], user: &User) {
    for id in abandoned_segments(creators, user.uid) {
        let theirs =
            |file: &&PathBuf| std::fs::symlink_metadata(file).is_ok_and(|m| m.is_file() && m.uid() == user.uid);
        let header = read_header(id, user).unwrap_or_default();
        let control = control_file(&header);
        let content = control.as_ref().filter(theirs).and_then(|file| std::fs::read(file).ok()).unwrap_or_default();
        for file in listed_files(&content).iter().chain(&control).filter(theirs) {
            if let Err(e) = std::fs::remove_file(file) {
                log::warn!("{} of a private server could not be removed: {e}", file.display());
            }
        }
        // As the user that created it: root in a container may have no privilege.
        let removed = user.command("ipcrm", Signal::SIGKILL).args(["-m", &id.to_string()]).output();
        if !removed.is_ok_and(|output| output.status.success()) {
            log::warn!("System V shared memory {id} of a private server could not be removed: try `ipcrm -m {id}`");
        }
    }
}

/// Ids of the System V segments of `creators` that no process uses. Waits for killed processes to detach: a process that ends has no
/// command line any more while it still unmaps its memory, so it does not seem to run.
fn abandoned_segments(creators: &[i32], uid: u32) -> Vec<i32> {
    let deadline = Instant::now() + DETACH;
    loop {
        let table = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        let (abandoned, used): (Vec<_>, Vec<_>) =
            segments(&table, creators, uid).into_iter().partition(|(_, attached)| *attached == 0);
        // Still used: of another server, whose process got the id of a dead one of ours.
        if used.is_empty() || Instant::now() >= deadline {
            return abandoned.into_iter().map(|(id, _)| id).collect();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Id of each System V segment of one of `creators`, and the number of processes that use it, from `/proc/sysvipc/shm`.
fn segments(table: &str, creators: &[i32], uid: u32) -> Vec<(i32, i32)> {
    let mut lines = table.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let of = |line: &str, name: &str| -> Option<i64> {
        line.split_whitespace().nth(header.iter().position(|column| *column == name)?)?.parse().ok()
    };
    let segment = |line: &str| {
        let created = creators.contains(&of(line, "cpid")?.try_into().ok()?) && of(line, "uid")? == i64::from(uid);
        let (id, attached) = (of(line, "shmid")?.try_into().ok()?, of(line, "nattch")?.try_into().ok()?);
        created.then_some((id, attached))
    };
    lines.filter_map(segment).collect()
}

/// The beginning of a segment, read by a process of its user before that becomes a program that does nothing.
#[allow(unsafe_code)]
fn read_header(id: i32, user: &User) -> io::Result<Vec<u8>> {
    let mut command = user.command("true", Signal::SIGKILL);
    // SAFETY: between fork and exec only system calls are made, and no memory is allocated. A segment has at least one page, so
    // the header can be read from it; the kernel checks the address. The mapping ends with exec.
    unsafe {
        command.pre_exec(move || {
            let segment = libc::shmat(id, std::ptr::null(), libc::SHM_RDONLY);
            let failed = segment.addr() == usize::MAX || libc::write(libc::STDOUT_FILENO, segment, HEADER) < 0;
            if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
        });
    }
    Ok(command.output()?.stdout)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn file(number: u32) -> PathBuf {
    PathBuf::from(format!("/dev/shm/PostgreSQL.{number}"))
}

/// The file of the control segment that a header names.
fn control_file(header: &[u8]) -> Option<PathBuf> {
    let known = word(header, 0) == Some(HEADER_MAGIC) && cfg!(target_pointer_width = "64");
    word(header, HEADER - 4).filter(|number| known && *number != 0).map(file)
}

/// The files of the segments that the control segment lists; empty if it is none. The result may include numbers of segments in main
/// shared memory, which have no file.
fn listed_files(control: &[u8]) -> Vec<PathBuf> {
    const FIRST: usize = 16;
    const ITEM: usize = 40;
    if word(control, 0) != Some(CONTROL_MAGIC) || cfg!(not(target_pointer_width = "64")) {
        return Vec::new();
    }
    let items = word(control, 4).unwrap_or(0) as usize;
    let items = (0..items.min(control.len() / ITEM)).map(|n| FIRST + n * ITEM);
    let used = items.filter(|at| word(control, at + 4).is_some_and(|references| references > 0));
    used.filter_map(|at| word(control, at)).map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_others_are_kept() {
        let table = "       key      shmid perms  size  cpid  lpid nattch   uid   gid\n\
             5432001 3 600 56 70 70 0 101 104\n\
             5432002 4 600 56 70 70 6 101 104\n\
             5432003 5 600 56 71 71 0 101 104\n\
             5432004 6 600 56 70 70 0 0 0\n";
        assert_eq!(segments(table, &[70, 99], 101), [(3, 0), (4, 6)]);
        assert!(segments(table, &[], 101).is_empty() && segments("", &[70], 101).is_empty());
    }

    /// A killed process has no command line while it still unmaps its memory: then the segment was left for ever.
    #[test]
    #[allow(unsafe_code)]
    fn a_segment_is_abandoned_once_its_last_process_has_detached() {
        let (pid, uid) = (nix::unistd::getpid().as_raw(), nix::unistd::getuid().as_raw());
        // SAFETY: a segment of this test's own; nothing points into it.
        let (id, at) = unsafe {
            let id = libc::shmget(libc::IPC_PRIVATE, 4096, 0o600);
            (id, libc::shmat(id, std::ptr::null(), 0).expose_provenance())
        };
        let process = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            // SAFETY: as above.
            unsafe { libc::shmdt(std::ptr::with_exposed_provenance(at)) }
        });
        let found = abandoned_segments(&[pid], uid);
        assert_eq!(process.join().unwrap(), 0);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) }, 0);
        assert_eq!(found, [id]);
    }

    #[test]
    fn a_header_names_the_control_segment_which_lists_the_others() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let header = words(&[HEADER_MAGIC, 1, 56, 0, 56, 0, 12]);
        assert_eq!(control_file(&header), Some("/dev/shm/PostgreSQL.12".into()));
        for none in [words(&[HEADER_MAGIC, 1, 56, 0, 56, 0, 0]), words(&[7; 7]), header[..27].to_vec(), Vec::new()] {
            assert_eq!(control_file(&none), None);
        }
        let item = |number: u32, references: u32| [words(&[number, references]), vec![0; 32]].concat();
        let head = words(&[CONTROL_MAGIC, 3, 64, 0]);
        let bytes = [head, item(7, 2), item(8, 0), item(9, 1), item(10, 2)].concat();
        assert_eq!(listed_files(&bytes), ["/dev/shm/PostgreSQL.7", "/dev/shm/PostgreSQL.9"].map(PathBuf::from));
        assert!(listed_files(&bytes[..20]).is_empty() && listed_files(&[0; 64]).is_empty());
    }
}
