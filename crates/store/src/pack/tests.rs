use std::os::unix::fs::symlink;

use super::*;
use crate::folder::RunFolder;
use crate::testing::{manifest, output};

/// A run of two tests, and the same packed.
fn packed() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let mut run = RunFolder::create(&dir.path().join("results"), "r").unwrap();
    run.write_manifest(&manifest()).unwrap();
    for test in 1..=2 {
        run.append(&output(test)).unwrap();
    }
    let path = run.path().to_owned();
    drop(run);
    crate::add_note(&path, None, "A note.").unwrap();
    crate::write_report(&path, "report/index.html", b"x").unwrap();
    let mut bytes = Vec::new();
    assert!(pack(&path, &mut bytes).unwrap() > 6);
    (dir, path, bytes)
}

fn unpacked(dir: &Path, bytes: &[u8]) -> Result<PathBuf, String> {
    let file = dir.join("r.loadline");
    fs::write(&file, bytes).unwrap();
    let results = dir.join("elsewhere");
    let outcome = unpack(&file, &results).map_err(|e| e.to_string());
    let left: Vec<_> = fs::read_dir(&results).map(|d| d.map(|e| e.unwrap().path()).collect()).unwrap_or_default();
    assert_eq!(left.len(), usize::from(outcome.is_ok()), "{left:?} is left");
    outcome
}

/// An archive of these entries, with checksums of the plain files.
fn archive(entries: &[(&str, EntryType, &[u8])], sums: &str) -> Vec<u8> {
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    append(&mut archive, "r/SHA256SUMS", sums.as_bytes()).unwrap();
    for (name, kind, bytes) in entries {
        let mut header = Header::new_ustar();
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        // As a hostile program would: the library refuses such names.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        if *kind == EntryType::Symlink {
            header.set_link_name("/etc").unwrap();
        }
        header.set_cksum();
        archive.append(&header, *bytes).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

#[test]
fn a_run_comes_back_byte_by_byte_without_its_reports() {
    let (dir, run, bytes) = packed();
    let back = unpacked(dir.path(), &bytes).unwrap();
    assert_eq!(back.file_name(), run.file_name());
    let (a, b) = (StoredRun::open(&run).unwrap(), StoredRun::open(&back).unwrap());
    assert_eq!((a.manifest, &a.records), (b.manifest, &b.records));
    assert_eq!(crate::notes(&back).unwrap()[""], "A note.\n");
    assert!(!back.join("report").exists());
    let mut again = Vec::new();
    pack(&back, &mut again).unwrap();
    assert_eq!(again, bytes, "the same run is packed to the same bytes");
}

#[test]
fn nothing_is_overwritten() {
    let (dir, _, bytes) = packed();
    let back = unpacked(dir.path(), &bytes).unwrap();
    let before = fs::read(back.join("manifest.json")).unwrap();
    fs::write(back.join("mine"), "x").unwrap();
    let error = unpack(&dir.path().join("r.loadline"), &dir.path().join("elsewhere")).unwrap_err();
    assert!(matches!(error, StoreError::Exists(_)), "{error}");
    assert_eq!(fs::read(back.join("manifest.json")).unwrap(), before);
    assert!(back.join("mine").exists());
}

#[test]
fn a_damaged_file_is_named() {
    let (dir, run, _) = packed();
    let good = fs::read(run.join("tests.jsonl")).unwrap();
    let manifest = fs::read(run.join("manifest.json")).unwrap();
    let sums = format!("{}  manifest.json\n{}  tests.jsonl\n", sum(&manifest), sum(&good));
    let mut bad = good.clone();
    bad[10] ^= 1;
    let of = |entries: &[(&str, EntryType, &[u8])]| unpacked(dir.path(), &archive(entries, &sums)).unwrap_err();
    let m = ("r/manifest.json", EntryType::Regular, manifest.as_slice());
    let error = of(&[m, ("r/tests.jsonl", EntryType::Regular, &bad)]);
    assert!(error.contains("'tests.jsonl' in it does not match its checksum"), "{error}");
    assert!(of(&[m]).contains("'tests.jsonl' is missing"));
    assert!(of(&[m, m]).contains("twice"));
    assert!(of(&[("r/other", EntryType::Regular, b"x")]).contains("'other' in it has no checksum"));
}

fn inflated(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut all).unwrap();
    all
}

#[test]
fn no_change_of_a_byte_and_no_cut_passes_unseen() {
    let (dir, run, bytes) = packed();
    let whole = StoredRun::open(&run).unwrap();
    for at in (0..bytes.len()).step_by(37).chain(bytes.len() - 12..bytes.len()) {
        let cut = unpacked(dir.path(), &bytes[..at]);
        assert!(cut.is_err(), "cut at {at}");
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        // What gzip's own header says of time and system may change, and which of equal bytes a repetition is copied from.
        if let Ok(back) = unpacked(dir.path(), &flipped) {
            assert_eq!(StoredRun::open(&back).unwrap().records, whole.records);
            assert!(inflated(&flipped) == inflated(&bytes), "{at}");
            fs::remove_dir_all(back).unwrap();
        }
    }
    assert!(unpacked(dir.path(), b"hello, this is a letter and no run").unwrap_err().contains("no packed run"));
}

#[test]
fn nothing_leaves_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["../x", "r/../../x", "/tmp/x", "r/../x", "r//x", "r/.lock", "r/a/b/c", "q/x", "r/", "r/a\\b", "r"] {
        let error = unpacked(dir.path(), &archive(&[(name, EntryType::Regular, b"x")], &format!("{}  x\n", sum(b"x"))))
            .unwrap_err();
        assert!(error.contains("is not the path of a file"), "{name}: {error}");
    }
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Directory,
        EntryType::Fifo,
        EntryType::XHeader,
        EntryType::GNULongName,
    ] {
        let error = unpacked(dir.path(), &archive(&[("r/x", kind, b"")], "")).unwrap_err();
        assert!(error.contains("is a link or no plain file"), "{kind:?}: {error}");
    }
}

#[test]
fn a_bomb_is_refused_before_it_is_unpacked() {
    let dir = tempfile::tempdir().unwrap();
    let zeros = vec![0u8; 64 << 20];
    let bomb = archive(&[("r/x", EntryType::Regular, &zeros)], &format!("{}  x\n", sum(&zeros)));
    assert!(bomb.len() < 1 << 20);
    let error = unpacked(dir.path(), &bomb).unwrap_err();
    assert!(error.contains("holds more than a run"), "{error}");
}

#[test]
fn a_link_in_a_run_is_not_packed() {
    let (_dir, run, _) = packed();
    symlink("/etc/passwd", run.join("series").join("passwd")).unwrap();
    let error = pack(&run, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("series/passwd") && error.contains("plain files"), "{error}");
}
