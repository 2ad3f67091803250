//! All ways: `ways.toml`, and here what no table says.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use loadline_model::CheckId;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

use super::way::{Beside, STALL, Scene, Seen, Way};
use crate::arena::{Outcome, said_by};
use crate::pgbench::binary;

/// The file of all ways, in the order of the page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ways {
    /// Arguments of a run that names none.
    usual: String,
    /// Checks for which there is no way here, and why.
    pub(super) without: Vec<(CheckId, String)>,
    #[serde(rename = "way")]
    pub(super) all: Vec<Way>,
}

/// Reads the file.
///
/// # Errors
/// It is not as it must be.
pub(super) fn ways() -> Outcome<Ways> {
    let mut ways: Ways = toml::from_str(include_str!("ways.toml"))?;
    for way in &mut ways.all {
        let run = if way.run.is_empty() { &ways.usual } else { &way.run };
        way.run = run.replace("{here}", concat!(env!("CARGO_MANIFEST_DIR"), "/src/spoil"));
    }
    Ok(ways)
}

pub(super) fn spoiled(way: &Way, s: &Scene<'_>) -> Outcome<Seen> {
    match BY_HAND.iter().find(|(name, _)| *name == way.name) {
        Some((_, spoil)) => spoil(s),
        None => way.spoil(s),
    }
}

/// The run with its CPU limited to a tenth, through a control group of its own.
fn limited(s: &Scene<'_>) -> Outcome<Seen> {
    let v1 = std::path::Path::new("/sys/fs/cgroup/cpu");
    let parent = if v1.exists() { v1 } else { std::path::Path::new("/sys/fs/cgroup") };
    let group = parent.join(format!("loadline-spoil-{}", std::process::id()));
    fs::create_dir(&group)?;
    let limit = if v1.exists() {
        fs::write(group.join("cpu.cfs_quota_us"), "10000")
    } else {
        fs::write(group.join("cpu.max"), "10000 100000")
    };
    let join = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", group.display());
    let seen = limit.map_err(Into::into).and_then(|()| s.run_through(&["sh", "-c", &join, "sh"], &[]));
    fs::remove_dir(&group)?;
    seen
}

/// The run, and its report after `edit` changed its tests.jsonl.
fn edited(s: &Scene<'_>, edit: fn(&str) -> String) -> Outcome<Seen> {
    let seen = s.run(&[])?;
    let (file, folder) = (seen.folder.join("tests.jsonl"), seen.folder.display().to_string());
    fs::write(&file, edit(&fs::read_to_string(&file)?))?;
    s.report(seen, &[&folder, "--format", "text"])
}

/// Spoils a run by hand.
type ByHand = fn(&Scene<'_>) -> Outcome<Seen>;

/// Acts of ways whose table does not say it.
const BY_HAND: &[(&str, ByHand)] = &[
    ("client-limit", limited),
    ("database-limit", limited),
    ("little-memory", |s| {
        let (file, group) = (s.file("big"), format!("/sys/fs/cgroup/memory/loadline-spoil-{}", std::process::id()));
        fs::create_dir(&group)?;
        let limit = fs::write(format!("{group}/memory.limit_in_bytes"), (24 << 20).to_string());
        // The group that writes a file holds its pages.
        let script = format!(
            "echo $$ > {group}/cgroup.procs; head -c 16M /dev/zero > {file}.$$; sync {file}.$$; \
                 while :; do cat {file}.$$ > /dev/null; done"
        );
        let seen = limit.map_err(Into::into).and_then(|()| {
            let _readers = Beside::start(2, &["env"], &script)?;
            s.run(&[])
        });
        std::thread::sleep(Duration::from_millis(500));
        fs::remove_dir(&group)?;
        seen
    }),
    ("stopped-client", |s| {
        s.in_window(|loadline| {
            kill(loadline, Signal::SIGSTOP)?;
            std::thread::sleep(STALL);
            Ok(kill(loadline, Signal::SIGCONT)?)
        })
    }),
    ("other-commits-mariadb", |s| {
        let insert = "INSERT INTO spoil.t VALUES (1);".repeat(2000);
        s.in_window(|_| {
            s.server()?.sql(&format!("CREATE DATABASE spoil; CREATE TABLE spoil.t (a INT); {insert}")).map(drop)
        })
    }),
    ("procedure", |s| {
        s.in_window(|_| {
            let server = s.server()?;
            let text = server.sql("SELECT pg_get_functiondef('loadline.lgwr_lat1_run'::regproc)")?;
            let begin = text.find("UPDATE ").ok_or("the procedure has no UPDATE")?;
            let end = begin + text[begin..].find("RAISE").ok_or("the procedure does not check its rows")?;
            let end = end + text[end..].find("END IF;").ok_or("no END IF")? + "END IF;".len();
            server.sql(&format!("{}{}", &text[..begin], &text[end..])).map(drop)
        })
    }),
    ("memory-log", |s| {
        let memory = tempfile::tempdir_in("/dev/shm")?;
        s.run(&["--target", &format!("sqlite:{}/s.db", memory.path().display())])
    }),
    ("loop-memory", |s| {
        let (memory, mounted) = (tempfile::NamedTempFile::new_in("/dev/shm")?, tempfile::tempdir()?);
        memory.as_file().set_len(100 << 20)?;
        let (file, place) = (memory.path().display().to_string(), mounted.path().display().to_string());
        run("mkfs.ext4", &["-q", &file])?;
        run("mount", &["-o", "loop", &file, &place])?;
        let seen = s.run(&["--target", &format!("sqlite:{place}/s.db")]);
        run("umount", &[&place])?;
        seen
    }),
    ("no-syncs", without_syncs),
    ("no-syncs-duckdb", without_syncs),
    ("no-syncs-server", |s| {
        // The server's user must pass through, unlike to the scene's folder.
        let bin = tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o755)).tempdir_in("/var/tmp")?;
        let postgres = binary("postgres")?;
        for name in ["initdb", "pg_ctl", "pg_controldata"] {
            symlink(Path::new(&postgres).with_file_name(name), bin.path().join(name))?;
        }
        let wrapper = bin.path().join("postgres");
        fs::write(&wrapper, format!("#!/bin/sh\nLD_PRELOAD={} exec {postgres} \"$@\"\n", eatmydata()?))?;
        fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755))?;
        s.run(&["--target", &format!("postgres-temp:?bin={}", bin.path().display())])
    }),
    ("standby-stopped", |s| {
        let server = s.server()?;
        let files = tempfile::tempdir()?;
        let receive = format!(
            "exec {} --synchronous -D {} -d \"host={} port={} user=postgres application_name=sb\"",
            binary("pg_receivewal")?,
            files.path().display(),
            server.place()[1],
            server.place()[3]
        );
        let _standby = Beside::start(1, &[], &receive)?;
        let sender = "SELECT pid FROM pg_stat_replication WHERE application_name = 'sb'";
        while server.sql(sender)?.is_empty() {
            std::thread::sleep(Duration::from_millis(100));
        }
        s.reload(&["synchronous_standby_names", "sb"].map(str::to_owned))?;
        let sender = Pid::from_raw(server.sql(sender)?.parse()?);
        let seen = s.in_window(|_| Ok(kill(sender, Signal::SIGSTOP)?));
        kill(sender, Signal::SIGCONT)?;
        seen
    }),
    ("writer-held", |s| {
        let hold = "import sqlite3,sys,time; c = sqlite3.connect(sys.argv[1], isolation_level=None); \
                        c.execute('PRAGMA journal_mode=WAL'); c.execute('BEGIN IMMEDIATE'); time.sleep(100)";
        let _held = Beside::start(1, &[], &format!("exec python3 -c \"{hold}\" {}", s.file("s.db")))?;
        std::thread::sleep(Duration::from_secs(1));
        s.run(&[])
    }),
    ("server-crash", |s| {
        s.in_window(|_| {
            let job = s
                .server()?
                .sql("SELECT pid FROM pg_stat_activity WHERE query LIKE 'UPDATE%' AND pid <> pg_backend_pid()")?;
            Ok(kill(nix::unistd::Pid::from_raw(job.parse()?), Signal::SIGKILL)?)
        })
    }),
    ("disk-full", |s| {
        let small = s.file("small");
        fs::create_dir(&small)?;
        run("mount", &["-t", "tmpfs", "-o", "size=24k", "tmpfs", &small])?;
        let seen = s.run(&["--results", &small]);
        run("umount", &[&small])?;
        seen
    }),
    ("server-disk-full", |s| {
        // The server's user must pass through, unlike to the scene's folder.
        let small = format!("/var/tmp/loadline-spoil-{}", std::process::id());
        fs::create_dir(&small)?;
        run("mount", &["-t", "tmpfs", "-o", "size=400m,mode=777", "tmpfs", &small])?;
        let target = format!("postgres-temp:{small}");
        let long = ["--duration", "60s", "--setting", "max_wal_size=8GB"];
        let seen = s.run(&[&["--target", &target, "--force"][..], &long].concat());
        run("umount", &[&small])?;
        fs::remove_dir(&small)?;
        seen
    }),
    ("torn-line", |s| edited(s, |text| format!("{}\n{text}", &text[..text.len() / 2]))),
    ("edited-figure", |s| edited(s, |text| text.replace("\"commit_throughput_tps\":", "\"commit_throughput_tps\":9"))),
    ("edited-checksum", |s| {
        edited(s, |text| {
            let (line, _) = text.rsplit_once(",\"checksum\":").unwrap_or((text, ""));
            line.replace("\"commit_throughput_tps\":", "\"commit_throughput_tps\":9") + "}\n"
        })
    }),
    ("other-platform", |s| {
        let first = s.in_window(|loadline| {
            std::thread::sleep(Duration::from_secs(5));
            Ok(kill(loadline, Signal::SIGINT)?)
        })?;
        s.reload(&["full_page_writes", "off"].map(str::to_owned))?;
        let folder = first.folder.display().to_string();
        let resumed = s.resume(&folder)?;
        s.report(resumed, &[&folder, "--format", "text"])
    }),
    ("unequal-work", |s| {
        let plan = s.file("plan.toml");
        fs::write(&plan, "workload = [\"TP-LIGHT\"]\n[parameters.TP-LIGHT]\naccounts = 1000\n")?;
        let first = s.run(&[])?;
        let (a, b) = (first.folder.display().to_string(), s.run(&[&plan])?.folder.display().to_string());
        s.report(first, &[&a, &b, "--format", "text", "--output", "-"])
    }),
];

/// The run with a library before libc's whose syncs do nothing.
fn without_syncs(s: &Scene<'_>) -> Outcome<Seen> {
    s.run_through(&["env", &format!("LD_PRELOAD={}", eatmydata()?)], &[])
}

fn eatmydata() -> Outcome<String> {
    let all = fs::read_dir("/usr/lib")?.flatten().map(|entry| entry.path().join("libeatmydata.so"));
    let found = all.into_iter().find(|path| path.exists()).map(|path| path.display().to_string());
    found.ok_or_else(|| "libeatmydata.so not found: apt-get install libeatmydata1".into())
}

fn run(program: &str, args: &[&str]) -> Outcome<()> {
    said_by(std::process::Command::new(program).args(args), "it is needed, as root").map(drop)
}

#[cfg(test)]
mod tests {
    use super::super::way::Must;
    use super::*;

    #[test]
    fn each_way_is_done_by_its_table_or_by_hand() {
        let ways = ways().unwrap();
        let by_hand = |way: &Way| BY_HAND.iter().any(|(name, _)| *name == way.name);
        assert!(ways.all.iter().all(|way| way.is_data() != by_hand(way)), "{ways:?}");
        assert_eq!(ways.all.iter().filter(|way| by_hand(way)).count(), BY_HAND.len());
    }

    #[test]
    fn ways_name_what_there_is() {
        for way in ways().unwrap().all {
            let plans = way.run.split_whitespace().filter(|word| word.ends_with(".toml"));
            assert!(plans.into_iter().all(|plan| Path::new(plan).exists()), "{way:?}");
            // Data can only be another's if a run before left some.
            assert!(way.kept || !matches!(&way.must, Must::Refuse(_, why) if why == "--reload"), "{way:?}");
            assert!(!matches!(&way.must, Must::Show(id, _) if loadline_model::column::column(id).is_none()), "{way:?}");
            assert!(way.does_all_of_its_table(), "{way:?}");
        }
    }
}
