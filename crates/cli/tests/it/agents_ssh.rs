//! `loadline agents ssh` with a private sshd on this machine, and a stand-in for the agent.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::common::{Killed, Ran, free_port, loadline, run, signal, wait_for};

/// How to get what the tests need: said by each that lacks it, which then fails.
const INSTALL: &str = "OpenSSH is missing: apt-get install openssh-server openssh-client (./test does it as root)";
/// In all tokens of the hubs.
const TOKEN: &str = "t0pt0ken";

/// An sshd of the test's own: its keys, its port, its users' home.
struct Sshd {
    /// Ends before its folder goes.
    _child: Killed,
    dir: tempfile::TempDir,
    port: u16,
}

fn done(command: &mut Command) {
    let out = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}; {INSTALL}"));
    assert!(out.status.success(), "{command:?}: {}; {INSTALL}", String::from_utf8_lossy(&out.stderr));
}

fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Sshd {
    fn start(settings: &str) -> Sshd {
        let dir = tempfile::Builder::new().prefix("loadline-sshd-").tempdir_in("/var/tmp").unwrap();
        let at = |name: &str| dir.path().join(name);
        for key in ["host", "key", "stranger"] {
            done(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(at(key)));
        }
        fs::create_dir_all(at("home")).unwrap();
        fs::create_dir_all(at("bin")).unwrap();
        if nix::unistd::geteuid().is_root() {
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let port = free_port();
        let here = dir.path().display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {here}/host\nAuthorizedKeysFile {here}/key.pub\nPidFile none\n\
             UsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             PermitRootLogin prohibit-password\nMaxStartups 100\nSetEnv HOME={here}/home PATH={here}/bin:/usr/bin:/bin\n{settings}\n"
        );
        fs::write(at("config"), config).unwrap();
        let host_key = fs::read_to_string(at("host.pub")).unwrap();
        fs::write(at("known"), format!("[127.0.0.1]:{port} {host_key}")).unwrap();
        fs::write(at("nobody"), "").unwrap();
        // Nothing of the tester's own configuration, keys and known hosts.
        for (name, known) in [("ssh", "known"), ("ssh-new", "nobody")] {
            let text = "#!/bin/sh\nexec ssh -F /dev/null -o IdentitiesOnly=yes -o IdentityAgent=none ";
            script(&at(name), &format!("{text}-o UserKnownHostsFile={here}/{known} \"$@\"\n"));
        }
        // An agent that says what it was given, connects to its hub and stays until it is ended.
        script(
            &at("agent"),
            "#!/bin/bash\nhub=${LOADLINE_HUB##*@}\nexec 3<>/dev/tcp/${hub%:*}/${hub##*:}\nread -r hello <&3\n\
             [[ $LOADLINE_HUB == nats://t0pt0ken-*@* ]] && token='has the token'\n\
             [[ $LOADLINE_HUB_NKEY == SU* ]] && token=\"$token and the key\"\n\
             [[ $LOADLINE_HUB_CREDS == *t0pcr3ds$'\\n'* ]] && token=\"$token, credentials\"\n\
             [[ $LOADLINE_HUB_CA == CA$'\\n'two ]] && token=\"$token and certificates\"\n\
             echo \"agent $3 $token and hears $hello\" >&2\necho $$ > ${0%/*}/$3.pid\ntrap 'echo bye; exit 0' TERM\n\
             while :; do sleep 0.05; done\n",
        );
        let log = fs::File::create(at("log")).unwrap();
        let child = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f"])
            .arg(at("config"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|e| panic!("{e}: {INSTALL}"));
        wait_for("sshd", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Sshd { dir, _child: Killed(child), port }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    fn host(&self) -> String {
        format!("ssh://127.0.0.1:{}", self.port)
    }

    /// `loadline agents ssh` to these hosts, with the test's own ssh, key and stand-in; `more` comes after.
    fn command(&self, hosts: &[&str], hub: &Hub, more: &[&str]) -> Command {
        let mut command = loadline();
        command.args(["agents", "ssh"]).args(hosts).arg("--hub").arg(hub.url());
        for (flag, name) in [("--ssh", "ssh"), ("--identity", "key"), ("--binary", "agent")] {
            let replaced = more.contains(&flag) || flag == "--binary" && more.contains(&"--copy");
            if !replaced {
                command.args([flag, &self.text(name)]);
            }
        }
        command.args(more);
        command
    }

    fn ran(&self, hosts: &[&str], hub: &Hub, more: &[&str]) -> Ran {
        Ran::of(self.command(hosts, hub, more).output().unwrap())
    }

    /// Whether the stand-in of this name runs.
    fn runs(&self, name: &str) -> bool {
        let pid = fs::read_to_string(self.at(&format!("{name}.pid"))).unwrap_or_default();
        !pid.is_empty() && Path::new(&format!("/proc/{}", pid.trim())).exists()
    }
}

/// What answers where a hub would, on the loopback address.
struct Hub(u16);

impl Hub {
    fn start() -> Hub {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            for client in listener.incoming().flatten() {
                // Whoever only looks whether it is there has gone.
                let _ = (&client).write_all(b"hello\n");
                open.push(client);
            }
        });
        Hub(port)
    }

    fn url(&self) -> String {
        format!("nats://{}@127.0.0.1:{}", self.token(), self.0)
    }

    /// Another in each test: tests beside each other look at all processes.
    fn token(&self) -> String {
        format!("{TOKEN}-{}", self.0)
    }
}

/// A command that runs, and the lines of its standard error.
struct Running {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Running {
    fn start(mut command: Command) -> Running {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let errors = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || errors.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Running { child, lines, said: Vec::new() }
    }

    /// Waits for a line that holds all `parts`.
    fn says(&mut self, parts: &[&str]) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !self.said.iter().any(|line| parts.iter().all(|part| line.contains(part))) {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.said.push(line),
                Err(e) => panic!("{parts:?}: {e}: {:#?}", self.said),
            }
        }
    }

    fn code(&mut self) -> Option<i32> {
        let mut code = None;
        wait_for("the command to end", || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        code.and_then(|status| status.code())
    }
}

/// Command lines of all processes.
fn command_lines() -> String {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|p| fs::read(p.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).collect::<Vec<_>>().join("\n")
}

#[test]
fn agents_start_hear_their_hub_and_end_with_the_command() {
    let (sshd, hub) = (Sshd::start(""), Hub::start());
    let host = sshd.host();
    // The third host is another name of the same server.
    let here = sshd.dir.path().display();
    script(
        &sshd.at("ssh-any"),
        &format!(
            "#!/bin/sh\nexec {here}/ssh -o HostKeyAlias=[127.0.0.1]:{port} -o HostName=127.0.0.1 -p {port} \"$@\"\n",
            port = sshd.port
        ),
    );
    let seed = format!("SU{}", "A7".repeat(28));
    fs::write(sshd.at("nkey"), format!("{seed}\n")).unwrap();
    fs::write(sshd.at("creds"), "-----\nt0pcr3ds\n-----\n").unwrap();
    fs::write(sshd.at("ca"), "CA\ntwo\n").unwrap();
    let mut running = Running::start(
        sshd.command(
            &[&host, &host, "localhost"],
            &hub,
            &[
                &["--ssh", &sshd.text("ssh-any"), "--hub-nkey", &sshd.text("nkey")],
                &["--hub-creds", &sshd.text("creds"), "--hub-ca", &sshd.text("ca")][..],
            ]
            .concat(),
        ),
    );
    for name in ["127-0-0-1-1", "127-0-0-1-2", "localhost"] {
        running.says(&[name, "has the token and the key, credentials and certificates", "hears hello"]);
    }
    running.says(&["3 agents running"]);
    // Token and key came through, and no process shows them.
    let shown = command_lines();
    assert!(!shown.contains(&hub.token()) && !shown.contains(&seed) && !shown.contains("t0pcr3ds"), "{shown}");
    assert!(running.said.iter().all(|line| !line.contains(TOKEN) && !line.contains(&seed)), "{:#?}", running.said);
    signal(&running.child, Signal::SIGINT);
    assert_eq!(running.code(), Some(130));
    for name in ["127-0-0-1-1", "127-0-0-1-2", "localhost"] {
        running.says(&[name, "bye"]);
        wait_for("the agent to end", || !sshd.runs(name));
    }
}

/// Starts an agent, kills the command, and waits until the agent has ended.
fn ends_with_its_command(sshd: &Sshd) {
    let mut running = Running::start(sshd.command(&[&sshd.host()], &Hub::start(), &[]));
    running.says(&["1 agent running"]);
    wait_for("the agent", || sshd.runs("127-0-0-1"));
    running.child.kill().unwrap();
    wait_for("the agent to end", || !sshd.runs("127-0-0-1"));
}

#[test]
fn agents_end_when_the_command_is_killed() {
    ends_with_its_command(&Sshd::start(""));
}

/// One that does not mind being asked to end is ended all the same.
#[test]
fn agents_that_hang_end_when_the_command_is_killed() {
    let sshd = Sshd::start("");
    script(&sshd.at("agent"), "#!/bin/bash\ntrap '' TERM\necho $$ > ${0%/*}/$3.pid\nwhile :; do sleep 0.05; done\n");
    ends_with_its_command(&sshd);
}

#[test]
fn a_lost_connection_is_named_and_the_others_go_on() {
    let (sshd, hub) = (Sshd::start(""), Hub::start());
    let host = sshd.host();
    let mut running = Running::start(sshd.command(&[&host, &host], &hub, &[]));
    running.says(&["2 agents running"]);
    wait_for("the agents", || sshd.runs("127-0-0-1-1") && sshd.runs("127-0-0-1-2"));
    // sshd's process of the session is an ancestor of the agent: of the script, of sshd's own.
    let mut pid: i32 = fs::read_to_string(sshd.at("127-0-0-1-1.pid")).unwrap().trim().parse().unwrap();
    for _ in 0..2 {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        pid = status.lines().find_map(|l| l.strip_prefix("PPid:")).unwrap().trim().parse().unwrap();
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    running.says(&["127-0-0-1-1", "closed by remote host"]);
    running.says(&["127-0-0-1-1", "the connection is lost", "1 agent left"]);
    wait_for("the agent to end", || !sshd.runs("127-0-0-1-1"));
    assert!(sshd.runs("127-0-0-1-2"));
    // An agent that ends by itself is named with its exit code; then the command ends.
    let other = fs::read_to_string(sshd.at("127-0-0-1-2.pid")).unwrap().trim().parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(other), Signal::SIGKILL).unwrap();
    running.says(&["127-0-0-1-2", "exit code 137"]);
    assert_eq!(running.code(), Some(3), "{:#?}", running.said);
}

#[test]
fn what_stands_in_the_way_is_named_by_host() {
    let (sshd, hub) = (Sshd::start(""), Hub::start());
    let (host, ssh_new, stranger) = (sshd.host(), sshd.text("ssh-new"), sshd.text("stranger"));
    let nowhere = format!("ssh://127.0.0.1:{}", free_port());
    for (hosts, more, said) in [
        (vec![host.as_str()], vec!["--ssh", &ssh_new], "127-0-0-1: its host key is unknown"),
        (vec![&host], vec!["--identity", &stranger], "127-0-0-1: name a key with --identity"),
        (
            vec![&host],
            vec!["--binary", "loadline-nowhere"],
            "127-0-0-1: there is no program 'loadline-nowhere': copy this one with --copy",
        ),
        (vec![&nowhere], vec![], "127-0-0-1: no ssh server answers there"),
        // One that could be started is ended with the others.
        (vec![&host, &nowhere], vec![], "127-0-0-1-2: no ssh server answers there"),
        (vec![&nowhere, &host], vec!["--binary", "loadline-nowhere"], "127-0-0-1-2: there is no program"),
        (vec!["no-such-host.invalid"], vec![], "no-such-host-invalid: no such host"),
        (vec![&host], vec!["--ssh", "/nowhere/ssh"], "openssh-client"),
    ] {
        let ran = sshd.ran(&hosts, &hub, &more);
        assert_eq!(ran.code, 3, "{hosts:?} {more:?}: {}", ran.said());
        assert!(ran.err.contains(said), "{said}: {}", ran.said());
        let named = hosts.len() == 1
            || ran.err.contains("127-0-0-1-1: no ssh server")
            || ran.err.contains("127-0-0-1-1: agent started");
        assert!(named, "each host says how it went: {}", ran.said());
        assert!(!ran.said().contains(TOKEN), "{}", ran.said());
        wait_for("agents to end", || !sshd.runs("127-0-0-1-1") && !sshd.runs("127-0-0-1"));
    }
    let without_tunnel = Sshd::start("AllowTcpForwarding no");
    let ran = without_tunnel.ran(&[&without_tunnel.host()], &hub, &[]);
    assert!(ran.code == 3 && ran.err.contains("AllowTcpForwarding"), "{}", ran.said());
    let port = free_port();
    let ran = sshd.ran(&[&host], &Hub(port), &[]);
    assert!(
        ran.code == 3 && ran.err.contains("no hub answers at nats://127.0.0.1") && !ran.err.contains(TOKEN),
        "{}",
        ran.said()
    );
}

#[test]
fn bad_input_starts_nothing() {
    for (args, said) in [
        (&["agents", "ssh"][..], "<HOST>"),
        (&["agents", "ssh", "--", "-oProxyCommand=touch x"], "'-oProxyCommand=touch x' is no host"),
        (&["agents", "ssh", "-oProxyCommand=x"], "unexpected argument"),
        (&["agents", "ssh", "a;b"], "'a;b' is no host"),
        (&["agents", "ssh", "$(id)"], "'$(id)' is no host"),
        (&["agents", "ssh", "h", "--hub", "http://t0pt0ken@h"], "nats://host:4222"),
        (&["agents", "ssh", "h", "--hub", "tls://hub.example"], "certificate"),
        (&["agents", "ssh", "h", "--binary", "a\nb"], "is no path"),
        (&["agents", "ssh", "h", "--binary", "a", "--copy"], "--copy"),
    ] {
        let ran = run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.said());
        assert!(ran.err.contains(said) && !ran.said().contains(TOKEN), "{args:?}: {}", ran.said());
    }
}

#[test]
fn the_program_is_copied_once() {
    let (sshd, hub) = (Sshd::start(""), Hub::start());
    let host = sshd.host();
    let copy = |said: &str| {
        let mut running = Running::start(sshd.command(&[&host, &host], &hub, &["--copy"]));
        for name in ["127-0-0-1-1", "127-0-0-1-2"] {
            running.says(&[name, "agent started", said]);
        }
        signal(&running.child, Signal::SIGINT);
        running.code();
        running.said.join("\n")
    };
    copy("program copied");
    let folder = sshd.at("home/.cache/loadline").join(env!("CARGO_PKG_VERSION"));
    let files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().flatten().map(|e| e.path()).collect();
    assert_eq!(files, [folder.join("loadline")], "and nothing else is left there");
    let (own, copied) = (fs::read(env!("CARGO_BIN_EXE_loadline")).unwrap(), fs::read(&files[0]).unwrap());
    assert!(own == copied);
    assert_ne!(fs::metadata(&files[0]).unwrap().permissions().mode() & 0o111, 0);
    assert!(!copy("").contains("program copied"));
    // A damaged one is replaced. (An agent of before may not have ended yet: its program cannot be written.)
    fs::remove_file(&files[0]).unwrap();
    fs::write(&files[0], "damaged").unwrap();
    copy("program copied");
    assert!(fs::read(&files[0]).unwrap() == own);
    // Another kind of machine is named, and nothing is copied to it.
    fs::remove_file(&files[0]).unwrap();
    script(&sshd.at("bin/uname"), "#!/bin/sh\n[ \"$1\" = -m ] && echo riscv64 || echo Linux\n");
    let ran = sshd.ran(&[&host], &hub, &["--copy"]);
    assert!(ran.code == 3 && ran.err.contains("riscv64") && ran.err.contains("leave out --copy"), "{}", ran.said());
    assert!(!files[0].exists());
    // A home that takes no files is named in its own words.
    fs::remove_file(sshd.at("bin/uname")).unwrap();
    fs::remove_dir_all(sshd.at("home/.cache")).unwrap();
    fs::write(sshd.at("home/.cache"), "").unwrap();
    let ran = sshd.ran(&[&host], &hub, &["--copy"]);
    assert!(ran.code == 3 && ran.err.contains("could not be copied") && ran.err.contains("mkdir"), "{}", ran.said());
}
