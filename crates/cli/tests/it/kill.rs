//! Interrupted, killed, out of disk: nothing measured is lost, nothing is left behind.

use crate::common::*;

fn slow(target: &str, results: &Path) -> Child {
    let more = "--workload LGWR-LAT1,LGWR-LAT25 --jobs 1,2,3 --duration 600ms --warmup 200ms --no-probe";
    start_on(target, results, more)
}

/// Goes on with a run. A busy machine may spoil one of its short windows: whether tests are valid is checked elsewhere.
fn go_on(run: &str) {
    let ran = command(&format!("run --resume {run}"));
    assert!(ran.code <= 1, "{}", ran.said());
}

/// The tests of a run after it went on: all there, each once, those of before unchanged.
fn complete(folder: &Path, before: &[Value]) {
    let tests = tests_of(folder);
    assert_eq!(&tests[..before.len()], before, "what was measured is as it was");
    let mut of_plan = made(&tests, "jobs");
    of_plan.sort_unstable();
    of_plan.dedup();
    assert_eq!((tests.len(), of_plan.len()), (6, 6), "every test of the plan once");
    let seeds: std::collections::BTreeSet<_> = tests.iter().map(|t| t["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds.len(), 6, "no window draws what another one drew");
    let manifest = manifest_of(folder);
    assert_eq!(manifest["state"], "complete");
    // One that was killed has drawn as well, and one that was too short for its transactions beside others.
    assert!(manifest["windows"].as_u64().unwrap() >= 6, "{manifest:#}");
}

#[test]
fn a_killed_or_interrupted_run_goes_on_and_leaves_nothing() {
    // The private server has processes of its own.
    for (target, is_killed) in [("sqlite:", true), ("postgres-temp:", true), ("postgres-temp:", false)] {
        let dir = results();
        let child = slow(target, dir.path());
        let folder = folder_with_tests(dir.path(), 2);
        if is_killed {
            kill(child);
        } else {
            signal(&child, Signal::SIGINT);
            let ran = ended(child);
            ran.fails(130, &["--resume"]);
            assert_eq!(ran.folder(), folder, "the last line is the folder");
            assert_eq!(leftovers(dir.path()), Vec::<String>::new());
        }
        let before = tests_of(&folder);
        assert!(before.len() >= 2 && before.len() < 6);
        // A report can be made of what is there.
        report(&folder, "--format csv");
        let to = format!("--results {}", dir.path().display());
        go_on(&format!("{} {to}", folder.file_name().unwrap().display()));
        complete(&folder, &before);
        printed(&format!("clean {to}"));
        assert_eq!(leftovers(dir.path()), Vec::<String>::new());
        let nothing = printed(&format!("clean --target {target} {to}"));
        assert!(nothing.contains("nothing"), "{nothing}");
    }
}

#[test]
fn what_is_long_is_interrupted_in_the_middle_and_keeps_what_was_known() {
    hold_runs(include_str!("data/demands/interrupted.toml"), &[]);
}

#[test]
fn on_a_users_server_a_killed_run_is_cleaned_and_a_killed_server_keeps_what_was_measured() {
    let [first, dir] = [results(), results()];
    let mut server = Server::start(&[]);
    let url = server.url();
    let child = slow(&url, first.path());
    folder_with_tests(first.path(), 1);
    // A second run on the same schema is refused while the first one lives.
    on(&url, dir.path().join("second"), "").fails(3, &["another"]);
    kill(child);
    assert!(server.has_schema());
    // The lock dies with its owner's session, which the server ends when it notices.
    wait_for("the lock to be free", || run(&["clean", "--target", &url]).code == 0);
    assert!(!server.has_schema());

    let child = slow(&url, dir.path());
    let folder = folder_with_tests(dir.path(), 1);
    std::thread::sleep(Duration::from_millis(300));
    server.kill();
    let ran = ended(child);
    ran.fails(3, &["--resume"]);
    let before = tests_of(&folder);
    assert!(!before.is_empty() && before.iter().all(sound), "{}", ran.said());
    server.launch(&[]);
    go_on(folder.to_str().unwrap());
    complete(&folder, &before);
    assert!(!server.has_schema(), "the target is left clean");
}

#[test]
fn without_space_for_the_reference_the_run_goes_on_and_says_why() {
    let dir = results();
    let small = Small::mount(dir.path(), "64m");
    hold_runs(include_str!("data/demands/space.toml"), &[("{small}", small.path.to_str().unwrap())]);
}

#[test]
fn a_full_results_folder_loses_nothing() {
    let dir = results();
    let small = Small::mount(dir.path(), "4m");
    let child = slow("null:?pause=1ms", &small.path);
    let folder = folder_with_tests(&small.path, 1);
    small.fill();
    ended(child).fails(1, &["no space", "--resume"]);
    let text = read(folder.join("tests.jsonl"));
    assert!(text.ends_with('\n'), "no half line");
    let before = tests_of(&folder);
    assert!(!before.is_empty() && before.len() < 6);
    small.free();
    go_on(folder.to_str().unwrap());
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
    let ran = ended(child);
    assert_eq!(made(&tests_of(&ran.folder()), "jobs"), [("SRV-QUERY1", 1), ("LGWR-LAT1", 1)], "{}", ran.said());
    let skipped = manifest_of(&ran.folder())["plan"]["skipped"].clone();
    assert!(skipped.as_array().unwrap().len() == 1 && skipped[0]["code"] == "DA-AGG", "{skipped}");
    assert_eq!(ran.code, 1, "{}", ran.said());
    assert!(!file.exists(), "it may be what filled the disk");
}

/// A small filesystem that can be filled: needs root, as in CI; says so otherwise.
struct Small {
    path: PathBuf,
}

impl Small {
    fn mount(dir: &Path, size: &str) -> Small {
        let path = dir.join("small");
        std::fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&path);
        let mounted = mount.status().unwrap();
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
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}
