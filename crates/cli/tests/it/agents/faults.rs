//! What fails while agents run a test: agents, the coordinator, the hub.

use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::{Agents, Hub, SHORT, listed, over};
use crate::common::figures::check;
use crate::common::mariadb::Maria;
use crate::common::{Ran, Server, manifest_of, results, run, signal, sound, start, tests_of, wait_for};

/// Waits until the jobs of the newest run in `results` run, a second before the window or in it.
fn wait_until_jobs_run(results: &Path) {
    let runs = || std::fs::read_dir(results).unwrap().map(|run| run.unwrap().path());
    let newest = || runs().filter(|run| !run.join("tests.jsonl").exists()).max();
    wait_for("the jobs to run", || {
        let live = newest().map(|run| std::fs::read_to_string(run.join("live.jsonl")).unwrap_or_default());
        live.is_some_and(|live| live.contains("\"second\""))
    });
    std::thread::sleep(Duration::from_secs(1));
}

#[test]
fn a_lost_agent_is_named_and_the_next_test_has_the_others() {
    let (hub, results, server) = (Hub::start(&[]), results(), Server::start(&[]));
    let agents = Agents::start(&hub.url(), &["a1", "a2", "a3"], &[]);
    let more =
        ["--workload", "LGWR-LAT1", "--jobs", "6", "--duration", "3s", "--repeat", "2", "--on-agent-loss", "continue"];
    let args = over(&hub.url(), "3", &server.tcp("boss", Some("tops3cret")), results.path(), &more);
    let child = start(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let sessions = || server.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'loadline job %'");
    // Its sessions stay on the database while it hangs.
    let running = "SELECT count(*) FROM pg_stat_user_tables WHERE n_tup_ins > 50";
    wait_for("the jobs to run", || sessions().is_ok_and(|n| n == "6") && server.sql(running).is_ok_and(|n| n != "0"));
    std::thread::sleep(Duration::from_secs(1));
    signal(&agents.0[1].0, Signal::SIGSTOP);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(sessions(), Ok("0".to_owned()), "{}", ran.said());
    let tests = tests_of(&ran.folder());
    assert_eq!(tests.len(), 2, "{}", ran.said());
    assert!(!sound(&tests[0]) && check(&tests[0], "agents")["outcome"] == "failed", "{}", tests[0]);
    let why = check(&tests[0], "agents")["detail"].as_str().unwrap().to_owned();
    assert!(why.contains("1 of 3 agents failed: agent a2 on") && why.contains("did not answer"), "{why}");
    assert!(tests[0]["notes"].to_string().contains("ended 2 sessions that agent a2"), "{}", tests[0]["notes"]);
    assert!(sound(&tests[1]) && tests[1]["by_agent"].as_array().unwrap().len() == 2, "{}", tests[1]);
    signal(&agents.0[1].0, Signal::SIGCONT);
}

#[test]
fn an_agent_that_is_lost_before_a_test_is_named_and_the_plan_says_what_follows() {
    let (hub, results, server) = (Hub::start(&[]), results(), Server::start(&[]));
    let mut agents = Agents::start(&hub.url(), &["a1", "a2", "a3"], &[]);
    let mut lose = |agent: usize, args: &[String]| {
        let before = std::fs::read_dir(results.path()).unwrap().count();
        let child = start(&args.iter().map(String::as_str).collect::<Vec<_>>());
        // Its tables are not made yet.
        wait_for("the run", || std::fs::read_dir(results.path()).unwrap().count() > before);
        agents.0[agent].0.kill().unwrap();
        Ran::of(child.wait_with_output().unwrap())
    };
    let target = server.tcp("boss", Some("tops3cret"));
    let more = [&SHORT[..], &["--jobs", "4", "--repeat", "2", "--on-agent-loss"]].concat();
    let args = |agents, more: &[&str]| over(&hub.url(), agents, &target, results.path(), more);
    let ran = lose(1, &args("3", &[&more[..], &["continue"]].concat()));
    let tests = tests_of(&ran.folder());
    assert!(ran.err.contains("lost before test 1: agent a2 on"), "{}", ran.said());
    for test in &tests {
        assert_eq!(test["by_agent"].as_array().unwrap().len(), 2, "{}", ran.said());
        assert!(test["notes"].to_string().contains("lost before test 1: agent a2 on"), "{}", test["notes"]);
    }
    assert_eq!(tests.len(), 2, "{}", ran.said());
    // The default.
    let ran = lose(0, &args("2", &[&more[..], &["end"]].concat()));
    assert!(ran.code == 3 && ran.err.contains("lost before test 1: agent a1 on"), "{}", ran.said());
    assert!(ran.err.contains("--on-agent-loss continue"), "{}", ran.said());
    let ran = lose(2, &args("1", &[&more[..], &["continue"]].concat()));
    assert!(ran.code == 3 && ran.err.contains("no agent is left; lost before test 1: agent a3 on"), "{}", ran.said());
}

#[test]
fn sessions_that_a_lost_agent_leaves_on_mariadb_are_ended() {
    let (hub, results, server) = (Hub::start(&[]), results(), Maria::start(&[]));
    let agents = Agents::start(&hub.url(), &["a1", "a2"], &[]);
    server.sql("CREATE DATABASE loads").unwrap();
    let more = ["--workload", "LGWR-LAT1", "--jobs", "4", "--duration", "3s"];
    let args = over(&hub.url(), "2", &server.tcp("ann:tops3cret", "loads"), results.path(), &more);
    let child = start(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let sessions = || server.sql("SELECT count(*) FROM information_schema.processlist WHERE user = 'ann'");
    wait_until_jobs_run(results.path());
    signal(&agents.0[1].0, Signal::SIGSTOP);
    let ran = Ran::of(child.wait_with_output().unwrap());
    let tests = tests_of(&ran.folder());
    assert!(ran.code == 3 && tests.len() == 1 && !sound(&tests[0]), "{}", ran.said());
    assert!(tests[0]["notes"].to_string().contains("ended 2 sessions that agent a2"), "{}", tests[0]["notes"]);
    wait_for("the sessions to end", || sessions().is_ok_and(|n| n == "0"));
    signal(&agents.0[1].0, Signal::SIGCONT);
}

#[test]
fn nothing_loads_the_database_after_the_run_is_gone() {
    let (hub, results, server) = (Hub::start(&[]), results(), Server::start(&[]));
    let _agents = Agents::start(&hub.url(), &["a1", "a2"], &[]);
    let more = ["--workload", "LGWR-LAT1", "--jobs", "4", "--duration", "600s"];
    let args = over(&hub.url(), "2", &server.tcp("boss", Some("tops3cret")), results.path(), &more);
    let mut child = start(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let sessions = || server.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'loadline job %'");
    wait_for("the jobs to run", || sessions().is_ok_and(|n| n == "4"));
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(sessions(), Ok("4".to_owned()), "beats hold the lease");
    signal(&child, Signal::SIGKILL);
    child.wait().unwrap();
    wait_for("the sessions to end", || sessions().is_ok_and(|n| n == "0"));
    wait_for("the agents to be free again", || listed(&hub.url()).values().all(|a| a["state"] == "free"));
}

#[test]
fn an_interrupted_run_goes_on_with_other_agents() {
    let (hub, results, server) = (Hub::start(&[]), results(), Server::start(&[]));
    let agents = Agents::start(&hub.url(), &["a1", "a2"], &[]);
    let more = ["--workload", "LGWR-LAT1", "--jobs", "2,4", "--duration", "3s"];
    let args = over(&hub.url(), "2", &server.url(), results.path(), &more);
    let child = start(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let sessions = || server.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'loadline job %'");
    wait_for("the jobs of the second test", || sessions().is_ok_and(|n| n == "4"));
    signal(&child, Signal::SIGINT);
    let ran = Ran::of(child.wait_with_output().unwrap());
    let goes_on = format!("--resume {} --hub {}", ran.folder().display(), hub.url());
    assert!(ran.code == 130 && ran.err.contains(&goes_on), "{}", ran.said());
    wait_for("the sessions to end", || sessions().is_ok_and(|n| n == "0"));
    let folder = ran.folder();
    let first = tests_of(&folder);
    assert_eq!(first.len(), 1, "{}", ran.said());
    wait_for("the agents to be free again", || listed(&hub.url()).values().all(|a| a["state"] == "free"));
    drop(agents);
    let _others = Agents::start(&hub.url(), &["b1"], &[]);
    let resume = ["run", "--resume", folder.to_str().unwrap(), "--hub", &hub.url()];
    let few = run(&resume);
    assert!(few.code == 3 && few.err.contains("2 agents were asked for, 1 is free"), "{}", few.said());
    let ran = run(&[&resume[..], &["--agents", "1", "--on-agent-loss", "continue"]].concat());
    let manifest = manifest_of(&folder);
    let planned = &manifest["plan"]["agents"];
    assert!(planned["agents"] == 1 && planned["on_loss"] == "continue", "{planned}");
    let tests = tests_of(&folder);
    assert_eq!(tests.len(), 2, "{}", ran.said());
    assert_eq!(tests[0], first[0], "what was measured stays");
    let names: Vec<&str> = tests[1]["by_agent"].as_array().unwrap().iter().filter_map(|a| a["name"].as_str()).collect();
    assert_eq!(names, ["b1"]);
    assert!(sound(&tests[1]), "{}", tests[1]);
}

#[test]
fn a_hub_that_is_away_for_too_long_costs_a_test_and_not_the_agents() {
    let (mut hub, results) = (Hub::start(&[]), results());
    let _agents = Agents::start(&hub.url(), &["a1", "a2"], &[]);
    let args = |more: &[&str]| {
        let more =
            [&["--workload", "LGWR-LAT1", "--jobs", "2", "--duration", "6s", "--warmup", "300ms"], more].concat();
        over(&hub.url(), "2", "null:?pause=1ms", results.path(), &more)
    };
    let (twice, once) = (args(&["--repeat", "2"]), args(&[]));
    let begin = |args: &[String]| {
        let child = start(&args.iter().map(String::as_str).collect::<Vec<_>>());
        wait_until_jobs_run(results.path());
        child
    };
    let child = begin(&twice);
    hub.kill();
    std::thread::sleep(Duration::from_millis(3500));
    hub.again();
    let ran = Ran::of(child.wait_with_output().unwrap());
    let tests = tests_of(&ran.folder());
    assert!(ran.code == 1 && tests.len() == 2, "{}", ran.said());
    let failed = check(&tests[0], "agents");
    let why = failed["detail"].as_str().unwrap();
    assert!(failed["outcome"] == "failed" && why.contains("2 of 2 agents failed: agents a1 on"), "{why}");
    assert!(
        why.contains("nothing was heard of run") && why.contains("the connection to the hub was broken for"),
        "{why}"
    );
    assert_eq!(tests[0]["elapsed_s"], 6.0, "the window is not taken for too short");
    assert!(sound(&tests[1]), "{}", ran.said());
    // For good: what was measured is there, and the hub is named.
    let child = begin(&once);
    hub.kill();
    let ran = Ran::of(child.wait_with_output().unwrap());
    let tests = tests_of(&ran.folder());
    assert!(ran.code == 3 && tests.len() == 1 && !sound(&tests[0]), "{}", ran.said());
    assert!(
        ran.err.contains("no agent is left") && ran.err.contains("the connection to the hub broke"),
        "{}",
        ran.said()
    );
    // They come back by themselves.
    hub.again();
    wait_for("the agents to be back", || listed(&hub.url()).len() == 2);
}
