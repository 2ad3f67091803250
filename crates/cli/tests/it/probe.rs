//! `loadline probe` end to end: every format, bad input, and that nothing is left behind.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use crate::common::{Ran, loadline, ok, results, run, signal, start};
use nix::sys::signal::Signal;

const SHORT: [&str; 4] = ["--size", "16MiB", "--seconds", "3"];

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().count() == 0
}

fn probe(dirs: &[&Path], more: &[&str]) -> Ran {
    let mut args = vec!["probe"];
    args.extend(dirs.iter().map(|d| d.to_str().unwrap()));
    args.extend(SHORT);
    args.extend(more);
    ok(&args)
}

/// Cells of a CSV line; quotes occur in directories only, and not in those of these tests.
fn cells(line: &str) -> Vec<&str> {
    line.split(',').collect()
}

#[test]
fn csv_holds_every_point_with_figures_that_agree() {
    let dir = results();
    // Rows of the log writer: `probe_table.rs`. What it measures is read back by a test of `--limits`.
    let ran = probe(&[dir.path()], &["--no-log-writer", "--format", "csv", "--output", "-"]);
    let mut lines = ran.out.lines();
    let head = cells(lines.next().unwrap());
    let at = |name: &str| head.iter().position(|c| *c == name).unwrap_or_else(|| panic!("no column {name}"));
    let mut found = BTreeSet::new();
    for line in lines {
        let row = cells(line);
        assert_eq!(row.len(), head.len(), "{line}");
        let figure = |name: &str| row[at(name)].parse::<f64>().unwrap_or_else(|_| panic!("{name}: {line}"));
        let or = |name: &str, other: f64| if row[at(name)].is_empty() { other } else { figure(name) };
        let max = figure("max_ns");
        assert!(figure("p50_ns") <= or("p99_ns", max) && or("p99_ns", 0.0) <= or("p999_ns", max), "{line}");
        assert!(or("p999_ns", 0.0) <= max && figure("samples") >= 1.0, "{line}");
        // A percentile that too few samples stand on is left out, and only then.
        assert_eq!(row[at("p99_ns")].is_empty(), figure("samples") < 100.0, "{line}");
        assert_eq!(row[at("p999_ns")].is_empty(), figure("samples") < 1000.0, "{line}");
        let (per_s, depth) = (figure("per_s"), figure("depth"));
        assert!((per_s * figure("elapsed_s") / figure("samples") - 1.0).abs() < 0.01, "{line}");
        let mib = per_s * figure("size_bytes") / 1_048_576.0;
        assert!((figure("mib_per_s") - mib).abs() <= 0.002 + mib * 1e-3, "{line}");
        // Little's law; at the ends of each slice up to `depth` operations are cut.
        let in_flight = per_s * figure("mean_ns") / 1e9;
        let cut = depth * max * 3.0 / (figure("elapsed_s") * 1e9);
        assert!(in_flight < depth * 1.001 + if depth > 1.0 { cut } else { 0.0 }, "{in_flight} in flight: {line}");
        if row[at("operation")].ends_with("-read") && depth == 1.0 {
            assert!(in_flight > 0.99, "{in_flight} in flight: {line}");
        }
        assert_eq!(row[at("dir")], dir.path().to_str().unwrap());
        assert!(found.insert((row[at("operation")].to_owned(), figure("size_bytes") as u64, depth as u32)), "{line}");
    }
    for size in (9..=20).map(|power| 1_u64 << power) {
        for way in ["fdatasync-prealloc", "fdatasync-growing", "dsync-prealloc", "dsync-growing"] {
            assert!(found.contains(&(format!("sync-write-{way}"), size, 1)), "{way} {size}");
        }
    }
    for (kib, depth) in [4, 8, 16].into_iter().flat_map(|k| [1, 2, 4, 8, 16, 32, 64].map(|d| (k, d))) {
        assert!(found.contains(&("random-read".to_owned(), kib << 10, depth)), "{kib} {depth}");
    }
    for (operation, depth) in [("read", 1), ("read", 8), ("write", 1), ("write", 8)] {
        assert!(found.contains(&(format!("sequential-{operation}"), 1 << 20, depth)), "{operation} {depth}");
    }
    assert!(ran.err.contains("uses up to") && ran.err.contains("free while measuring"), "{}", ran.said());
    assert!(is_empty(dir.path()));
}

#[test]
fn directories_stand_side_by_side_in_json() {
    let disk = results();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let out = results();
    let file = out.path().join("probe.json");
    let json = ["--no-log-writer", "--format", "json", "--output", file.to_str().unwrap()];
    probe(&[disk.path(), memory.path()], &json);
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!((json["version"].as_u64(), json["dirs"].as_array().unwrap().len()), (Some(1), 2));
    assert!(!json["machine"]["kernel"].as_str().unwrap().is_empty() && json["at"].as_str().unwrap().ends_with('Z'));
    let (on_disk, in_memory) = (&json["dirs"][0], &json["dirs"][1]);
    assert!(!on_disk["storage"]["filesystem"].as_str().unwrap().is_empty());
    assert_eq!(in_memory["kind"], "tmpfs");
    assert_ne!(on_disk["st_dev"], in_memory["st_dev"]);
    assert!(in_memory["rows"].as_array().unwrap().iter().any(|r| r["operation"] == "pmem-persist"));
    if !on_disk["rows"].as_array().unwrap().iter().any(|r| r["operation"] == "pmem-persist") {
        assert_eq!(on_disk["absent"][0]["operation"], "pmem-persist");
        assert!(on_disk["absent"][0]["reason"].as_str().unwrap().contains("dax"), "{}", on_disk["absent"]);
    }
    assert!(is_empty(disk.path()) && is_empty(memory.path()));
}

#[test]
fn directories_stand_side_by_side_in_tables() {
    let disk = results();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    // How the reference log writer stands in tables is a test of `probe_log_writer`: measuring it takes long.
    let more = ["--no-log-writer", "--compressibility", "0.5", "--dedup", "0.25"];
    let ran = probe(&[disk.path(), memory.path()], &more);
    for part in [
        "A  ", "B  ", "no disk", "A per s", "B p99", "Random read", "Mapped memory", "512 B", "compressibility 0.5",
        "dedup 0.25",
    ] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.said());
    }
    assert!(is_empty(disk.path()) && is_empty(memory.path()));
}

#[test]
fn one_directory_stands_in_markdown() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let ran = probe(&[memory.path()], &["--no-log-writer", "--format", "md", "--engine", "threads"]);
    for part in ["## Random read", "| size | in flight | per s |", "| ---: |", "threads were requested"] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.said());
    }
    assert!(is_empty(memory.path()));
}

#[test]
fn bad_input_is_named_with_what_is_allowed() {
    let dir = results();
    let path = dir.path().to_str().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let missing = dir.path().join("none");
    let cases: &[(&[&str], i32, &[&str])] = &[
        (&["probe"], 2, &["DIR"]),
        (&["probe", path, "--size", "5 apples"], 2, &["5 apples", "MiB"]),
        (&["probe", path, "--size", "1MiB"], 2, &["1.0 MiB", "16.0 MiB"]),
        (&["probe", path, "--seconds", "0"], 2, &["'0'", "1 to 3600"]),
        (&["probe", path, "--seconds", "-3"], 2, &["'-3'", "1 to 3600"]),
        (&["probe", path, "--seconds", "5000"], 2, &["'5000'", "1 to 3600"]),
        (&["probe", path, "--compressibility", "1.5"], 2, &["'1.5'", "0 to 1"]),
        (&["probe", path, "--dedup", "-0.1"], 2, &["'-0.1'", "0 to 1"]),
        (&["probe", path, "--engine", "aio"], 2, &["aio", "threads"]),
        (&["probe", path, "--format", "xml"], 2, &["xml", "csv"]),
        (&["probe", path, path], 2, &["named twice"]),
        (&["probe", path, "--size", "900TiB"], 3, &["900.0 TiB", "free", "--size"]),
        (&["probe", missing.to_str().unwrap()], 3, &["none", "exists"]),
        (&["probe", path, missing.to_str().unwrap()], 3, &["none", "exists"]),
        (&["probe", file.to_str().unwrap()], 3, &["not a directory"]),
        (&["probe", "/proc"], 3, &["/proc"]),
    ];
    for (args, code, parts) in cases {
        let ran = run(args);
        assert_eq!(ran.code, *code, "{args:?}: {}", ran.said());
        assert!(parts.iter().all(|p| ran.err.contains(p)), "{args:?}: {parts:?}: {}", ran.said());
        assert!(ran.out.is_empty() && !ran.err.contains("panicked"), "{}", ran.said());
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "only the file that was there");
}

/// Lets the system call io_uring_setup of `command` fail with EPERM, as containers' profiles do.
#[allow(unsafe_code)]
fn forbid_io_uring(command: &mut Command) {
    use nix::libc::{
        BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP,
        SECCOMP_MODE_FILTER, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SYS_io_uring_setup, prctl, sock_filter, sock_fprog,
    };
    use std::os::unix::process::CommandExt as _;
    let step = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let forbid = move || {
        let mut filter = [
            // The number of the call is the first word of what the filter sees.
            step(BPF_LD | BPF_W | BPF_ABS, 0, 0, 0),
            step(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_io_uring_setup as u32),
            step(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | nix::libc::EPERM as u32),
            step(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW),
        ];
        let program = sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: both calls take plain numbers and a filter that lives until they return.
        let done = unsafe {
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, std::ptr::addr_of!(program)) == 0
        };
        if done { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: between fork and exec nothing is allocated and no lock taken.
    unsafe { command.pre_exec(forbid) };
}

#[test]
fn where_io_uring_is_forbidden_threads_measure_and_the_report_says_so() {
    let dir = results();
    let mut command = loadline();
    command.arg("probe").arg(dir.path()).args(SHORT).args(["--no-log-writer", "--format", "json"]);
    forbid_io_uring(&mut command);
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.said());
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let probed = &json["dirs"][0];
    assert_eq!(probed["engine"], "threads");
    assert!(probed["engine_reason"].as_str().unwrap().contains("io_uring is forbidden"), "{}", probed["engine_reason"]);
    assert!(ran.err.contains("instead of io_uring: io_uring is forbidden"), "{}", ran.said());
    let deep = probed["rows"].as_array().unwrap().iter().filter(|r| r["depth"] == 64).count();
    assert_eq!(deep, 3, "64 at once at each size");
    // Without the log writer it holds no limits.
    let file = dir.path().join("limits.json");
    std::fs::write(&file, &ran.out).unwrap();
    let bad = run(&["run", "--limits", file.to_str().unwrap(), "--results", dir.path().to_str().unwrap()]);
    assert!(bad.code == 2 && bad.err.contains("--no-log-writer"), "{}", bad.said());
}

#[test]
fn a_directory_that_must_not_be_written_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        panic!("run the tests as root: they give up their rights for this one");
    }
    let dir = results();
    // Readable by all, writable by root only.
    Command::new("chmod").arg("755").arg(dir.path()).status().unwrap();
    let binary = tempfile::tempdir_in("/var/tmp").unwrap();
    Command::new("chmod").arg("755").arg(binary.path()).status().unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_loadline"), binary.path().join("loadline")).unwrap();
    let out = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(binary.path().join("loadline"))
        .arg("probe")
        .arg(dir.path())
        .output()
        .unwrap();
    let ran = Ran::of(out);
    assert_eq!(ran.code, 3, "{}", ran.said());
    assert!(
        ran.err.contains("Permission denied") && ran.err.contains("Check the permissions of this user"),
        "{}",
        ran.said()
    );
    assert!(is_empty(dir.path()));
}

fn long(dir: &Path) -> Child {
    let child = start(&["probe", dir.to_str().unwrap(), "--size", "64MiB", "--seconds", "600"]);
    // The files are there once the process holds more than its own bytes in this directory.
    crate::common::wait_for("the probe's files", || open_files(child.id(), dir) >= 2);
    std::thread::sleep(Duration::from_millis(300));
    child
}

/// Descriptors of a process on files in `dir`, removed ones included.
fn open_files(pid: u32, dir: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return 0 };
    let links = entries.flatten().filter_map(|e| std::fs::read_link(e.path()).ok());
    links.filter(|l| l.starts_with(dir) && l.to_string_lossy().contains("loadline-probe-")).count()
}

#[test]
fn nothing_is_left_after_an_interrupt_or_a_kill() {
    let dir = results();
    let child = long(dir.path());
    signal(&child, Signal::SIGINT);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 130, "{}", ran.said());
    assert!(is_empty(dir.path()), "{}", ran.said());

    let child = long(dir.path());
    let pid = child.id();
    signal(&child, Signal::SIGKILL);
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.signal(), Some(9));
    // As on a filesystem that keeps the names of open files, or after a kill before the name is gone.
    let leftover = dir.path().join(format!("loadline-probe-{pid}-0123456789abcdef.tmp"));
    std::fs::write(&leftover, "x").unwrap();
    let ran = probe(&[dir.path()], &["--no-log-writer"]);
    assert!(ran.err.contains("a killed probe left it"), "{}", ran.said());
    assert!(is_empty(dir.path()), "{}", ran.said());
}
