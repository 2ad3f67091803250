//! Interrupted, killed, out of disk: nothing measured is lost, nothing is left behind.

use std::path::Path;
use std::process::Stdio;

use crate::common::{
    Ran, Server, folder_with_tests, leftovers, loadline, manifest_of, measured, ok, results, run, signal, sound,
    start_on, tests_of, wait_for,
};
use nix::sys::signal::Signal;

fn slow(target: &str, results: &Path) -> std::process::Child {
    let more = "--workload LGWR-LAT1,LGWR-LAT25 --jobs 1,2,3 --duration 600ms --warmup 200ms --no-probe";
    start_on(target, results, more)
}

/// Goes on with a run. A busy machine may spoil one of its short windows: whether tests are valid is checked elsewhere.
fn go_on(folder: &Path) {
    let ran = run(&["run", "--resume", folder.to_str().unwrap()]);
    assert!(ran.code <= 1, "{}", ran.said());
}

/// The tests of a run after it went on: all there, each once, those of before unchanged.
fn complete(folder: &Path, before: &[serde_json::Value]) {
    let tests = tests_of(folder);
    assert_eq!(&tests[..before.len()], before, "what was measured is as it was");
    let mut jobs: Vec<_> =
        tests.iter().map(|t| (t["workload"].as_str().unwrap().to_owned(), t["jobs"].as_u64().unwrap())).collect();
    jobs.sort();
    jobs.dedup();
    assert_eq!((tests.len(), jobs.len()), (6, 6), "every test of the plan once");
    let seeds: std::collections::BTreeSet<_> = tests.iter().map(|t| t["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds.len(), 6, "no window draws what another one drew");
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["state"], "complete");
    // One that was killed has drawn as well, and one that was too short for its transactions beside others.
    assert!(manifest["windows"].as_u64().unwrap() >= 6, "{manifest:#}");
}

fn killed_and_resumed(target: &str) {
    let dir = results();
    let mut child = slow(target, dir.path());
    let folder = folder_with_tests(dir.path(), 2);
    signal(&child, Signal::SIGKILL);
    child.wait().unwrap();
    let before = tests_of(&folder);
    assert!(before.len() >= 2 && before.len() < 6);
    // A report can be made of what is there.
    ok(&["report", folder.to_str().unwrap(), "--format", "csv"]);
    let results_dir = dir.path().to_str().unwrap();
    let resumed = run(&["run", "--resume", folder.file_name().unwrap().to_str().unwrap(), "--results", results_dir]);
    assert!(resumed.code <= 1, "{}", resumed.said());
    complete(&folder, &before);
    ok(&["clean", "--results", results_dir]);
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
    let nothing = ok(&["clean", "--target", target, "--results", results_dir]);
    assert!(nothing.out.contains("nothing"), "{}", nothing.said());
}

#[test]
fn a_killed_runs_reference_log_is_removed() {
    for next in ["clean", "run"] {
        let dir = results();
        let path = dir.path().to_str().unwrap();
        // The database is elsewhere on the same filesystem.
        let url = format!("sqlite:{path}/x.db");
        let short = ["--target", &url, "--results", path];
        let of_log = ["--workload", "LGWR-LAT1", "--jobs", "1", "--duration", "300ms", "--warmup", "200ms"];
        let mut command = loadline();
        command.arg("run").args(short).args(of_log).args(["--repeat", "50"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        folder_with_tests(dir.path(), 1);
        signal(&child, Signal::SIGKILL);
        child.wait().unwrap();
        let logs = || leftovers(dir.path()).into_iter().filter(|name| name.starts_with("loadline-wal-")).count();
        assert_eq!(logs(), 1, "the log of the killed run");
        let ran = if next == "clean" {
            ok(&[&["clean"], &short[..]].concat())
        } else {
            measured(&[&["run"], &short[..], &of_log].concat())
        };
        assert_eq!(logs(), 0, "{next}: {}", ran.said());
    }
}

#[test]
fn a_killed_run_on_sqlite_goes_on() {
    killed_and_resumed("sqlite:");
}

#[test]
fn a_killed_run_on_a_private_server_goes_on() {
    killed_and_resumed("postgres-temp:");
}

#[test]
fn ctrl_c_does_not_wait_for_a_long_window_to_close() {
    let dir = results();
    let mut child = start_on("sqlite:", dir.path(), "--workload LGWR-LAT1 --jobs 1 --duration 600s --no-probe");
    let manifests = || {
        let folders = std::fs::read_dir(dir.path()).into_iter().flatten().flatten();
        folders.filter(|f| f.path().join("manifest.json").exists()).count()
    };
    crate::common::wait_for("the run to begin", || manifests() == 1);
    std::thread::sleep(std::time::Duration::from_secs(3));
    signal(&child, Signal::SIGINT);
    crate::common::wait_for("its end", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
}

#[test]
fn ctrl_c_ends_in_order_and_leaves_nothing() {
    for target in ["sqlite:", "postgres-temp:"] {
        let dir = results();
        let child = slow(target, dir.path());
        let folder = folder_with_tests(dir.path(), 1);
        signal(&child, Signal::SIGINT);
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 130, "{target}: {}", ran.said());
        assert_eq!(ran.folder(), folder, "the last line is the folder");
        assert!(ran.err.contains("--resume"), "{}", ran.said());
        assert_eq!(leftovers(dir.path()), Vec::<String>::new(), "{target}");
        let before = tests_of(&folder);
        go_on(&folder);
        complete(&folder, &before);
    }
}

#[test]
fn a_server_killed_in_mid_test_keeps_what_was_measured() {
    let dir = results();
    let mut server = Server::start(&[]);
    let url = server.url();
    let child = slow(&url, dir.path());
    let folder = folder_with_tests(dir.path(), 1);
    std::thread::sleep(std::time::Duration::from_millis(300));
    server.kill();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 3, "{}", ran.said());
    assert!(ran.err.contains("--resume"), "{}", ran.said());
    let before = tests_of(&folder);
    assert!(!before.is_empty() && before.iter().all(sound), "{}", ran.said());
    server.launch(&[]);
    go_on(&folder);
    complete(&folder, &before);
    assert_eq!(
        server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'loadline'").unwrap(),
        "0",
        "the target is left clean"
    );
}

#[test]
fn a_killed_run_on_a_users_server_is_cleaned() {
    let dir = results();
    let server = Server::start(&[]);
    let mut child = slow(&server.url(), dir.path());
    folder_with_tests(dir.path(), 1);
    // A second run on the same schema is refused while the first one lives.
    let second = run(&["run", "--target", &server.url(), "--results", dir.path().join("second").to_str().unwrap()]);
    assert!(second.code == 3 && second.err.contains("another"), "{}", second.said());
    signal(&child, Signal::SIGKILL);
    child.wait().unwrap();
    assert_eq!(server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'loadline'").unwrap(), "1");
    // The lock dies with its owner's session, which the server ends when it notices.
    wait_for("the lock to be free", || run(&["clean", "--target", &server.url()]).code == 0);
    assert_eq!(server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'loadline'").unwrap(), "0");
}

#[test]
fn without_space_for_the_reference_the_run_goes_on_and_says_why() {
    let dir = results();
    let small = Small::mount(dir.path(), "64m");
    let short = ["--workload", "LGWR-LAT1", "--jobs", "1,2", "--duration", "300ms", "--warmup", "200ms"];
    // A log in memory is measured by force only. A busy machine may make short tests invalid.
    let ran = run(&[&["run", "--force", "--results", small.path.to_str().unwrap()], &short[..]].concat());
    let tests = tests_of(&ran.folder());
    assert_eq!(tests.len(), 2, "{}", ran.said());
    for test in &tests {
        let why = test["absent"]["limit_tps"].as_str().unwrap();
        assert!(why.contains("needs 640.0 MiB of free space"), "{why}");
    }
    assert_eq!(leftovers(&small.path), Vec::<String>::new());
}

#[test]
fn a_full_results_folder_loses_nothing() {
    let dir = results();
    let small = Small::mount(dir.path(), "4m");
    let child = slow("null:?pause=1ms", &small.path);
    let folder = folder_with_tests(&small.path, 1);
    small.fill();
    let full = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(full.code, 1, "{}", full.said());
    assert!(full.err.contains("no space") && full.err.contains("--resume"), "{}", full.said());
    let text = std::fs::read_to_string(folder.join("tests.jsonl")).unwrap();
    assert!(text.ends_with('\n'), "no half line");
    let before = tests_of(&folder);
    assert!(!before.is_empty() && before.len() < 6);
    small.free();
    go_on(&folder);
    complete(&folder, &before);
}

#[test]
fn a_data_set_that_fills_the_disk_leaves_out_its_workload() {
    let dir = results();
    let small = Small::mount(dir.path(), "300m");
    let (file, target) = (small.path.join("db"), format!("sqlite:{}/db", small.path.display()));
    let short = "--force --workload LGWR-LAT1,DA-AGG,SRV-QUERY1 --size 128MiB --jobs 1 --duration 300ms --warmup 200ms --no-probe";
    let child = start_on(&target, dir.path(), short);
    // More than all tables but the data set.
    wait_for("the data set to be on its way", || file.metadata().is_ok_and(|file| file.len() > 24 << 20));
    small.fill();
    let ran = Ran::of(child.wait_with_output().unwrap());
    let measured = tests_of(&ran.folder()).iter().map(|test| test["workload"].to_string()).collect::<Vec<_>>();
    assert_eq!(measured, ["\"SRV-QUERY1\"", "\"LGWR-LAT1\""], "{}", ran.said());
    let skipped = manifest_of(&ran.folder())["plan"]["skipped"].clone();
    assert_eq!(
        (ran.code, skipped.as_array().unwrap().len(), &skipped[0]["code"]),
        (1, 1, &"DA-AGG".into()),
        "{}",
        ran.said()
    );
    assert!(!file.exists(), "it may be what filled the disk");
}

/// A small filesystem that can be filled: needs root, as in CI; says so otherwise.
struct Small {
    path: std::path::PathBuf,
}

impl Small {
    fn mount(dir: &Path, size: &str) -> Small {
        let path = dir.join("small");
        std::fs::create_dir(&path).unwrap();
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(&path)
            .status()
            .unwrap();
        assert!(mounted.success(), "this test mounts a small tmpfs to fill it: run ./test as root");
        Small { path }
    }

    fn fill(&self) {
        use std::io::Write;
        let mut file = std::fs::File::create(self.path.join("ballast")).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        while file.write_all(&[1]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.path.join("ballast")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.path).status();
    }
}
