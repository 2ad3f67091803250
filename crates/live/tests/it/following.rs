//! A run folder that grows, shrinks or vanishes while it is watched.

use std::fs;
use std::path::PathBuf;

use loadline_live::now::{Follower, Standing};
use loadline_live::{Ended, WatchOptions, watch};
use loadline_model::live::LiveLine;
use loadline_model::manifest::RunState;
use tempfile::TempDir;

use crate::common::{begun, record, second, write_manifest};

/// A run folder, and that in which it is.
struct Run(PathBuf, #[expect(dead_code, reason = "removed with it")] TempDir);

impl Run {
    fn new() -> Run {
        let dir = tempfile::tempdir().unwrap();
        Run(dir.path().join("run"), dir)
    }

    fn manifest(&self, state: RunState) {
        write_manifest(&self.0, state);
    }

    /// Writes all that is said of it, with a piece of a line at the end.
    fn live(&self, lines: &[LiveLine], torn: &str) {
        let lines = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect::<String>();
        fs::write(self.0.join("live.jsonl"), lines + torn).unwrap();
    }

    fn tests(&self, numbers: &[u32]) {
        let line = |n: &u32| serde_json::to_string(&record(*n, None)).unwrap() + "\n";
        fs::write(self.0.join("tests.jsonl"), numbers.iter().map(line).collect::<String>()).unwrap();
    }
}

#[test]
fn a_run_is_followed_from_before_its_beginning_to_its_end() {
    let run = Run::new();
    let mut follower = Follower::new(&run.0);
    assert!(follower.look().problem.is_some(), "there is nothing yet");
    run.manifest(RunState::Started);
    let now = follower.look();
    assert_eq!((now.problem.as_deref(), now.is_open()), (None, true));
    assert_eq!(now.to_come(), ["LGWR-LAT1", "LGWR-THR", "TP-MIXED"]);
    run.live(&[begun(0.0, 1), second(1, 1.0)], "");
    let now = follower.look();
    assert_eq!((now.test().unwrap().test, now.seconds.len()), (1, 1));
    assert_eq!(now.to_come(), ["LGWR-THR", "TP-MIXED"]);
    assert_eq!([50.0, 1000.0].map(|s| now.left_s(s)), [Some(150.0), Some(0.0)], "never less than nothing");
    // The test is done; the next second is torn.
    run.tests(&[1]);
    run.live(&[begun(0.0, 1), second(1, 1.0)], "{\"at_s\":");
    let now = follower.look();
    assert_eq!((now.records.len(), now.test(), now.seconds.len()), (1, None, 1));
    run.manifest(RunState::Complete);
    let now = follower.look();
    assert!(!now.is_open() && now.left_s(0.0).is_none() && now.to_come().is_empty(), "{now:?}");
    assert_eq!(now.state(1e9), Standing::Ended(RunState::Complete));
}

#[test]
fn what_shrinks_or_is_replaced_is_read_anew_and_damage_is_said() {
    let run = Run::new();
    run.manifest(RunState::Started);
    run.tests(&[1, 2, 3]);
    run.live(&[second(1, 1.0), second(1, 2.0)], "");
    let mut follower = Follower::new(&run.0);
    assert_eq!(follower.look().records.len(), 3);
    run.tests(&[1]);
    run.live(&[second(1, 9.0)], "");
    let now = follower.look();
    assert_eq!(now.records.iter().map(|r| r.test).collect::<Vec<_>>(), [1]);
    assert_eq!(now.seconds.iter().map(|s| s.elapsed_s).collect::<Vec<_>>(), [9.0]);
    // What is known stays.
    fs::write(run.0.join("manifest.json"), "{").unwrap();
    let now = follower.look();
    assert!(now.problem.as_ref().is_some_and(|p| p.contains("damaged")) && now.seconds.len() == 1, "{now:?}");
    run.manifest(RunState::Started);
    assert_eq!(follower.look().problem, None);
    fs::remove_dir_all(&run.0).unwrap();
    let now = follower.look();
    assert!(now.problem.as_ref().is_some_and(|p| p.contains("gone")) && now.records.is_empty(), "{now:?}");
    run.manifest(RunState::Started);
    run.tests(&[1, 2]);
    let now = follower.look();
    assert_eq!((now.problem.as_deref(), now.records.len()), (None, 2), "it is there again");
}

#[test]
fn silence_is_said() {
    let now = crate::common::now();
    assert_eq!(now.state(21.0), Standing::Running);
    assert!(now.state(80.0).to_string().contains("nothing heard for 1 min 00 s"), "{}", now.state(80.0));
}

#[test]
fn the_newest_run_is_watched_from_one_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("2026-11-20-161530-postgres"), dir.path().join("2999-01-01-000000-postgres"));
    write_manifest(&old, RunState::Interrupted);
    let (stop, newest_in) = (std::sync::Arc::default(), Some(dir.path().to_owned()));
    let options = WatchOptions { run: old, newest_in, plain: true, colours: false, stop };
    let (mut out, mut said) = std::io::pipe().unwrap();
    let watching = std::thread::spawn(move || watch(&options, &mut said).unwrap());
    // What was over before it began does not end it.
    let mut heard = String::new();
    while !heard.contains("waiting for one that begins now") {
        let mut some = [0; 1024];
        let n = std::io::Read::read(&mut out, &mut some).unwrap();
        assert!(n > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&some[..n]));
    }
    write_manifest(&new, RunState::Complete);
    let text = fs::read_to_string(new.join("manifest.json")).unwrap();
    fs::write(new.join("manifest.json"), text.replace("2026-11-20T16:15:30", "2999-01-01T00:00:00")).unwrap();
    let ended = watching.join().unwrap();
    assert_eq!(ended, Ended::Done, "{heard}");
}
