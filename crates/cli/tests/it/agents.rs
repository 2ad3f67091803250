//! Runs over agents: a real hub, agents as processes.

mod faults;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::common::figures::check;
use crate::common::mariadb::Maria;
use crate::common::{
    Killed, Ran, Server, free_port, loadline, ok, results, run, sound, sound_tests, start, tests_of, wait_for, words,
};

/// How to get the hub: said by every test that needs it, which then fails.
const INSTALL: &str = "nats-server is missing: apt-get install nats-server (./test does it as root)";

/// A hub of the test's own.
struct Hub {
    child: Option<Killed>,
    port: u16,
    options: Vec<String>,
}

impl Hub {
    fn start(options: &[&str]) -> Hub {
        let port = free_port();
        let options: Vec<String> = options.iter().map(|o| (*o).to_owned()).collect();
        Hub { child: Some(Hub::launch(port, &options)), port, options }
    }

    fn launch(port: u16, options: &[String]) -> Killed {
        let known = [PathBuf::from("/usr/sbin/nats-server"), PathBuf::from("/usr/local/bin/nats-server")];
        let program = known.into_iter().find(|p| p.exists()).unwrap_or_else(|| PathBuf::from("nats-server"));
        let mut command = Command::new(program);
        command.args(["-a", "127.0.0.1", "-p", &port.to_string()]).args(options);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect(INSTALL);
        wait_for("the hub to answer", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Killed(child)
    }

    fn kill(&mut self) {
        drop(self.child.take());
    }

    fn again(&mut self) {
        self.child = Some(Hub::launch(self.port, &self.options));
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }
}

/// Agents of the test, ended with it.
struct Agents(Vec<Killed>);

impl Agents {
    fn start(hub: &str, names: &[&str], more: &[&str]) -> Agents {
        let agent = |name: &&str| {
            let mut command = loadline();
            command.args(["agent", "--hub", hub, "--name", name]).args(more);
            Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
        };
        let agents = Agents(names.iter().map(agent).collect());
        wait_for("the agents to be at the hub", || listed(hub).len() >= names.len());
        agents
    }
}

/// `loadline agents list`, by name.
fn listed(hub: &str) -> BTreeMap<String, Value> {
    let ran = run(&["agents", "list", "--hub", hub, "--format", "json"]);
    let rows: Vec<Value> = serde_json::from_str(&ran.out).unwrap_or_default();
    rows.into_iter().map(|row| (row["name"].as_str().unwrap().to_owned(), row)).collect()
}

fn over(hub: &str, agents: &str, target: &str, results: &Path, more: &[&str]) -> Vec<String> {
    let fixed = ["run", "--hub", hub, "--agents", agents, "--target", target, "--no-probe", "--results"];
    let fixed = fixed.into_iter().chain([results.to_str().unwrap()]);
    fixed.chain(more.iter().copied()).map(str::to_owned).collect()
}

fn measure(args: &[String]) -> Ran {
    run(&args.iter().map(String::as_str).collect::<Vec<_>>())
}

const SHORT: [&str; 6] = ["--workload", "LGWR-LAT1", "--duration", "1s", "--warmup", "300ms"];

#[test]
fn jobs_are_spread_over_agents_and_add_up() {
    let (hub, results) = (Hub::start(&[]), results());
    let _agents = Agents::start(&hub.url(), &["a1", "a2", "a10"], &["--max-jobs", "4"]);
    let there = listed(&hub.url());
    assert_eq!(there.len(), 3);
    assert!(there["a2"]["state"] == "free" && there["a2"]["max_jobs"] == 4, "{there:?}");
    let more = [&SHORT[..], &["--jobs", "2,7", "--repeat", "1"]].concat();
    let ran = measure(&over(&hub.url(), "3", "null:?pause=1ms", results.path(), &more));
    let tests = sound_tests(&ran);
    assert!(ran.err.contains("agents, skew"), "the skew is printed: {}", ran.said());
    assert_eq!(tests.len(), 2);
    // Two jobs need two agents; seven are spread evenly, in the order of the names.
    let parts = |test: &Value, of: &str| -> Vec<u64> {
        test["by_agent"].as_array().unwrap().iter().map(|a| a[of].as_u64().unwrap()).collect()
    };
    assert_eq!((parts(&tests[0], "jobs"), parts(&tests[1], "jobs")), (vec![1, 1], vec![3, 2, 2]));
    assert_eq!(parts(&tests[1], "first_job"), [0, 3, 5]);
    let names: Vec<&str> =
        tests[1]["by_agent"].as_array().unwrap().iter().map(|a| a["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a1", "a2", "a10"]);
    for test in &tests {
        let agents = test["by_agent"].as_array().unwrap();
        let sum: f64 = agents.iter().map(|a| a["tps"].as_f64().unwrap()).sum();
        let all = test["commit_throughput_tps"].as_f64().unwrap();
        assert!((sum / all - 1.0).abs() < 1e-9, "{sum} {all}");
        let skew = agents.iter().map(|a| a["start_skew_ms"].as_f64().unwrap()).fold(0.0, f64::max);
        assert_eq!(check(test, "agents")["outcome"] == "passed", skew > 0.0 && skew <= 2.0, "{skew}");
    }
    let csv = ok(&["report", ran.folder().to_str().unwrap(), "--format", "csv", "--output", "-"]).out;
    assert!(csv.lines().next().unwrap().contains("agents,start_skew_ms"), "{csv}");
    let html = std::fs::read_to_string(ran.folder().join("report/index.html")).unwrap();
    assert!(html.contains("id=\"agents\"") && html.contains("a10"), "the table of agents");
    // More jobs than all agents run.
    let more = [&SHORT[..], &["--jobs", "13"]].concat();
    let ran = measure(&over(&hub.url(), "3", "null:", results.path(), &more));
    assert!(ran.code == 2 && ran.err.contains("13 jobs are more than the agents run, which is 12"), "{}", ran.said());
    wait_for("the agents to be free", || listed(&hub.url()).values().all(|a| a["state"] == "free"));
}

#[test]
fn a_server_is_loaded_by_agents_that_it_is_sent_to() {
    let (results, server) = (results(), Server::start(&[]));
    // The file is longer than the longest message that this hub takes, and compresses to half of it.
    let config = results.path().join("hub.conf");
    std::fs::write(&config, "max_payload: 10000").unwrap();
    let hub = Hub::start(&["-c", config.to_str().unwrap()]);
    let _agents = Agents::start(&hub.url(), &["a1", "a2"], &[]);
    let file = results.path().join("mine.toml");
    let digits: String = (0..4000u64).map(|n| format!("{:016x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    std::fs::write(&file, format!("# {digits}\n{}", std::fs::read_to_string(example()).unwrap())).unwrap();
    let target = server.tcp("boss", Some("tops3cret"));
    let more =
        ["--workload-file", file.to_str().unwrap(), "--workload", "LGWR-LAT1", "--jobs", "5", "--duration", "2s"];
    let ran = measure(&over(&hub.url(), "2", &target, results.path(), &[&more[..], &["--size", "8MiB"]].concat()));
    assert!(!ran.said().contains("tops3cret"));
    let tests = tests_of(&ran.folder());
    assert!(!tests.is_empty(), "{}", ran.said());
    for test in &tests {
        assert!(sound(test), "{test}");
        assert_eq!(check(test, "errors")["outcome"], "passed", "{test}");
        // The database counted what the agents say, and has the rows that they say.
        let counted = check(test, "commits-database");
        assert_eq!(counted["outcome"], "passed", "{counted}");
        assert!(check(test, "work-evidence")["outcome"] != "failed", "{test}");
    }
    // Files that may be opened bound sessions on a server, here and on agents, and no jobs on null:.
    let with_files = |args: &[&str]| {
        let mut command = Command::new("sh");
        command
            .args(["-c", "ulimit -n 210; exec \"$0\" \"$@\"", loadline().get_program().to_str().unwrap()])
            .args(args);
        command.env("LOADLINE_ALLOW_DISTURBED", "1");
        command
    };
    let before = std::fs::read_dir(results.path()).unwrap().count();
    let folder = results.path().to_str().unwrap();
    let line = ["run", "--target", &target, "--driver", "client", "--results", folder, "--jobs", "11", "--no-probe"];
    let ran = Ran::of(with_files(&[&line[..], &SHORT].concat()).output().unwrap());
    assert!(ran.code == 2 && ran.err.contains("11 jobs need 211 open files"), "{}", ran.said());
    assert_eq!(std::fs::read_dir(results.path()).unwrap().count(), before, "no run was begun");
    let mut agent = with_files(&["agent", "--hub", &hub.url(), "--name", "a0", "--max-jobs", "40"]);
    let limited = Killed(agent.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_for("the agent", || listed(&hub.url()).get("a0").is_some_and(|agent| agent["max_jobs"] == 10));
    let more = [&SHORT[..], &["--jobs", "11"]].concat();
    let ran = measure(&over(&hub.url(), "1", &target, results.path(), &more));
    assert!(
        ran.code == 2 && ran.err.contains("11 jobs are more than the agents run, which is 10 (a0 10)"),
        "{}",
        ran.said()
    );
    assert!(ran.err.contains("ulimit -Hn"), "{}", ran.said());
    let ran = measure(&over(&hub.url(), "1", "null:?pause=1ms", results.path(), &more));
    sound_tests(&ran);
    drop(limited);
    // Whoever lacks the password says so, and which agent it is.
    let more = [&SHORT[..], &["--jobs", "2", "--agent-credentials", "local"]].concat();
    let ran = measure(&over(&hub.url(), "2", &target, results.path(), &more));
    assert!(ran.code == 3 && ran.err.contains("agent a1 on") && ran.err.contains("agent a2 on"), "{}", ran.said());
    assert!(ran.err.contains("password"), "{}", ran.said());
}

#[test]
fn populations_are_those_of_one_process() {
    let (hub, results) = (Hub::start(&[]), results());
    let _agents = Agents::start(&hub.url(), &["a1", "a2"], &[]);
    let plan = results.path().join("mixed.toml");
    let text = "workload = [\"LGWR-LAT1\"]\nduration = \"1s\"\nwarmup = \"300ms\"\n\
                [[populations]]\njobs = 5\n[[populations]]\njobs = 3\nthink = \"20ms\"\n\
                [[populations]]\njobs = 1\nrate = 50\n";
    std::fs::write(&plan, text).unwrap();
    let args = over(&hub.url(), "2", "null:?pause=2ms", results.path(), &[plan.to_str().unwrap()]);
    let ran = measure(&args);
    let tests = sound_tests(&ran);
    let of = |part: usize, figure: &str| tests[0]["populations"][part][figure].as_f64().unwrap();
    // Five jobs of 2 ms, three of 22, one of 20: on a busy machine they do less, and no more but by chance.
    let tps = [of(0, "tps"), of(1, "tps"), of(2, "tps")];
    assert!(tps[0] <= 2600.0 && (1.0..=200.0).contains(&tps[1]) && (1.0..=60.0).contains(&tps[2]), "{tps:?}");
    let all = tests[0]["commit_throughput_tps"].as_f64().unwrap();
    assert!((tps.iter().sum::<f64>() / all - 1.0).abs() < 1e-6, "{tps:?} {all}");
}

/// A workload file of the documentation.
fn example() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    files.sort();
    files.remove(0)
}

#[test]
fn a_hub_with_tls_and_keys_is_used_by_those_who_have_them() {
    // The hub has the server's certificate.
    let server = Maria::start(&[]);
    server.sql("CREATE DATABASE loads").unwrap();
    let at = |name: &str| server.file(name);
    let (known, stranger) = (nkeys::KeyPair::new_user(), nkeys::KeyPair::new_user());
    for (name, key) in [("known.nk", &known), ("stranger.nk", &stranger)] {
        std::fs::write(at(name), key.seed().unwrap() + "\n").unwrap();
    }
    std::fs::write(at("no.nk"), "known").unwrap();
    let users = format!("authorization {{ users = [ {{ nkey: {} }} ] }}\n", known.public_key());
    std::fs::write(at("hub.conf"), users).unwrap();
    let options = ["-c", &at("hub.conf"), "--tls", "--tlscert", &at("server.crt"), "--tlskey", &at("server.key")];
    let (hub, results) = (Hub::start(&options), results());
    let url = format!("tls://localhost:{}", hub.port);
    let list =
        |ca: &str, key: &str| run(&["agents", "list", "--hub", &url, "--hub-ca", &at(ca), "--hub-nkey", &at(key)]);
    for (ca, key, code, said) in [
        ("ca.crt", "stranger.nk", 3, "refuses"),
        ("other.crt", "known.nk", 3, "--hub-ca"),
        ("no.crt", "known.nk", 2, "no.crt"),
        ("ca.crt", "no.nk", 2, "holds no seed of an nkey"),
        ("ca.crt", "known.nk", 0, "no agent is at the hub"),
    ] {
        let ran = list(ca, key);
        assert!(ran.code == code && ran.err.contains(said), "{ca} {key}: {}", ran.said());
        assert!(!ran.said().contains(&known.seed().unwrap()), "{}", ran.said());
    }
    // The same from the environment, where there are no files.
    let from_environment = |ca: &str| {
        let mut command = loadline();
        command.env("LOADLINE_HUB_CA", std::fs::read_to_string(at(ca)).unwrap());
        command.env("LOADLINE_HUB_NKEY", known.seed().unwrap()).args(["agents", "list", "--hub", &url]);
        Ran::of(command.output().unwrap())
    };
    assert_eq!(["ca.crt", "other.crt"].map(|ca| from_environment(ca).code), [0, 3]);
    let creds = run(&["agents", "list", "--hub", &url, "--hub-ca", &at("ca.crt"), "--hub-creds", &at("ca.crt")]);
    assert!(creds.code == 2 && creds.err.contains("--hub-creds holds no credentials"), "{}", creds.said());
    let own = ["--hub-ca", &at("ca.crt"), "--hub-nkey", &at("known.nk")];
    let agent = |name: &str| {
        let mut command = loadline();
        command.args(["agent", "--hub", &url, "--name", name]).args(own);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let _agents = Agents(["a1", "a2"].map(|name| Killed(agent(name))).into());
    wait_for("the agents to be at the hub", || list("ca.crt", "known.nk").out.matches("free").count() == 2);
    // The password travels, because the way is encrypted; and the server's counters say what the agents do.
    let more = [&own[..], &["--workload", "LGWR-LAT1", "--jobs", "3", "--duration", "2s"]].concat();
    let ran = measure(&over(&url, "2", &server.tcp("ann:tops3cret", "loads"), results.path(), &more));
    let tests = tests_of(&ran.folder());
    assert!(sound(&tests[0]), "{}", ran.said());
    for id in ["errors", "commits-database", "work-evidence"] {
        assert_eq!(check(&tests[0], id)["outcome"], "passed", "{}", ran.said());
    }
}

#[test]
fn what_cannot_be_is_said_before_anything_starts() {
    let (hub, results) = (Hub::start(&["--auth", "s3cretT0ken"]), results());
    let with_token = format!("nats://s3cretT0ken@127.0.0.1:{}", hub.port);
    let _agents = Agents::start(&with_token, &["a1"], &[]);
    let nowhere = format!("nats://127.0.0.1:{}", free_port());
    for (hub, agents, target, more, code, said) in [
        (nowhere.as_str(), "1", "null:", &[][..], 3, "cannot be reached"),
        (&hub.url(), "1", "null:", &[], 3, "refuses"),
        (&with_token, "3", "null:", &[], 3, "3 agents were asked for, 1 is free at the hub: a1 on"),
        (&with_token, "1", "sqlite:", &[], 2, "agents cannot reach sqlite:"),
        (&with_token, "1", "null:", &["--driver", "database"], 2, "agents are for the client driver"),
        (&with_token, "0", "null:", &[], 2, "0 agents must be between 1 and"),
        ("http://h:1", "1", "null:", &[], 2, "'http://h:1' is no URL of a hub: write nats://HOST:PORT"),
        (&with_token, "1", "postgres://nobody@127.0.0.1:1/x", &[], 3, "agent a1 on"),
    ] {
        let more = [&SHORT[..], &["--jobs", "1"], more].concat();
        let ran = measure(&over(hub, agents, target, results.path(), &more));
        assert!(ran.code == code && ran.err.contains(said), "{hub} {target}: {said}\n{}", ran.said());
        assert!(!ran.said().contains("s3cretT0ken"), "{}", ran.said());
    }
    assert!(std::fs::read_dir(results.path()).unwrap().next().is_none(), "no run was begun");
    let known = Hub::start(&["--user", "ann", "--pass", "s3cretT0ken"]);
    for (url, code) in [("ann:s3cretT0ken@", 0), ("ann:wrong@", 3), ("", 3)] {
        let ran = run(&["agents", "list", "--hub", &format!("nats://{url}127.0.0.1:{}", known.port)]);
        assert!(ran.code == code && !ran.said().contains("s3cretT0ken"), "{url} {}", ran.said());
    }
    let twice = run(&["agent", "--hub", &with_token, "--name", "a1"]);
    assert!(twice.code == 2 && twice.err.contains("an agent with the name a1 already"), "{}", twice.said());
    // Also if they start at the same moment: one of them stays.
    let mut same: Vec<Killed> =
        (0..3).map(|_| Killed(start(&["agent", "--hub", &with_token, "--name", "same"]))).collect();
    let mut stay = || same.iter_mut().map(|a| usize::from(a.0.try_wait().unwrap().is_none())).sum::<usize>();
    wait_for("one to stay", || stay() <= 1);
    wait_for("it to be there", || listed(&with_token).contains_key("same"));
    assert_eq!(stay(), 1);
    let arms = words("ab --agents 1 --target null: --workload LGWR-LAT1 --target-b null:?pause=1us --hub");
    let pair = run(&[&arms[..], &[&with_token]].concat());
    assert!(pair.code == 2 && pair.err.contains("two arms cannot be measured with agents"), "{}", pair.said());
    let alone = run(&["run", "--agents", "2", "--target", "null:"]);
    assert!(alone.code == 2 && alone.err.contains("--hub nats://HOST:PORT"), "{}", alone.said());
}
