//! Runs over agents: a real hub, agents as processes.

#[cfg(feature = "servers")]
mod faults;

use std::collections::BTreeMap;

use crate::commands::hold;
use crate::common::*;

/// How to get the hub: said by every test that needs it, which then fails.
const INSTALL: &str = "nats-server is missing: apt-get install nats-server (./test does it as root)";
const SHORT: &str = "--workload LGWR-LAT25 --duration 1s --warmup 300ms";

struct Hub {
    child: Option<Killed>,
    port: u16,
    options: String,
}

impl Hub {
    fn start(options: &str) -> Hub {
        let mut hub = Hub { child: None, port: free_port(), options: options.to_owned() };
        hub.launch();
        hub
    }

    fn launch(&mut self) {
        let known = ["/usr/sbin/nats-server", "/usr/local/bin/nats-server"].into_iter().find(|p| Path::new(p).exists());
        let mut command = Command::new(known.unwrap_or("nats-server"));
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string()]).args(words(&self.options));
        self.child = Some(quiet(command.stdin(Stdio::null()), INSTALL));
        wait_for("the hub to answer", || std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }
}

fn quiet(command: &mut Command, why: &str) -> Killed {
    Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect(why))
}

/// A hub, agents at it, and a folder for the results of runs over them; all end with it.
struct Fleet {
    hub: Hub,
    /// With which words a run, an agent and a list reach the hub.
    reach: String,
    agents: Vec<Killed>,
    results: tempfile::TempDir,
}

impl Fleet {
    fn new(names: &str) -> Fleet {
        Fleet::at("", "", names, "")
    }

    /// A hub with options that is reached with `login`, and agents with more options.
    fn at(options: &str, login: &str, names: &str, more: &str) -> Fleet {
        let hub = Hub::start(options);
        let reach = format!("--hub nats://{login}127.0.0.1:{}", hub.port);
        let mut fleet = Fleet { hub, reach, agents: Vec::new(), results: results() };
        fleet.add(names, more);
        fleet
    }

    fn add(&mut self, names: &str, more: &str) {
        for name in words(names) {
            let line = format!("agent {} --name {name} {more}", self.reach);
            self.agents.push(quiet(loadline().args(words(&line)), "an agent"));
        }
        wait_for("the agents to be at the hub", || words(names).iter().all(|name| self.listed().contains_key(*name)));
    }

    /// `loadline agents list`, by name.
    fn listed(&self) -> BTreeMap<String, Value> {
        let ran = command(&format!("agents list {} --format json", self.reach));
        let rows: Vec<Value> = serde_json::from_str(&ran.out).unwrap_or_default();
        rows.into_iter().map(|row| (row["name"].as_str().unwrap().to_owned(), row)).collect()
    }

    fn wait_until_free(&self) {
        wait_for("the agents to be free", || self.listed().values().all(|agent| agent["state"] == "free"));
    }

    fn line(&self, agents: u32, more: &str) -> String {
        format!("{} --agents {agents} --no-probe {more}", self.reach)
    }

    fn run(&self, agents: u32, target: &str, more: &str) -> Ran {
        on(target, &self.results, &self.line(agents, more))
    }

    fn start(&self, agents: u32, target: &str, more: &str) -> Child {
        start_on(target, &self.results, &self.line(agents, more))
    }

    fn runs(&self) -> Vec<PathBuf> {
        std::fs::read_dir(&self.results).unwrap().map(|run| run.unwrap().path()).collect()
    }
}

#[test]
fn jobs_are_spread_over_agents_and_add_up() {
    let fleet = Fleet::at("", "", "a1 a2 a10", "--max-jobs 4");
    let there = fleet.listed();
    assert_eq!(there.len(), 3);
    assert!(there["a2"]["state"] == "free" && there["a2"]["max_jobs"] == 4, "{there:?}");
    hold_runs(include_str!("data/demands/agents.toml"), &[("{hub}", &fleet.reach)]);
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn a_server_is_loaded_by_agents_that_it_is_sent_to() {
    let (server, fleet) = (Server::start(&[]), Fleet::new("a1 a2"));
    let names = [("{url}", &*server.tcp("boss", Some("tops3cret"))), ("{hub}", &fleet.reach)];
    hold_runs(include_str!("data/demands/sent.toml"), &names);
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn open_files_bound_sessions_on_a_server_here_and_on_agents_and_no_jobs_on_null() {
    let (mut fleet, server) = (Fleet::new(""), Server::start(&[]));
    let target = server.tcp("boss", Some("tops3cret"));
    let with_files = |line: &str| {
        let mut command = Command::new("sh");
        let program = loadline().get_program().to_owned();
        command.args(["-c", "ulimit -n 210; exec \"$0\" \"$@\""]).arg(program).args(words(line));
        command
    };
    let folder = fleet.results.path().display();
    let line = format!("run --target {target} --driver client --results {folder} --jobs 11 --no-probe {SHORT}");
    Ran::from_output(with_files(&line).output().unwrap()).fails(2, &["11 jobs need 211 open files"]);
    assert!(fleet.runs().is_empty(), "no run was begun");
    let agent = with_files(&format!("agent {} --name a0 --max-jobs 40", fleet.reach));
    fleet.agents.push(quiet(&mut { agent }, "an agent"));
    wait_for("the agent", || fleet.listed().get("a0").is_some_and(|agent| agent["max_jobs"] == 10));
    let more = format!("{SHORT} --jobs 11");
    let ran = fleet.run(1, &target, &more);
    ran.fails(2, &["11 jobs are more than the agents run, which is 10 (a0 10)", "ulimit -Hn"]);
    sound_tests(&fleet.run(1, "null:?pause=1ms", &more));
}

#[test]
#[cfg_attr(not(feature = "servers"), ignore = "a server: ./test")]
fn a_hub_with_tls_is_used_by_those_who_trust_its_certificate() {
    // The hub has the server's certificate.
    let server = Maria::start(&[]);
    server.sql("CREATE DATABASE loads").unwrap();
    let [certificate, key] = ["server.crt", "server.key"].map(|name| server.file(name));
    let hub = Hub::start(&format!("--auth s3cretT0ken --tls --tlscert {certificate} --tlskey {key}"));
    let reach = format!("--hub tls://s3cretT0ken@localhost:{}", hub.port);
    let trusting = |ca: &str, line: &str| {
        let mut command = loadline();
        command.env("SSL_CERT_FILE", server.file(ca)).args(words(line));
        command
    };
    for (ca, code, said) in [("other.crt", 3, "SSL_CERT_FILE"), ("ca.crt", 0, "no agent is at the hub")] {
        let ran = Ran::from_output(trusting(ca, &format!("agents list {reach}")).output().unwrap());
        ran.fails(code, &[said]);
        assert!(!ran.said().contains("s3cretT0ken"), "{}", ran.said());
    }
    let agent = |name: &str| quiet(&mut trusting("ca.crt", &format!("agent {reach} --name {name}")), "an agent");
    let _agents = ["a1", "a2"].map(agent);
    let there = || Ran::from_output(trusting("ca.crt", &format!("agents list {reach}")).output().unwrap()).out;
    wait_for("the agents to be at the hub", || there().contains("a1") && there().contains("a2"));
    // The password travels, because the way is encrypted; and the server's counters say what the agents do.
    let (results, target) = (results(), server.tcp("ann:tops3cret", "loads"));
    let more = "--workload LGWR-LAT25 --jobs 3 --duration 1s --warmup 300ms --agents 2 --no-probe";
    let line = format!("run {more} {reach} --target {target} --results {}", results.path().display());
    let ran = Ran::from_output(trusting("ca.crt", &line).output().unwrap());
    let tests = tests_of(&ran.folder());
    assert!(sound(&tests[0]), "{}", ran.said());
    ["errors", "commits-database", "work-evidence"].iter().for_each(|id| passed(&tests[0], id));
}

#[test]
fn what_cannot_be_is_said_before_anything_starts() {
    let fleet = Fleet::at("--auth s3cretT0ken", "s3cretT0ken@", "a1", "");
    let with_user = Hub::start("--user ann --pass s3cretT0ken");
    let [port, known, nowhere] = [fleet.hub.port, with_user.port, free_port()].map(|port| port.to_string());
    let results = fleet.results.path().display().to_string();
    let names = [("{port}", port.as_str()), ("{known}", &known), ("{nowhere}", &nowhere), ("{results}", &results)];
    hold(include_str!("data/agents.toml"), &names);
    assert!(fleet.runs().is_empty(), "no run was begun");
}
