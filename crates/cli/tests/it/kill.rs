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
fn an_interrupted_search_for_a_rate_goes_on_after_the_looks_that_were_made() {
    let dir = results();
    let search = "--workload LGWR-LAT1 --jobs 2 --no-probe --rate auto --p99 50ms --duration 300ms --warmup 200ms";
    let child = start_on("null:?pause=1ms", dir.path(), search);
    let folder = folder_with(dir.path(), "manifest.json", |text| text.matches("\"latency_ns\"").count() >= 4);
    signal(&child, Signal::SIGINT);
    ended(child).fails(130, &["--resume"]);
    let number = |of: &Value| of["windows"].as_u64().unwrap();
    let before = manifest_of(&folder);
    let looks = before["search"]["looks"].as_array().unwrap().len() as u64;
    assert!(looks >= 4 && tests_of(&folder).is_empty(), "{before:#}");
    go_on(folder.to_str().unwrap());
    let after = manifest_of(&folder);
    // 18 windows are a search, then comes the test, which may need a longer window.
    let more = number(&after) - number(&before);
    assert!((19 - looks..=20 - looks).contains(&more), "{looks} looks, then {more} windows");
    assert!(after["search"].is_null() && tests_of(&folder).len() == 1, "{after:#}");
}

#[test]
fn an_interrupted_window_keeps_the_parts_that_ended() {
    let results = results();
    let line = "--plan aging --jobs 2 --duration 60s --warmup 200ms --no-probe --parameter TP-MIXED.accounts=1000 --parameter \
                TP-MIXED.entries=1000";
    let child = start_on("sqlite:", results.path(), line);
    // Seconds of the window.
    folder_with(results.path(), "live.jsonl", |live| live.matches("\"event\":\"second\"").count() >= 4);
    signal(&child, Signal::SIGINT);
    let ran = ended(child);
    assert_eq!(ran.code, 130, "{}", ran.said());
    let folder = ran.folder();
    let [test] = &tests_of(&folder)[..] else { panic!("{}", ran.said()) };
    let parts = test["aging"].as_array().unwrap();
    assert!((1..60).contains(&parts.len()) && parts.iter().all(|part| part["tps"].as_f64() > Some(0.0)), "{test}");
    assert!(test["tables_mib"].is_number() && test["commit_throughput_tps"].is_null(), "{test}");
    assert_eq!(test["valid"], false, "nothing proves it: {test}");
    let page = words(&report(&folder, "--format text")).join(" ");
    assert!(page.contains("the window was interrupted"), "{page}");
    let again = run(&["run", "--resume", folder.to_str().unwrap()]);
    assert!(again.err.contains("nothing was left to measure") && tests_of(&folder).len() == 1, "{}", again.said());
}

/// Jobs that think for most of the time: also a small machine has CPU for all.
const THINKING: &str = "--workload LGWR-LAT1 --jobs 2000 --think 500ms --warmup 2s --no-probe --duration 600s";

#[test]
fn an_interrupt_ends_two_thousand_sessions_in_the_middle_of_a_long_window() {
    let dir = results();
    let mut running = start_on("null:", dir.path(), THINKING);
    let tasks = format!("/proc/{}/task", running.id());
    wait_for("2,000 threads", || std::fs::read_dir(&tasks).is_ok_and(|tasks| tasks.count() > 2000));
    std::thread::sleep(Duration::from_secs(3));
    signal(&running, Signal::SIGINT);
    wait_for("its end", || running.try_wait().unwrap().is_some());
    ended(running).fails(130, &[]);
    assert_eq!(leftovers(dir.path()), Vec::<String>::new());
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
