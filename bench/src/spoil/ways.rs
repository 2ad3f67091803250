//! All ways. To add one, add a value; its row on the page follows when it has been run.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use loadline_model::CheckId;
use loadline_model::column::{RESPONSE_TIME_NS_MAX, TRANSACTION_TIME_NS_MAX};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::way::Must::{Escape, Fail, Note, Refuse, Say, Show, Withstand};
use super::way::On::{MariaDb, Postgres, Sqlite, Url};
use super::way::{Beside, Run, Scene, Seen, Way, way};
use crate::arena::{Outcome, said_by};
use crate::pgbench::binary;

/// Checks for which there is no way here, and why.
pub(super) const WITHOUT: &[(CheckId, &str)] = &[
    (CheckId::CpuSteal, "only a hypervisor withholds CPU time"),
    (CheckId::ThermalThrottling, "a virtual machine has no sensor"),
    (CheckId::ClientCpu, "a server on the same machine needs more than the 15 % of its CPUs that are left"),
    (CheckId::Agents, "needs a hub and agents: end-to-end tests stop and kill one, a simulation spoils their clocks"),
    (CheckId::AgentsNetwork, "a link between hosts would have to be full; unit tests fill one"),
    (CheckId::ThinkTime, "a timer would have to be wrong; its unit tests make it so"),
    (CheckId::LittlesLaw, "loadline's own loop would have to be slow; its unit tests make it so"),
    (CheckId::Sizes, "a scan of sizes takes minutes"),
    (CheckId::Checkpoint, "the server would have to refuse a CHECKPOINT that it allowed before"),
    (CheckId::Steady, "held against planted steps, trends and stalls by `loadline-bench statistics`"),
    (CheckId::WarmUp, "made with `--warmup auto` only, and held against planted warm-ups there"),
    (CheckId::Cluster, "needs a cluster: an end-to-end test cuts one of its nodes off"),
    (CheckId::CommitsNode, "needs a cluster: an end-to-end test kills one of its nodes"),
    (CheckId::Replicas, "needs a standby: tests of the relay and of levels cut it off"),
    (CheckId::ReadOnly, "of pgbench scripts only: an end-to-end test runs one that writes although it may not"),
    (CheckId::RoundTrip, "a commit would have to be acknowledged before its replica has it; unit tests make it so"),
];

const LOOP: &str = "while :; do :; done";
const LAT1: &str = "--workload LGWR-LAT1 --jobs 1 --driver client";
/// One job that commits, timed by loadline.
const SQLITE: Run = (Sqlite, LAT1);
const SQLITE_TEMP: Run = (Url("sqlite:"), LAT1);
const POSTGRES: Run = (Postgres, LAT1);
const MARIADB: Run = (MariaDb, LAT1);
/// The same, timed by the database.
const INSIDE: Run = (Postgres, "--workload LGWR-LAT1 --jobs 1 --driver database");
const OPEN: Run = (Postgres, "--workload LGWR-LAT1 --jobs 2 --driver client --rate 200");
const SCAN: Run = (Postgres, "--workload SRV-SCAN --size 16MiB --jobs 1");
const STO_READ: Run = (Url("postgres-temp:"), "--workload STO-READ --size 64MiB --jobs 2");
const STALL: Duration = Duration::from_millis(700);
const STALL_NS: f64 = 0.69e9;

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A busy loop for each CPU.
fn loops() -> Outcome<Beside> {
    Beside::start(cpus(), &["nice", "-n", "-5"], LOOP)
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

/// The run with a trigger on its table from the window on.
fn trigger(s: &Scene<'_>, body: &str) -> Outcome<Seen> {
    s.sql_in_window(&format!(
        "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {body} END'; \
         CREATE TRIGGER spoil BEFORE UPDATE ON loadline.lgwr_lat1_redo FOR EACH ROW EXECUTE FUNCTION spoil()"
    ))
}

/// The run, and a reset of counters so late that they stay lower than at the window's start.
fn late_reset(s: &Scene<'_>, sql: &str) -> Outcome<Seen> {
    s.in_window(|_| {
        std::thread::sleep(Duration::from_millis(1500));
        s.server()?.sql(sql).map(drop)
    })
}

/// The same run twice with the data kept, and statements in between.
fn kept(s: &Scene<'_>, sql: &[&str]) -> Outcome<Seen> {
    let first = s.run(&["--keep-data"])?;
    if !first.holds() {
        return Ok(first);
    }
    s.run_after(sql)
}

/// The run, and its report after `edit` changed its tests.jsonl.
fn edited(s: &Scene<'_>, edit: fn(&str) -> String) -> Outcome<Seen> {
    let seen = s.run(&[])?;
    let (file, folder) = (seen.folder.join("tests.jsonl"), seen.folder.display().to_string());
    fs::write(&file, edit(&fs::read_to_string(&file)?))?;
    s.report(seen, &[&folder, "--format", "text"])
}

/// All ways, in the order of the page.
pub(super) const WAYS: &[Way] = &[
    way("loops", "a busy loop for each CPU", SQLITE, Fail(CheckId::OtherCpu), |s| {
        let _loops = loops()?;
        s.run(&[])
    }),
    way(
        "short-processes",
        "processes that end at once, and that their parent waits for",
        SQLITE,
        Fail(CheckId::OtherCpu),
        |s| {
            let _loops = Beside::start(cpus(), &["nice", "-n", "-5"], "while :; do (exit 0); done")?;
            s.run(&[])
        },
    ),
    way("orphans", "processes of 50 ms that nobody waits for", SQLITE, Note(CheckId::UnknownCpu), |s| {
        // The end of a pipe tells the parent that the child has ended.
        let script = "exec perl -e '$SIG{CHLD} = \"IGNORE\"; while (1) { pipe(R, W); if (!fork) { close R; $t = times; \
                          while (times() - $t < 0.05) {} exit } close W; <R> }'";
        let _loops = Beside::start(2 * cpus(), &["nice", "-n", "-5"], script)?;
        s.run(&[])
    }),
    way(
        "shared-cpu",
        "loadline may use one CPU only, and shares it with a busy loop",
        (Url("null:"), "--workload LGWR-LAT1 --jobs 1"),
        Fail(CheckId::OtherCpu),
        |s| {
            let _loop = Beside::start(1, &["taskset", "-c", "0"], LOOP)?;
            s.run_through(&["taskset", "-c", "0"], &[])
        },
    ),
    way(
        "hidden-loops",
        "busy loops that loadline cannot see (it runs in a PID namespace of its own)",
        SQLITE,
        Fail(CheckId::UnknownCpu),
        |s| {
            let _loops = loops()?;
            s.run_through(&["unshare", "--pid", "--fork", "--mount-proc"], &[])
        },
    ),
    way("pinned", "loadline may use one CPU only", SQLITE, Note(CheckId::CpuAffinity), |s| {
        s.run_through(&["taskset", "-c", "0"], &[])
    }),
    way(
        "client-limit",
        "a control group allows loadline a tenth of a CPU",
        (Postgres, "--workload SRV-QUERY1 --size 8MiB --jobs 2 --driver client"),
        Fail(CheckId::ClientThrottled),
        limited,
    ),
    way(
        "database-limit",
        "a control group allows an embedded database a tenth of a CPU",
        (Sqlite, "--workload SRV-QUERY1 --size 8MiB --jobs 1"),
        Note(CheckId::DatabaseThrottled),
        limited,
    ),
    way("other-writes", "other processes write to the log's device", SQLITE, Fail(CheckId::OtherIo), |s| {
        let file = s.file("other");
        let script = format!("while :; do dd if=/dev/zero of={file}.$$ bs=4M count=64 oflag=direct; done");
        let _writers = Beside::start(4, &["env"], &script)?;
        s.run(&[])
    }),
    way(
        "little-memory",
        "processes read files over and over that their memory limit cannot hold",
        SQLITE,
        Note(CheckId::MemoryPressure),
        |s| {
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
        },
    ),
    way(
        "stopped-client",
        "loadline itself is stopped for 0.7 s in the window",
        POSTGRES,
        Show(TRANSACTION_TIME_NS_MAX, STALL_NS),
        |s| {
            s.in_window(|loadline| {
                kill(loadline, Signal::SIGSTOP)?;
                std::thread::sleep(STALL);
                Ok(kill(loadline, Signal::SIGCONT)?)
            })
        },
    ),
    way(
        "stall-closed",
        "all processes of the server are stopped for 0.7 s in the window",
        POSTGRES,
        Show(TRANSACTION_TIME_NS_MAX, STALL_NS),
        |s| s.in_window(|_| s.server()?.stall(STALL)),
    ),
    way(
        "stall-inside",
        "the same, with the in-database driver, whose clock is the server's",
        INSIDE,
        Show(TRANSACTION_TIME_NS_MAX, STALL_NS),
        |s| s.in_window(|_| s.server()?.stall(STALL)),
    ),
    way("stall-open", "the same in open loop", OPEN, Show(RESPONSE_TIME_NS_MAX, STALL_NS), |s| {
        s.in_window(|_| s.server()?.stall(STALL))
    }),
    way(
        "stall-at-end",
        "the same in open loop, from 0.2 s before the window's end on",
        OPEN,
        Show(RESPONSE_TIME_NS_MAX, STALL_NS),
        |s| {
            s.in_window(|_| {
                std::thread::sleep(Duration::from_millis(1800));
                s.server()?.stall(STALL)
            })
        },
    ),
    way("too-fast", "open loop at a rate that the server cannot sustain", OPEN, Note(CheckId::Rate), |s| {
        s.run(&["--rate", "100000"])
    }),
    way("other-commits", "another session commits in the same database", POSTGRES, Fail(CheckId::CommitsWindow), |s| {
        s.sql_in_window(
            "DO 'BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT AND CHAIN; END LOOP; END'",
        )
    }),
    way("other-commits-mariadb", "the same on MariaDB", MARIADB, Fail(CheckId::CommitsDatabase), |s| {
        let insert = "INSERT INTO spoil.t VALUES (1);".repeat(2000);
        s.sql_in_window(&format!("CREATE DATABASE spoil; CREATE TABLE spoil.t (a INT); {insert}"))
    }),
    way(
        "other-query",
        "another session of the same server computes all the time",
        POSTGRES,
        Note(CheckId::OtherSessions),
        |s| {
            let _query =
                Beside::start(1, &["env"], &s.server()?.script("SELECT count(*) FROM generate_series(1, 1e9)"))?;
            s.run(&[])
        },
    ),
    way("other-query-mariadb", "the same on MariaDB", MARIADB, Fail(CheckId::OtherSessionsCpu), |s| {
        let _query = Beside::start(1, &["env"], &s.server()?.script("SELECT BENCHMARK(1000000000, MD5(1))"))?;
        s.run(&[])
    }),
    way("rows-changed", "another session changes the jobs' rows", POSTGRES, Fail(CheckId::WorkEvidence), |s| {
        s.sql_in_window("UPDATE loadline.lgwr_lat1_redo SET n = n + 1")
    }),
    way("rows-deleted", "another session deletes the jobs' rows", POSTGRES, Fail(CheckId::Errors), |s| {
        s.sql_in_window("DELETE FROM loadline.lgwr_lat1_redo")
    }),
    way(
        "rows-locked",
        "another session locks the jobs' rows for 0.7 s",
        POSTGRES,
        Show(TRANSACTION_TIME_NS_MAX, STALL_NS),
        |s| {
            s.sql_in_window("BEGIN; SELECT count(*) FROM (SELECT FROM loadline.lgwr_lat1_redo FOR UPDATE) t; SELECT pg_sleep(0.7); ROLLBACK")
        },
    ),
    way("updates-swallowed", "a trigger swallows each update", POSTGRES, Fail(CheckId::Errors), |s| {
        trigger(s, "RETURN NULL;")
    }),
    way("updates-undone", "a trigger puts the old values back", POSTGRES, Fail(CheckId::WorkEvidence), |s| {
        trigger(s, "RETURN OLD;")
    }),
    way("updates-fail", "a trigger refuses one update in ten", POSTGRES, Fail(CheckId::Errors), |s| {
        trigger(s, "IF OLD.id % 10 = 0 THEN RAISE ''no''; END IF; RETURN NEW;")
    }),
    way("rule", "a rule does nothing instead of the update", POSTGRES, Fail(CheckId::Errors), |s| {
        s.sql_in_window("CREATE RULE spoil AS ON UPDATE TO loadline.lgwr_lat1_redo DO INSTEAD NOTHING")
    }),
    way(
        "procedure",
        "the procedure of the in-database driver is replaced by one without its update",
        INSIDE,
        Fail(CheckId::WorkEvidence),
        |s| {
            s.in_window(|_| {
                let server = s.server()?;
                let text = server.sql("SELECT pg_get_functiondef('loadline.lgwr_lat1_run'::regproc)")?;
                let begin = text.find("UPDATE ").ok_or("the procedure has no UPDATE")?;
                let end = begin + text[begin..].find("RAISE").ok_or("the procedure does not check its rows")?;
                let end = end + text[end..].find("END IF;").ok_or("no END IF")? + "END IF;".len();
                server.sql(&format!("{}{}", &text[..begin], &text[end..])).map(drop)
            })
        },
    ),
    way("async-before", "synchronous_commit = off for the role", POSTGRES, Refuse(3, "synchronous_commit"), |s| {
        s.run_after(&["ALTER ROLE postgres SET synchronous_commit = off"])
    }),
    way(
        "async-in-window",
        "synchronous_commit = off for the server, from the window on",
        POSTGRES,
        Fail(CheckId::CommitsPerSync),
        |s| s.in_window(|_| reload(s, "synchronous_commit", "off")),
    ),
    way("fsync-before", "fsync = off", POSTGRES, Refuse(3, "fsync"), |s| {
        reload(s, "fsync", "off")?;
        s.run(&[])
    }),
    way("fsync-in-window", "fsync = off from the window on", POSTGRES, Fail(CheckId::CommitsPerSync), |s| {
        s.in_window(|_| reload(s, "fsync", "off"))
    }),
    way("fsync-forced", "fsync = off, and --force", POSTGRES, Say("fsync = off"), |s| {
        reload(s, "fsync", "off")?;
        s.run(&["--force"])
    }),
    way("full-page-writes", "full_page_writes = off: less redo", POSTGRES, Say("full_page_writes = off"), |s| {
        reload(s, "full_page_writes", "off")?;
        s.run(&[])
    }),
    way(
        "flush-before",
        "MariaDB: innodb_flush_log_at_trx_commit = 2",
        MARIADB,
        Refuse(2, "innodb_flush_log_at_trx_commit"),
        |s| s.run_after(&["SET GLOBAL innodb_flush_log_at_trx_commit = 2"]),
    ),
    way("flush-in-window", "the same from the window on", MARIADB, Fail(CheckId::Settings), |s| {
        s.sql_in_window("SET GLOBAL innodb_flush_log_at_trx_commit = 2")
    }),
    way(
        "inside-forced",
        "MariaDB: COMMIT in a procedure, which does not wait, by --driver database --force",
        (MariaDb, "--workload LGWR-LAT1 --jobs 4 --driver client"),
        Fail(CheckId::CommitsPerSync),
        |s| s.run(&["--driver", "database", "--force"]),
    ),
    way("sqlite-async", "SQLite: --setting synchronous=OFF", SQLITE_TEMP, Refuse(2, "synchronous"), |s| {
        s.run(&["--setting", "synchronous=OFF"])
    }),
    way("memory-log", "the log is in main memory (tmpfs)", SQLITE_TEMP, Refuse(3, "tmpfs"), |s| {
        let memory = tempfile::tempdir_in("/dev/shm")?;
        s.run(&["--target", &format!("sqlite:{}/s.db", memory.path().display())])
    }),
    way(
        "loop-memory",
        "the log is on a loop device over a file in main memory",
        SQLITE_TEMP,
        Refuse(3, "tmpfs"),
        |s| {
            let (memory, mounted) = (tempfile::NamedTempFile::new_in("/dev/shm")?, tempfile::tempdir()?);
            memory.as_file().set_len(100 << 20)?;
            let (file, place) = (memory.path().display().to_string(), mounted.path().display().to_string());
            run("mkfs.ext4", &["-q", &file])?;
            run("mount", &["-o", "loop", &file, &place])?;
            let seen = s.run(&["--target", &format!("sqlite:{place}/s.db")]);
            run("umount", &[&place])?;
            seen
        },
    ),
    way("no-syncs", "a library swallows the syncs of an embedded database", SQLITE, Fail(CheckId::RedoOnDevice), |s| {
        s.run_through(&["env", &format!("LD_PRELOAD={}", eatmydata()?)], &[])
    }),
    way(
        "no-syncs-server",
        "a library swallows the syncs of a server",
        (Url("postgres-temp:"), LAT1),
        Fail(CheckId::RedoOnDevice),
        |s| {
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
        },
    ),
    way("read-only", "default_transaction_read_only = on for the role", POSTGRES, Refuse(3, "read-only"), |s| {
        s.run_after(&["ALTER ROLE postgres SET default_transaction_read_only = on"])
    }),
    way("no-standby", "a synchronous standby that is not there", POSTGRES, Refuse(3, "wait for ever"), |s| {
        reload(s, "synchronous_standby_names", "nobody")?;
        s.run(&[])
    }),
    way(
        "standby-stopped",
        "a synchronous standby stops in the window, and loadline has to end the sessions",
        POSTGRES,
        Say("its statement waited for a synchronous standby (synchronous_standby_names = 'sb'"),
        |s| {
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
            reload(s, "synchronous_standby_names", "sb")?;
            let sender = Pid::from_raw(server.sql(sender)?.parse()?);
            let seen = s.in_window(|_| Ok(kill(sender, Signal::SIGSTOP)?));
            kill(sender, Signal::SIGCONT)?;
            seen
        },
    ),
    way(
        "writer-held",
        "another process holds the lock of SQLite's writer",
        (Sqlite, "--workload LGWR-LAT1 --jobs 1 --driver client --keep-data"),
        Refuse(3, "another process (python3"),
        |s| {
            let hold = "import sqlite3,sys,time; c = sqlite3.connect(sys.argv[1], isolation_level=None); \
                        c.execute('PRAGMA journal_mode=WAL'); c.execute('BEGIN IMMEDIATE'); time.sleep(100)";
            let _held = Beside::start(1, &[], &format!("exec python3 -c \"{hold}\" {}", s.file("s.db")))?;
            std::thread::sleep(Duration::from_secs(1));
            s.run(&[])
        },
    ),
    way(
        "timeouts",
        "statement_timeout = 100 ms and idle_session_timeout = 10 ms for the role",
        (Postgres, "--workload LGWR-LAT1 --jobs 1 --driver client --rate 50"),
        Withstand("loadline's sessions set their own"),
        |s| {
            s.run_after(&[
                "ALTER ROLE postgres SET idle_session_timeout = 10",
                "ALTER ROLE postgres SET statement_timeout = 100",
            ])
        },
    ),
    way(
        "session-killed",
        "a job's session is killed",
        (Postgres, "--workload LGWR-LAT1 --jobs 2 --driver client"),
        Fail(CheckId::Window),
        |s| {
            s.sql_in_window(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'UPDATE%' AND pid <> pg_backend_pid() LIMIT 1",
            )
        },
    ),
    way(
        "server-crash",
        "a process of the server is killed, and the server recovers",
        POSTGRES,
        Refuse(3, "is lost"),
        |s| {
            s.in_window(|_| {
                let job = s
                    .server()?
                    .sql("SELECT pid FROM pg_stat_activity WHERE query LIKE 'UPDATE%' AND pid <> pg_backend_pid()")?;
                Ok(kill(nix::unistd::Pid::from_raw(job.parse()?), Signal::SIGKILL)?)
            })
        },
    ),
    way(
        "commits-reset",
        "the server's statistics are reset late in the window",
        POSTGRES,
        Fail(CheckId::Counters),
        |s| late_reset(s, "SELECT pg_stat_reset()"),
    ),
    way(
        "syncs-reset",
        "the statistics of the log are reset late in the window",
        POSTGRES,
        Fail(CheckId::Counters),
        |s| late_reset(s, "SELECT pg_stat_reset_shared('wal')"),
    ),
    way(
        "flush-status",
        "MariaDB: FLUSH STATUS",
        MARIADB,
        Withstand("MariaDB adds the session's counts to those of the server"),
        |s| s.sql_in_window("FLUSH STATUS"),
    ),
    way("no-counts", "track_counts = off", POSTGRES, Say("track_counts = off"), |s| {
        reload(s, "track_counts", "off")?;
        s.run(&[])
    }),
    way("other-redo", "another session writes redo", POSTGRES, Fail(CheckId::RedoSize), |s| {
        s.sql_in_window("CREATE TABLE spoil AS SELECT repeat(md5(i::text), 99) FROM generate_series(1, 50000) i")
    }),
    way(
        "checkpoints",
        "another session makes one checkpoint after the other",
        POSTGRES,
        Say("checkpoints in the window"),
        |s| s.in_window(|_| (0..15).try_for_each(|_| s.server()?.sql("CHECKPOINT").map(drop))),
    ),
    way("cached", "the data of a storage test fit into the server's cache", STO_READ, Fail(CheckId::DataSource), |s| {
        s.run(&["--setting", "shared_buffers=512MB"])
    }),
    way(
        "warmed",
        "another process reads the data files into the page cache all the time",
        STO_READ,
        Fail(CheckId::OtherIo),
        |s| {
            let script =
                format!("while :; do find {} -path '*/base/*' -type f -exec cat {{}} + > /dev/null; done", s.file(""));
            let _reader = Beside::start(2, &["env"], &script)?;
            s.run(&[])
        },
    ),
    way(
        "small-cache",
        "the data of a server test do not fit into its cache",
        (Url("postgres-temp:"), "--workload SRV-QUERY1 --size 64MiB --jobs 1"),
        Fail(CheckId::CacheHit),
        |s| s.run(&["--setting", "shared_buffers=1MB"]),
    ),
    way(
        "large-cache",
        "the server's cache absorbs the changed blocks",
        (Url("postgres-temp:"), "--workload DBWR-THR --size 64MiB --jobs 2"),
        Fail(CheckId::DataWritten),
        |s| s.run(&["--setting", "shared_buffers=512MB"]),
    ),
    way(
        "other-rows",
        "another session changes rows of another table",
        (Postgres, "--workload DBWR-THR --size 32MiB --jobs 1 --allow-cached"),
        Fail(CheckId::RowsChanged),
        |s| s.sql_in_window("CREATE TABLE spoil AS SELECT generate_series(1, 400000) a; UPDATE spoil SET a = 1"),
    ),
    way("fewer-rows", "another session deletes rows that the queries read", SCAN, Fail(CheckId::RowsRead), |s| {
        s.sql_in_window("DELETE FROM loadline.data_lookup WHERE id % 10 > 0")
    }),
    way("kept-data", "rows of a kept data set are deleted before the next run", SCAN, Refuse(3, "is missing"), |s| {
        kept(s, &["DELETE FROM loadline.data_lookup WHERE id % 10 > 0"])
    }),
    way(
        "kept-values",
        "the rows of a kept data set are made shorter before the next run",
        SCAN,
        Refuse(3, "0 bytes instead of 100"),
        |s| kept(s, &["UPDATE loadline.data_lookup SET payload = ''", "VACUUM FULL loadline.data_lookup"]),
    ),
    way("other-data", "a kept data set of another size", SCAN, Refuse(3, "--reload"), |s| {
        s.run(&["--keep-data"])?;
        s.run(&["--seed", "7"])
    }),
    way(
        "money",
        "another session adds money to an account",
        (Postgres, "--workload TP-LIGHT --jobs 1"),
        Fail(CheckId::Consistency),
        |s| s.sql_in_window("UPDATE loadline.tp_light_account SET balance = balance + 1 WHERE id = 1"),
    ),
    way(
        "batches-deleted",
        "another session deletes the rows that a reader waits for",
        (Postgres, "--workload DBL-STREAM --jobs 1"),
        Fail(CheckId::BatchesSeen),
        |s| {
            s.sql_in_window(
                "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN DELETE FROM loadline.dbl_stream_entry; RETURN NULL; END'; \
                 CREATE TRIGGER spoil AFTER INSERT ON loadline.dbl_stream_entry EXECUTE FUNCTION spoil()",
            )
        },
    ),
    way(
        "no-workers",
        "max_parallel_workers = 0 from the window on",
        (Postgres, concat!(env!("CARGO_MANIFEST_DIR"), "/src/spoil/two-workers.toml --size 64MiB --jobs 1")),
        Fail(CheckId::ParallelWorkers),
        |s| s.in_window(|_| reload(s, "max_parallel_workers", "0")),
    ),
    way(
        "short-window",
        "a window shorter than two transactions",
        (Sqlite, "--workload DA-AGG --size 4MiB --jobs 1"),
        Say("because transactions are long"),
        |s| s.run(&["--duration", "0.2s", "--size", "96MiB"]),
    ),
    way("many-jobs", "more jobs than max_connections", POSTGRES, Refuse(2, "max_connections"), |s| {
        s.run(&["--jobs", "2000"])
    }),
    way("disk-full", "no space in the results folder", (Url("null:"), LAT1), Refuse(1, "space"), |s| {
        let small = s.file("small");
        fs::create_dir(&small)?;
        run("mount", &["-t", "tmpfs", "-o", "size=24k", "tmpfs", &small])?;
        let seen = s.run(&["--results", &small]);
        run("umount", &[&small])?;
        seen
    }),
    way(
        "server-disk-full",
        "the disk of the server fills up in the window",
        (Url("postgres-temp:"), "--workload LGWR-THR --jobs 2"),
        Refuse(3, "A disk of the database is"),
        |s| {
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
        },
    ),
    way("torn-line", "half of a line is missing in tests.jsonl", SQLITE, Refuse(2, "line 1"), |s| {
        edited(s, |text| format!("{}\n{text}", &text[..text.len() / 2]))
    }),
    way("edited-figure", "a figure is changed in tests.jsonl", SQLITE, Note(CheckId::Record), |s| {
        edited(s, |text| text.replace("\"commit_throughput_tps\":", "\"commit_throughput_tps\":9"))
    }),
    way(
        "edited-checksum",
        "the same, and the line's checksum is removed",
        SQLITE,
        Escape("the checksum is no signature: who edits a line can remove it or make it anew"),
        |s| {
            edited(s, |text| {
                let (line, _) = text.rsplit_once(",\"checksum\":").unwrap_or((text, ""));
                line.replace("\"commit_throughput_tps\":", "\"commit_throughput_tps\":9") + "}\n"
            })
        },
    ),
    way(
        "other-platform",
        "a run is resumed after a setting of the server changed",
        (Postgres, "--workload LGWR-LAT1 --jobs 1,2,4 --driver client"),
        Say("have changed since"),
        |s| {
            let first = s.in_window(|loadline| {
                std::thread::sleep(Duration::from_secs(5));
                Ok(kill(loadline, Signal::SIGINT)?)
            })?;
            reload(s, "full_page_writes", "off")?;
            let folder = first.folder.display().to_string();
            let resumed = s.resume(&folder)?;
            s.report(resumed, &[&folder, "--format", "text"])
        },
    ),
    way(
        "unequal-work",
        "runs on tables of different size are compared",
        (Sqlite, "--workload TP-LIGHT --jobs 1"),
        Say("Not compared: TP-LIGHT (different parameters"),
        |s| {
            let plan = s.file("plan.toml");
            fs::write(&plan, "workload = [\"TP-LIGHT\"]\n[parameters.TP-LIGHT]\naccounts = 1000\n")?;
            let first = s.run(&[])?;
            let (a, b) = (first.folder.display().to_string(), s.run(&[&plan])?.folder.display().to_string());
            s.report(first, &[&a, &b, "--format", "text", "--output", "-"])
        },
    ),
];

/// Changes a setting of the running server.
fn reload(s: &Scene<'_>, name: &str, value: &str) -> Outcome<()> {
    s.server()?.sql(&format!("ALTER SYSTEM SET {name} = '{value}'"))?;
    s.server()?.sql("SELECT pg_reload_conf(), pg_sleep(0.1)").map(drop)
}

/// The library whose syncs do nothing.
fn eatmydata() -> Outcome<String> {
    let all = fs::read_dir("/usr/lib")?.flatten().map(|entry| entry.path().join("libeatmydata.so"));
    let found = all.into_iter().find(|path| path.exists()).map(|path| path.display().to_string());
    found.ok_or_else(|| "libeatmydata.so not found: apt-get install libeatmydata1".into())
}

fn run(program: &str, args: &[&str]) -> Outcome<()> {
    said_by(std::process::Command::new(program).args(args), "it is needed, as root").map(drop)
}
