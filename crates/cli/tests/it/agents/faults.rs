//! Failures while agents run a test: of agents, the coordinator, the hub.

use super::{Fleet, SHORT};
use crate::common::*;

impl Fleet {
    /// Waits until the jobs of the newest run have run for a second, a second before the window or in it.
    fn wait_until_jobs_run(&self) {
        wait_for("the jobs to run", || {
            let newest = self.runs().into_iter().filter(|run| !run.join("tests.jsonl").exists()).max();
            let live = newest.map(|run| std::fs::read_to_string(run.join("live.jsonl")).unwrap_or_default());
            live.is_some_and(|live| live.contains("\"second\""))
        });
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn sessions(server: &Server) -> u32 {
    let of_jobs = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'loadline job %'";
    server.sql(of_jobs).unwrap().parse().unwrap()
}

/// Stops a2 in the first of two tests. It is named, the run ends, and the sessions that it leaves are ended.
fn lose_a2(fleet: &Fleet, target: &str) {
    let agents = fleet.agents.len() as u32;
    let more =
        format!("--workload LGWR-LAT25 --think 20ms --duration 3s --warmup 300ms --jobs {} --repeat 2", 2 * agents);
    let child = fleet.start(agents, target, &more);
    fleet.wait_until_jobs_run();
    // Its sessions stay on the database while it hangs.
    signal(&fleet.agents[1].0, Signal::SIGSTOP);
    let ran = ended(child);
    let tests = tests_of(&ran.folder());
    assert_eq!((ran.code, tests.len()), (3, 1), "{}", ran.said());
    assert!(!sound(&tests[0]), "{}", tests[0]);
    let agents = check(&tests[0], "agents");
    assert!(agents["outcome"] == "failed" && agents["detail"].to_string().contains("agent a2 on"), "{agents}");
    let lost = |n: &Value| n["note"] == "lost-agent" && n["agent"] == "a2" && n["ended"] == 2;
    assert!(tests[0]["notes"].as_array().unwrap().iter().any(lost), "{}", tests[0]["notes"]);
}

#[test]
fn a_lost_agent_is_named_and_its_sessions_on_postgres_are_ended() {
    let (fleet, server) = (Fleet::new("a1 a2 a3"), Server::start(&[]));
    lose_a2(&fleet, &server.tcp("boss", Some("tops3cret")));
    assert_eq!(sessions(&server), 0);
    signal(&fleet.agents[1].0, Signal::SIGCONT);
}

#[test]
fn a_lost_agent_is_named_and_its_sessions_on_mariadb_are_ended() {
    let (fleet, server) = (Fleet::new("a1 a2"), Maria::start(&[]));
    server.sql("CREATE DATABASE loads").unwrap();
    lose_a2(&fleet, &server.tcp("ann:tops3cret", "loads"));
    let sessions = || server.sql("SELECT count(*) FROM information_schema.processlist WHERE user = 'ann'");
    wait_for("the sessions to end", || sessions().is_ok_and(|n| n == "0"));
    signal(&fleet.agents[1].0, Signal::SIGCONT);
}

#[test]
fn an_agent_that_is_lost_before_a_test_is_named() {
    let (mut fleet, server) = (Fleet::new("a1 a2"), Server::start(&[]));
    let target = server.tcp("boss", Some("tops3cret"));
    let child = fleet.start(2, &target, &format!("{SHORT} --jobs 4"));
    // Its tables are not made yet.
    wait_for("the run", || !fleet.runs().is_empty());
    fleet.agents[0].0.kill().unwrap();
    ended(child).fails(3, &["agent a1 on"]);
}

#[test]
fn nothing_loads_the_database_after_the_run_is_gone() {
    let (fleet, server) = (Fleet::new("a1 a2"), Server::start(&[]));
    let more = "--workload LGWR-LAT25 --think 20ms --jobs 4 --duration 600s";
    let child = fleet.start(2, &server.tcp("boss", Some("tops3cret")), more);
    wait_for("the jobs to run", || sessions(&server) == 4);
    // Longer than a lease.
    std::thread::sleep(Duration::from_millis(2600));
    assert_eq!(sessions(&server), 4, "beats hold the lease");
    kill(child);
    wait_for("the sessions to end", || sessions(&server) == 0);
    fleet.wait_until_free();
}

#[test]
fn an_interrupted_run_goes_on_with_other_agents() {
    let (mut fleet, server) = (Fleet::new("a1 a2"), Server::start(&[]));
    let child =
        fleet.start(2, &server.url(), "--workload LGWR-LAT25 --think 20ms --jobs 2,4 --duration 2s --warmup 300ms");
    wait_for("the jobs of the second test", || sessions(&server) == 4);
    signal(&child, Signal::SIGINT);
    let ran = ended(child);
    let folder = ran.folder();
    let goes_on = format!("--resume {} {}", folder.display(), fleet.reach);
    ran.fails(130, &[&goes_on]);
    wait_for("the sessions to end", || sessions(&server) == 0);
    let first = tests_of(&folder);
    assert_eq!(first.len(), 1, "{}", ran.said());
    fleet.wait_until_free();
    fleet.agents.clear();
    fleet.add("b1", "");
    command(&format!("run {goes_on}")).fails(3, &["2 agents were asked for, 1 is free"]);
    let ran = command(&format!("run {goes_on} --agents 1"));
    assert_eq!(manifest_of(&folder)["plan"]["agents"]["agents"], 1);
    let tests = tests_of(&folder);
    assert_eq!(tests.len(), 2, "{}", ran.said());
    assert_eq!(tests[0], first[0], "what was measured stays");
    let by = tests[1]["by_agent"].as_array().unwrap();
    assert!(sound(&tests[1]) && by.len() == 1 && by[0]["name"] == "b1", "{}", tests[1]);
}

#[test]
#[ignore = "nightly: waits three times until a lease is over"]
fn a_hub_that_is_away_for_too_long_costs_a_test_and_not_the_agents() {
    let mut fleet = Fleet::new("a1 a2");
    let begin = |fleet: &Fleet, more: &str| {
        let more = format!("--workload LGWR-LAT1 --jobs 2 --duration 6s --warmup 300ms {more}");
        let child = fleet.start(2, "null:?pause=1ms", &more);
        fleet.wait_until_jobs_run();
        child
    };
    let child = begin(&fleet, "--repeat 2");
    fleet.hub.child = None;
    std::thread::sleep(Duration::from_millis(3500));
    fleet.hub.launch();
    let ran = ended(child);
    let tests = tests_of(&ran.folder());
    assert!(ran.code == 1 && tests.len() == 2, "{}", ran.said());
    let failed = check(&tests[0], "agents");
    let why = failed["detail"].as_str().unwrap();
    assert_eq!(failed["outcome"], "failed");
    for said in
        ["2 of 2 agents failed: agents a1 on", "nothing was heard of run", "the connection to the hub was broken for"]
    {
        assert!(why.contains(said), "{said}: {why}");
    }
    assert_eq!(tests[0]["elapsed_s"], 6.0, "the window is not taken for too short");
    assert!(sound(&tests[1]), "{}", ran.said());
    // For good: what was measured is there, and the hub is named.
    let child = begin(&fleet, "");
    fleet.hub.child = None;
    let ran = ended(child);
    let tests = tests_of(&ran.folder());
    assert!(tests.len() == 1 && !sound(&tests[0]), "{}", ran.said());
    ran.fails(3, &["lost in test 1", "the connection to the hub broke"]);
    // They come back by themselves.
    fleet.hub.launch();
    wait_for("the agents to be back", || fleet.listed().len() == 2);
}
