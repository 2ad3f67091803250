//! `loadline probe` end to end: every format, and that nothing is left behind.

use std::collections::BTreeSet;

use crate::common::*;
use loadline_storage::probe::points;

/// The log writer takes long to measure: its rows are read back by a test of `--limits`, and how they stand in tables is a test of
/// `report/src/probed.rs`.
const SHORT: &str = "--size 16MiB --no-log-writer";

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().count() == 0
}

/// That figures of a point agree is a test of `storage/tests/probe.rs`.
#[test]
fn csv_holds_every_point_and_what_a_killed_probe_left_is_removed() {
    let dir = results();
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    // As on a filesystem that keeps the names of open files, or after a kill before the name is gone.
    let leftover = dir.path().join(format!("loadline-probe-{}-0123456789abcdef.tmp", ended.id()));
    std::fs::write(&leftover, "x").unwrap();
    let wanted = "--compressibility 0.5 --dedup 0.25 --engine threads";
    let ran =
        ok(&words(&format!("probe {} {SHORT} --seconds 1 --format csv --output - {wanted}", dir.path().display())));
    assert!(ran.err.contains("a killed probe left it"), "{}", ran.said());
    let mut lines = ran.out.lines().map(|line| line.matches(',').count());
    assert!(lines.next().is_some_and(|commas| lines.all(|line| line == commas)), "{}", ran.said());
    let mut found = BTreeSet::new();
    for row in rows_of(&ran.out) {
        let figure = |name: &str| number(&row, name);
        let mib = figure("per_s") * figure("size_bytes") / 1_048_576.0;
        assert!((figure("mib_per_s") - mib).abs() <= 0.002 + mib * 1e-3, "{row:?}");
        // A percentile that too few samples stand on is left out, and only then.
        assert_eq!(row["p99_ns"].is_empty(), figure("samples") < 100.0, "{row:?}");
        assert_eq!(row["p999_ns"].is_empty(), figure("samples") < 1000.0, "{row:?}");
        let told = ["dir", "engine", "compressibility", "dedup"].map(|column| row[column].as_str());
        assert_eq!(told, [dir.path().to_str().unwrap(), "threads", "0.5", "0.25"]);
        found.insert((row["operation"].clone(), figure("size_bytes") as u64, figure("depth") as u32));
    }
    let expected = points(false).into_iter().map(|p| (p.operation.id().to_owned(), p.size, p.depth));
    assert_eq!(found, expected.collect());
    assert!(is_empty(dir.path()));
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
fn where_io_uring_is_forbidden_threads_measure_and_json_says_so_beside_each_directory() {
    let (disk, out) = (results(), results());
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = out.path().join("probe.json");
    let mut command = loadline();
    command.arg("probe").args([disk.path(), memory.path()]).arg("--output").arg(&file);
    command.args(words(&format!("{SHORT} --seconds 1 --format json")));
    forbid_io_uring(&mut command);
    let ran = Ran::from_output(command.output().unwrap());
    ran.fails(0, &["instead of io_uring: io_uring is forbidden"]);
    let json = json_of(&file);
    assert_eq!((json["version"].as_u64(), json["dirs"].as_array().unwrap().len()), (Some(1), 2));
    assert!(!json["machine"]["kernel"].as_str().unwrap().is_empty() && json["at"].as_str().unwrap().ends_with('Z'));
    let (on_disk, in_memory) = (&json["dirs"][0], &json["dirs"][1]);
    assert_eq!(on_disk["engine"], "threads");
    assert!(on_disk["engine_reason"].as_str().unwrap().contains("io_uring is forbidden"), "{on_disk}");
    let rows =
        |dir: &Value, is: &dyn Fn(&Value) -> bool| dir["rows"].as_array().unwrap().iter().filter(|r| is(r)).count();
    assert_eq!(rows(on_disk, &|row| row["depth"] == 64), 3, "64 at once at each size");
    assert!(!on_disk["storage"]["filesystem"].as_str().unwrap().is_empty());
    assert!(in_memory["kind"] == "tmpfs" && on_disk["st_dev"] != in_memory["st_dev"], "{json}");
    let persists = |row: &Value| row["operation"] == "pmem-persist";
    assert!(rows(in_memory, &persists) > 0);
    if rows(on_disk, &persists) == 0 {
        assert_eq!(on_disk["absent"][0]["operation"], "pmem-persist");
        assert!(on_disk["absent"][0]["reason"].as_str().unwrap().contains("dax"), "{}", on_disk["absent"]);
    }
    assert!(is_empty(disk.path()) && is_empty(memory.path()));
    // Without the log writer it holds no limits.
    let mut one = json.clone();
    one["dirs"].as_array_mut().unwrap().pop();
    std::fs::write(&file, one.to_string()).unwrap();
    let bad = run(&["run", "--limits", file.to_str().unwrap(), "--results", disk.path().to_str().unwrap()]);
    bad.fails(2, &["--no-log-writer"]);
}

#[test]
fn a_directory_that_must_not_be_written_is_refused() {
    let (dir, copy) = (results(), results());
    let loadline = copy.path().join("loadline");
    std::fs::copy(env!("CARGO_BIN_EXE_loadline"), &loadline).unwrap();
    done(Command::new("chmod").arg("555").args([dir.path(), copy.path()]));
    let ran = Ran::from_output(as_user("daemon", loadline).arg("probe").arg(dir.path()).output().unwrap());
    ran.fails(3, &["Permission denied", "Check the permissions of this user"]);
    assert!(is_empty(dir.path()));
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
    for by in [Signal::SIGINT, Signal::SIGKILL] {
        let child = start(&["probe", dir.path().to_str().unwrap(), "--size", "64MiB", "--seconds", "600"]);
        // The files are there once the process holds more than its own bytes in this directory.
        wait_for("the probe's files", || open_files(child.id(), dir.path()) >= 2);
        std::thread::sleep(Duration::from_millis(300));
        signal(&child, by);
        let ran = ended(child);
        assert_eq!(ran.code, if by == Signal::SIGINT { 130 } else { -1 }, "{}", ran.said());
        assert!(is_empty(dir.path()), "{by}");
    }
}
