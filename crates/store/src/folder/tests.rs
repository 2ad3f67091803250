use std::process::Command;
use std::time::Instant;

use super::*;
use crate::testing::{manifest, output, record};

fn run(results: &Path, tests: &[u32]) -> RunFolder {
    let mut folder = RunFolder::create(results, "r").unwrap();
    folder.write_manifest(&manifest()).unwrap();
    tests.iter().for_each(|t| folder.append(&output(*t)).unwrap());
    folder
}

#[test]
fn what_is_written_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let folder = run(&dir.path().join("deep/results"), &[1, 2]);
    for path in [folder.path().to_owned(), folder.path().join("manifest.json")] {
        let stored = StoredRun::open(&path).unwrap();
        assert_eq!(stored.manifest, manifest());
        assert_eq!(stored.records, [record(1), record(2)]);
        assert!(stored.warnings.is_empty());
        assert_eq!((stored.id(), folder.id()), ("r".to_owned(), "r".to_owned()));
        let given = output(2);
        assert_eq!(stored.series(2).unwrap(), given.series);
        assert_eq!(stored.snapshots(2).unwrap(), given.snapshots);
        let histograms = stored.histograms(2).unwrap();
        for ((name, back), (given_name, given)) in histograms.iter().zip(&given.histograms) {
            assert_eq!(
                (name, back.histogram(), back.sum_ns(), back.max_ns()),
                (given_name, given.histogram(), given.sum_ns(), given.max_ns())
            );
        }
        assert_eq!(histograms.len(), 2);
        let error = stored.series(9).unwrap_err().to_string();
        assert!(error.contains("no test 9: it has 2"), "{error}");
    }
}

#[test]
fn a_report_of_the_databases_own_is_kept_beside_the_test() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = run(dir.path(), &[1]);
    assert!(!folder.path().join("awr").exists(), "only where there is one");
    let native =
        |folder: &str| NativeFile { folder: folder.into(), extension: "html".into(), text: "<p>ä</p>".into() };
    let with = |test, name: &str| TestOutput { native: Some(native(name)), ..output(test) };
    folder.append(&with(2, "awr")).unwrap();
    folder.append(&with(3, "awr")).unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("awr/3.html")).unwrap(), "<p>ä</p>");
    // A test that could not be stored leaves none.
    std::fs::remove_dir_all(folder.path().join("awr")).unwrap();
    std::fs::write(folder.path().join("awr"), "in the way").unwrap();
    assert!(folder.append(&with(4, "awr")).is_err());
    assert!(!folder.path().join("series/4.csv").exists());
    assert_eq!(StoredRun::open(folder.path()).unwrap().records.len(), 3);
}

#[test]
fn a_taken_name_gets_a_number() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..3).map(|_| RunFolder::create(dir.path(), "r").unwrap().id()).collect();
    assert_eq!(names, ["r", "r-2", "r-3"]);
}

#[test]
fn results_that_cannot_be_used_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let error = RunFolder::create(&file, "r").unwrap_err();
    assert!(matches!(error, StoreError::ResultsIsFile(_)) && error.to_string().contains("is a file"), "{error}");
    let error = RunFolder::create(&file.join("below"), "r").unwrap_err().to_string();
    assert!(error.contains("Not a directory") && error.contains("--results"), "{error}");
    // sysfs refuses new directories to root as well.
    let error = RunFolder::create(Path::new("/sys/kernel"), "r").unwrap_err().to_string();
    assert!(error.contains("cannot create '/sys/kernel/r'") && error.contains("permissions"), "{error}");
}

#[test]
fn places_without_a_run_are_explained() {
    let dir = tempfile::tempdir().unwrap();
    let open = |path: &Path| StoredRun::open(path).unwrap_err().to_string();
    assert!(open(dir.path()).ends_with("is not a run folder: it has no manifest.json"));
    assert!(open(&dir.path().join("nowhere")).contains("does not exist"));
    std::fs::write(dir.path().join("notes.txt"), "x").unwrap();
    assert!(open(&dir.path().join("notes.txt")).contains("is not a run folder"));
    drop((run(dir.path(), &[]), run(dir.path(), &[])));
    let error = open(dir.path());
    assert!(error.contains("2 runs") && error.ends_with("/r"), "{error}");
    assert!(matches!(RunFolder::resume(dir.path()), Err(StoreError::HoldsRuns { .. })));
}

/// A kill at any moment of the appends: opening and resuming return exactly the whole
/// records, resuming repairs the file, and the lost tests can be stored again.
#[test]
fn a_run_cut_at_any_byte_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = run(dir.path(), &[1, 2, 3]).path().to_owned();
    let file = path.join("tests.jsonl");
    let whole = std::fs::read(&file).unwrap();
    let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).collect();
    for cut in 0..=whole.len() {
        std::fs::write(&file, &whole[..cut]).unwrap();
        let complete = ends.iter().filter(|e| **e <= cut).count();
        let torn = cut > 0 && !ends.contains(&cut);
        let stored = StoredRun::open(&path).unwrap();
        assert_eq!((stored.records.len(), stored.warnings.len()), (complete, usize::from(torn)), "cut at {cut}");
        assert_eq!(std::fs::metadata(&file).unwrap().len(), cut as u64, "reading changes nothing");
        let (mut folder, resumed) = RunFolder::resume(&path).unwrap();
        assert_eq!((resumed.records.len(), resumed.warnings.len()), (complete, usize::from(torn)), "cut at {cut}");
        assert_eq!(
            std::fs::metadata(&file).unwrap().len() as usize,
            complete.checked_sub(1).map_or(0, |last| ends[last])
        );
        // Storing what was lost costs several fsyncs: once per place in the line is enough.
        if cut % 97 == 0 {
            (complete + 1..=3).for_each(|t| folder.append(&output(t as u32)).unwrap());
            assert_eq!(std::fs::read(&file).unwrap(), whole, "cut at {cut}");
        }
    }
}

#[test]
fn damage_is_refused_by_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = run(dir.path(), &[1, 2]).path().to_owned();
    let broken = |name: &str, from: &str, to: &str| {
        let file = path.join(name);
        let before = std::fs::read_to_string(&file).unwrap();
        assert!(before.contains(from), "{name}");
        std::fs::write(&file, before.replacen(from, to, 1)).unwrap();
        let outcome = StoredRun::open(&path).and_then(|run| {
            run.series(1)?;
            run.histograms(1)?;
            run.snapshots(1)
        });
        let resumed = RunFolder::resume(&path).map(|_| ());
        std::fs::write(&file, before).unwrap();
        (outcome.unwrap_err().to_string(), resumed)
    };
    for (name, from, to, said) in [
        ("tests.jsonl", "\"schema\":2", "\"schema\":3", "line 1, has layout 3"),
        ("manifest.json", "\"schema\": 2", "\"schema\": 9", "has layout 9"),
        ("manifest.json", "\"schema\": 2", "\"schema\" 2", "line 2, is damaged"),
        ("series/1.csv", "0,0.1", "0,zero", "line 2, is damaged: 'zero'"),
        ("histograms/1.hlog", "HISTFA", "HISTFB", "is damaged: its histogram"),
        ("snapshots/1.json", "\"schema\": 1", "\"schema\": 3", "has layout 3"),
    ] {
        let (error, resumed) = broken(name, from, to);
        assert!(error.contains(said) && error.contains(name), "{name}: {error}");
        // Resuming reads only what it continues.
        assert_eq!(resumed.is_err(), !name.contains('/'), "{name}: {resumed:?}");
    }
    std::fs::remove_file(path.join("series/1.csv")).unwrap();
    let error = StoredRun::open(&path).unwrap().series(1).unwrap_err().to_string();
    assert!(error.contains("series/1.csv' is damaged: the file is missing"), "{error}");
}

#[test]
fn a_number_is_stored_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = run(dir.path(), &[1]);
    assert!(folder.append(&output(1)).unwrap_err().to_string().contains("already has a test"));
    let path = folder.path().to_owned();
    drop(folder);
    assert!(RunFolder::resume(&path).unwrap().0.append(&output(1)).is_err());
    assert_eq!(StoredRun::open(&path).unwrap().records.len(), 1);
}

#[test]
fn a_test_is_not_appended_to_a_file_that_lost_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = run(dir.path(), &[1]);
    let file = folder.path().join(layout::TESTS);
    std::fs::write(&file, "").unwrap();
    assert!(folder.append(&output(2)).is_err());
    assert_eq!(std::fs::read(&file).unwrap(), b"");
}

#[test]
fn what_has_no_place_in_the_files_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = run(dir.path(), &[]);
    for name in ["", "two words", "a,b", "a\nb"] {
        let mut odd = output(1);
        odd.histograms[0].0 = name.to_owned();
        assert!(matches!(folder.append(&odd), Err(StoreError::Unwritable { test: 1, .. })), "{name}");
    }
    assert_eq!(std::fs::read_dir(folder.path().join("series")).unwrap().count(), 0);
}

/// A small filesystem of its own, unmounted at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> SmallDisk {
        let dir = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=128k", "tmpfs"]).arg(dir.path()).output();
        // Never skipped in silence: it is the only test of a line that was written in part.
        assert!(
            mounted.is_ok_and(|o| o.status.success()),
            "this test mounts a small tmpfs to fill it: run ./test as root"
        );
        SmallDisk(dir)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[test]
fn a_disk_that_fills_up_loses_only_the_test_that_did_not_fit() {
    let disk = SmallDisk::mount();
    let mut folder = run(disk.0.path(), &[1]);
    let before = std::fs::read(folder.path().join("tests.jsonl")).unwrap();

    // The line does not fit: written in part, taken back.
    let mut large = output(2);
    large.record.notes.push("x".repeat(300 << 10).into());
    let error = folder.append(&large).unwrap_err();
    let text = error.to_string();
    assert!(error.is_full() && text.contains("no space left: cannot append to"), "{text}");
    assert!(text.contains("Everything up to test 1 is safe; then continue with `loadline run --resume"), "{text}");
    assert_eq!(std::fs::read(folder.path().join("tests.jsonl")).unwrap(), before);
    assert!(!folder.path().join("series/2.csv").exists());

    // A side file does not fit.
    let mut long = output(2);
    long.series.rows = vec![vec![Some(0.125), Some(0.1)]; 40_000];
    assert!(folder.append(&long).unwrap_err().is_full());
    assert_eq!(StoredRun::open(folder.path()).unwrap().records.len(), 1);

    // The same folder works again once there is free space.
    folder.append(&output(2)).unwrap();

    // The manifest does not fit: the old one stays.
    let mut huge = manifest();
    huge.command.push("x".repeat(300 << 10));
    assert!(folder.write_manifest(&huge).unwrap_err().is_full());
    let stored = StoredRun::open(folder.path()).unwrap();
    assert_eq!((stored.records.len(), &stored.manifest), (2, &manifest()));
    assert!(
        std::fs::read_dir(folder.path()).unwrap().flatten().all(|e| !e.file_name().to_string_lossy().contains("tmp"))
    );

    // A run on a full disk is refused at the start and leaves no folder behind.
    let _ = std::fs::write(disk.0.path().join("filler"), vec![0u8; 200 << 10]);
    let results = disk.0.path().join("a/results");
    let error = RunFolder::create(&results, "second").unwrap_err();
    assert!(error.is_full() && error.to_string().contains("no space left"), "{error}");
    assert!(!disk.0.path().join("a").exists());
}

/// A second writer is refused. The lock of a process that is killed dies with it. The process is this test, started again.
#[test]
fn the_lock_dies_with_its_process() {
    const VARIABLE: &str = "LOADLINE_STORE_TEST_HOLD";
    if let Some(path) = std::env::var_os(VARIABLE) {
        let (folder, _) = RunFolder::resume(Path::new(&path)).unwrap();
        std::fs::write(folder.path().join("held"), "").unwrap();
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = run(dir.path(), &[1]).path().to_owned();
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "folder::tests::the_lock_dies_with_its_process"])
        .env(VARIABLE, &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !path.join("held").exists() && start.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let refused = RunFolder::resume(&path).map(|_| ());
    let read = StoredRun::open(&path).map(|run| run.records.len());
    holder.kill().unwrap();
    holder.wait().unwrap();
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains(&format!("in use by another loadline (process {})", holder.id())), "{refused}");
    assert_eq!(read.unwrap(), 1, "reading needs no lock");
    assert!(RunFolder::resume(&path).is_ok());
}

#[test]
fn what_a_killed_writer_left_half_written_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = run(dir.path(), &[1]).path().to_owned();
    std::fs::write(path.join(".manifest.json.tmp-1-0"), "{").unwrap();
    drop(RunFolder::resume(&path).unwrap());
    assert!(!path.join(".manifest.json.tmp-1-0").exists());
    assert!(path.join("manifest.json").exists());
}
