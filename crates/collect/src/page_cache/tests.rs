//! Tests of what is dropped from the page cache, and of what is left alone.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant};

use super::keeper::{SEARCH_EVERY, UsedParts};
use super::*;

const MS: Duration = Duration::from_millis(1);

/// A data directory on a disk (/tmp may be in memory), with a table, a catalog and a log.
fn place() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    for sub in ["base", "log"] {
        std::fs::create_dir(dir.path().join(sub)).unwrap();
        std::fs::write(dir.path().join(sub).join("file"), vec![7; 1 << 20]).unwrap();
    }
    std::fs::write(dir.path().join("base/catalog"), [7; 8192]).unwrap();
    dir
}

fn below(path: &Path, except: Option<PathBuf>) -> DataFiles {
    DataFiles::Below { directory: path.to_owned(), except }
}

fn cached(path: &Path) -> Option<u64> {
    cached_bytes(&File::open(path).unwrap())
}

/// Descriptors of this process for files under `dir`, with their names.
fn descriptors(dir: &Path) -> Vec<(u32, PathBuf)> {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let number = |name: std::ffi::OsString| name.to_str().unwrap().parse().unwrap();
    let all = links.filter_map(|e| Some((number(e.file_name()), std::fs::read_link(e.path()).ok()?)));
    let mut own: Vec<(u32, PathBuf)> = all.filter(|(_, to)| to.starts_with(dir) && to.is_file()).collect();
    own.sort();
    own
}

#[test]
fn data_files_are_dropped_and_the_log_is_not() {
    let dir = place();
    let dropped = below(dir.path(), Some(dir.path().join("log"))).drop_all().unwrap();
    assert_eq!((dropped.files, dropped.bytes), (1, 1 << 20));
    let (Some(table), Some(log)) = (cached(&dir.path().join("base/file")), cached(&dir.path().join("log/file"))) else {
        return;
    };
    assert!(table < 1 << 18 && dropped.left.unwrap() < 1 << 18, "{table} bytes are left");
    assert!(log >= 1 << 20, "{log} bytes are left");
}

#[test]
fn identical_blocks_of_data_and_log_are_counted_without_zeros() {
    let dir = tempfile::tempdir().unwrap();
    let block = |byte: u8| vec![byte; 4096];
    // 16 blocks that differ, twice, and a part of one.
    let data: Vec<u8> = (1..=16).chain(1..=16).flat_map(block).chain([9; 100]).collect();
    std::fs::write(dir.path().join("data"), &data).unwrap();
    std::fs::write(dir.path().join("zeros"), vec![0; 1 << 20]).unwrap();
    let found = |files: DataFiles, most| {
        let (blocks, bytes) = files.identical_blocks(most).unwrap();
        (blocks.share(), blocks.read_bytes, bytes)
    };
    let bytes = (1 << 20) + (128 << 10) + 100;
    assert_eq!(found(below(dir.path(), None), u64::MAX), (Some(0.5), bytes, bytes));
    std::fs::create_dir(dir.path().join("log")).unwrap();
    std::fs::write(dir.path().join("log/file"), &data[..64 << 10]).unwrap();
    let with_log = found(below(dir.path(), Some(dir.path().join("log"))), u64::MAX).0;
    assert_eq!(with_log, Some(1.0 - 16.0 / 48.0));
    let open = vec![Arc::new(File::open(dir.path().join("data")).unwrap())];
    let own = DataFiles::These { open, named: vec![dir.path().join("log/file"), dir.path().join("none")] };
    assert_eq!(found(own.clone(), u64::MAX).0, with_log);
    let (share, read_bytes, _) = found(own, 64 << 10);
    assert_eq!((share, read_bytes), (Some(0.0), 64 << 10));
    assert!(below(&dir.path().join("gone"), None).identical_blocks(1).is_err());
}

/// Waits until hardly anything of `path` is cached.
fn assert_dropped(path: &Path) {
    let end = Instant::now() + Duration::from_secs(60);
    while cached(path).is_some_and(|left| left > 1 << 18) && Instant::now() < end {
        std::thread::sleep(MS);
    }
    assert!(cached(path).unwrap() <= 1 << 18);
}

#[test]
fn a_keeper_drops_what_is_read_and_finds_new_files() {
    let dir = place();
    // A link to a tablespace elsewhere, and one that leads back.
    let elsewhere = place();
    std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("tablespace")).unwrap();
    std::os::unix::fs::symlink(dir.path(), elsewhere.path().join("back")).unwrap();
    let files = below(dir.path(), None);
    files.drop_all().unwrap();
    let keeper = Keeper::start(files, Keep::Out, MS).unwrap();
    let table = elsewhere.path().join("base/file");
    let mut rest = Vec::new();
    File::open(&table).unwrap().read_to_end(&mut rest).unwrap();
    if cached(&table).is_some() {
        assert_dropped(&table);
    }
    std::fs::write(dir.path().join("base/new"), vec![7; 1 << 20]).unwrap();
    std::thread::sleep(2 * SEARCH_EVERY + Duration::from_secs(1));
    let kept = keeper.stop();
    assert_eq!((kept.files, kept.missed), (5, Missed::default()));
    assert!(kept.passes > 1 && kept.cpu_ns > 0 && kept.cpu_ns < kept.ran_ns, "{kept:?}");
}

#[test]
fn what_is_read_ahead_is_dropped_one_pass_after_it_is_used() {
    let dir = place();
    let table = dir.path().join("base/file");
    below(dir.path(), None).drop_all().unwrap();
    if cached(&table).is_none() {
        return;
    }
    let files = [Arc::new(File::open(&table).unwrap())];
    let mut used = UsedParts::default();
    used.pass(&files, 1 << 20);
    drop(std::fs::read(&table).unwrap());
    used.pass(&files, 1 << 20);
    assert!(cached(&table).unwrap() >= 1 << 20, "dropped at once");
    used.pass(&files, 0);
    assert!(cached(&table).unwrap() <= 1 << 18, "kept for ever");
    // Nothing is new for a keeper: only the time starts its passes.
    let keeper = Keeper::start(below(dir.path(), None), Keep::OutOnceUsed { new_bytes: 1 << 40 }, MS).unwrap();
    drop(std::fs::read(&table).unwrap());
    assert_dropped(&table);
    drop(keeper);
}

#[test]
fn what_is_only_written_stays_cached() {
    let dir = place();
    let keeper = Keeper::start(below(dir.path(), None), Keep::Written, MS).unwrap();
    let table = dir.path().join("base/file");
    std::fs::write(&table, vec![8; 1 << 20]).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    assert!(cached(&table).is_none_or(|bytes| bytes >= 1 << 20));
    assert!(keeper.stop().passes > 1);
}

#[test]
fn a_file_is_opened_once_and_stays_open() {
    let dir = place();
    let keeper = Keeper::start(below(dir.path(), None), Keep::Out, MS).unwrap();
    let before = descriptors(dir.path());
    // Descriptors that are closed and reopened take the lowest free number: this one is in the way.
    let _lower = File::open("/proc/self/stat").unwrap();
    let end = Instant::now() + SEARCH_EVERY + Duration::from_millis(200);
    while Instant::now() < end {
        let now = descriptors(dir.path());
        assert_eq!(now.len(), 2, "{now:?}");
        assert_eq!(now, before);
        std::thread::sleep(MS);
    }
    drop(keeper);
    assert!(descriptors(dir.path()).is_empty());
}

#[test]
fn the_largest_files_are_kept_where_not_all_may_be_opened() {
    let dir = place();
    std::fs::write(dir.path().join("base/large"), vec![7; 2 << 20]).unwrap();
    let keeper = Keeper::with_at_most(below(dir.path(), None), Keep::Out, MS, 1).unwrap();
    assert!(descriptors(dir.path())[0].1.ends_with("large"));
    let kept = keeper.stop();
    assert_eq!((kept.files, kept.missed), (1, Missed { unreadable: 0, beyond_limit: 2 }));
    let error = Keeper::with_at_most(below(dir.path(), None), Keep::Out, MS, 0).unwrap_err().to_string();
    assert!(error.contains("ulimit -n") && !error.contains("may read"), "{error}");
    let (mut missed, no_more) = (Missed::default(), std::io::Error::from(Errno::EMFILE));
    missed.count(&no_more);
    missed.count(&std::io::Error::from(Errno::EACCES));
    missed.count(&std::io::Error::from(Errno::ENOENT));
    assert_eq!(missed, Missed { unreadable: 1, beyond_limit: 1 });
}

#[test]
fn only_the_files_of_a_list_are_touched_and_locks_on_open_ones_stay() {
    let dir = place();
    let (database, log) = (dir.path().join("base/file"), dir.path().join("base/file-wal"));
    std::fs::write(&log, vec![7; 1 << 20]).unwrap();
    std::fs::write(dir.path().join("base/holiday.jpg"), vec![7; 1 << 20]).unwrap();
    let open = Arc::new(File::options().read(true).write(true).open(&database).unwrap());
    let (l_type, l_whence) = (nix::libc::F_WRLCK as i16, nix::libc::SEEK_SET as i16);
    let all = nix::libc::flock { l_type, l_whence, l_start: 0, l_len: 0, l_pid: 0 };
    nix::fcntl::fcntl(&*open, nix::fcntl::FcntlArg::F_SETLK(&all)).unwrap();
    let number = open.metadata().unwrap().ino();
    let is_locked = || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap();
        locks.lines().any(|l| l.contains(" POSIX ") && l.contains(&format!(":{number} ")))
    };
    assert!(is_locked());
    let files = DataFiles::These { open: vec![open], named: vec![database.clone(), log.clone()] };
    let dropped = files.drop_all().unwrap();
    assert_eq!((dropped.files, dropped.bytes), (2, 2 << 20), "a name of an open file is that file");
    let keeper = Keeper::start(files.clone(), Keep::Out, MS).unwrap();
    std::thread::sleep(SEARCH_EVERY + Duration::from_millis(100));
    let touched: Vec<PathBuf> = descriptors(dir.path()).into_iter().map(|(_, to)| to).collect();
    assert_eq!(touched.len(), 2, "{touched:?}");
    assert!(!touched.iter().any(|p| p.ends_with("holiday.jpg")), "{touched:?}");
    assert_eq!(keeper.stop().files, 2);
    assert!(is_locked(), "somebody has closed a descriptor of the file");
    drop(files);
    assert!(!is_locked(), "the test would show it");
}

#[test]
fn nothing_to_keep_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let kept = Keeper::start(below(dir.path(), None), Keep::Out, MS).unwrap().stop();
    assert_eq!(kept.files, 0, "files may come later");
    let error = below(&dir.path().join("none"), None).drop_all().unwrap_err().to_string();
    assert!(error.contains("none"), "{error}");
}
