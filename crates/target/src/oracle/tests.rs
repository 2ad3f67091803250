use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use loadline_model::snapshot::counter;
use loadline_workload::{CATALOGUE, Execute};

use super::fake::{Paper, row};
use super::session::{OraError, SETUP};
use super::*;
use crate::session::ClientSession;
use crate::work::Work;

fn work(code: usize) -> Work {
    let w = CATALOGUE[code];
    Work::new(w, w.params(&BTreeMap::new()).unwrap(), 1, 0.0)
}

fn request() -> OpenRequest {
    OpenRequest::new("oracle://ann:secret@db/x", PathBuf::new())
}

/// A server on which all goes well and nothing is there yet.
fn willing() -> Paper {
    let next = std::sync::atomic::AtomicI64::new(0);
    Paper::new(move |sql, _| {
        Ok(if sql.starts_with("DECLARE") && sql.contains(":overhead_ns") {
            vec![row(&["2100"])]
        } else if sql.starts_with("DECLARE") {
            let n = next.fetch_add(3, std::sync::atomic::Ordering::Relaxed) + 3;
            vec![row(&[&format!("{n} 1000 3000 3100 3900 1"), "900 2;", "800 1;810 1;"])]
        } else if sql.contains("SYSTIMESTAMP") {
            vec![row(&["800000000000000"])]
        } else if sql.starts_with("SELECT COUNT(*)") {
            vec![row(&["0"])]
        } else if sql.starts_with("SELECT NAME, SUM(VALUE)") {
            vec![row(&["redo size", "1000"]), row(&["user commits", "5"]), row(&["redo writes", "4"])]
        } else if sql.starts_with("SELECT SUM(n)") {
            vec![row(&["17"])]
        } else if sql.starts_with("SELECT SYS_CONTEXT") {
            vec![row(&["orcl/pdb as ANN", "pdb", "orcl1", "PRIMARY", "ANN", "ANN"])]
        } else if sql.starts_with("UPDATE") {
            vec![row(&["1"])]
        } else {
            vec![]
        })
    })
}

struct Through<'a>(&'a mut dyn ClientSession);

impl Execute for Through<'_> {
    type Error = TargetError;
    fn execute(&mut self, statement: usize, args: &[loadline_workload::Arg<'_>]) -> Result<u64, TargetError> {
        self.0.execute(statement, args)
    }
}

/// Goes through all that a run does, with every workload and both drivers.
fn go_through(paper: &Paper) {
    let target = cluster::Oracle::open(&request(), paper.dial()).unwrap();
    target.info().unwrap();
    target.doctor().unwrap();
    target.job_limit().unwrap();
    for i in 0..CATALOGUE.len() {
        let work = work(i);
        let lock = target.lock().unwrap();
        target.create(&work).unwrap();
        target.load(&work, 2).unwrap();
        target.settle().unwrap();
        target.in_database_overhead_ns(&work).unwrap();
        let mut client = target.client_session(&work, 1).unwrap();
        let mut stream = work.stream(1).unwrap();
        client.begin().unwrap();
        stream.transaction(&mut Through(client.as_mut())).unwrap();
        client.commit().unwrap();
        target.database_session(&work, 1).unwrap().run_slice(crate::clock::now_ns()).unwrap();
        target.observer().unwrap().snapshot().unwrap();
        assert_eq!(target.evidence(&work).unwrap(), Some(17));
        drop(lock);
    }
}

/// A server that has loadline's tables, one that only looks so, and none of the privileges.
fn unwilling() -> Paper {
    Paper::new(|sql, _| {
        let mark = render::mark();
        if sql == schema::OWN_TABLES {
            return Ok(vec![
                row(&["LOADLINE_LGWR_LAT1_REDO", &mark]),
                row(&["LOADLINE_LOCK", &mark]),
                row(&["LOADLINE_PLANS", "∅"]),
            ]);
        }
        if sql.contains("V$") {
            return Err(OraError::numbered(942, "ORA-00942: table or view does not exist"));
        }
        if sql.starts_with("ALTER SYSTEM") {
            return Err(OraError::numbered(1031, "ORA-01031: insufficient privileges"));
        }
        Ok(vec![row(&["1"])])
    })
}

#[test]
fn one_run_after_the_other_finds_the_lock_taken() {
    let busy = Paper::new(|sql, _| {
        if sql.starts_with("LOCK TABLE") {
            return Err(OraError::numbered(54, "ORA-00054: resource busy"));
        }
        Ok(vec![])
    });
    let target = cluster::Oracle::open(&request(), busy.dial()).unwrap();
    let Err(TargetError::Refused(text)) = target.lock().map(drop) else { panic!("the lock was taken") };
    assert!(text.contains("another run"), "{text}");
}

#[test]
fn only_what_loadline_made_is_dropped() {
    let paper = unwilling();
    let target = cluster::Oracle::open(&request(), paper.dial()).unwrap();
    assert_eq!(target.clean().unwrap(), ["table LOADLINE_LGWR_LAT1_REDO"]);
    let dropped: Vec<String> = paper.texts().into_iter().filter(|t| t.starts_with("DROP")).collect();
    assert_eq!(
        dropped,
        [
            "DROP TABLE \"LOADLINE_LGWR_LAT1_REDO\" CASCADE CONSTRAINTS PURGE",
            "DROP TABLE \"LOADLINE_LOCK\" CASCADE CONSTRAINTS PURGE"
        ]
    );
    // A table with the name of one of ours and without our comment stops a run.
    let theirs = Paper::new(|sql, _| {
        Ok(if sql == schema::OWN_TABLES { vec![row(&["LOADLINE_LGWR_LAT1_REDO", "ours"])] } else { vec![] })
    });
    let target = cluster::Oracle::open(&request(), theirs.dial()).unwrap();
    assert!(matches!(target.create(&work(0)), Err(TargetError::Refused(_))));
    assert!(target.clean().unwrap().is_empty());
    assert!(!theirs.texts().iter().any(|t| t.starts_with("DROP TABLE \"LOADLINE_LGWR")));
}

#[test]
fn without_grants_figures_are_absent_and_nothing_else_fails() {
    let target = cluster::Oracle::open(&request(), unwilling().dial()).unwrap();
    let absent = target.absent_columns();
    for id in ["redo_mib_per_s", "log_file_sync_ms", "cpu_busy_pct", "commits_database"] {
        let why = absent.iter().find(|(c, _)| *c == id).map(|(_, why)| why.as_str());
        assert!(why.is_some_and(|w| w.contains("ORA-00942") && w.contains("GRANT")), "{id}: {why:?}");
    }
    assert!(target.observer().unwrap().snapshot().unwrap().counters.is_empty());
    assert!(target.settle().unwrap().unwrap().contains("ALTER SYSTEM"));
    assert_eq!(target.job_limit().unwrap().jobs, None);
}

#[test]
fn a_slice_that_ends_early_is_gone_on_with() {
    // The first run of the block is full after 2 transactions; the second crosses the end.
    let calls = std::sync::atomic::AtomicU32::new(0);
    let paper = Paper::new(move |sql, binds| {
        if !sql.starts_with("DECLARE") {
            return Ok(vec![row(&["800000000000000"])]);
        }
        let first = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        assert_eq!(binds.len(), 3 + 3 + 3, "key, end, sequence; pieces; texts");
        Ok(vec![if first {
            row(&["2 800000000001000 800000000001500 800000000001600 800000000001900 0", "400 1;500 1;", "300 2;"])
        } else {
            row(&["4 800000000002000 800000000002500 800000000002600 800000000002900 1", "450 1;", "350 1;"])
        }])
    });
    let target = cluster::Oracle::open(&request(), paper.dial()).unwrap();
    let slice = target.database_session(&work(0), 0).unwrap().run_slice(crate::clock::now_ns()).unwrap();
    assert_eq!((slice.transaction.count(), slice.transaction.sum_ns()), (3, 1_350_000));
    assert_eq!(slice.commit.count(), 3);
    let end = slice.end.unwrap();
    assert_eq!((end.commit_ns - end.start_ns, end.end_ns - end.commit_ns), (100_000, 300_000));
}

#[test]
fn nodes_must_be_one_database() {
    let n = std::sync::atomic::AtomicU32::new(0);
    let paper = Paper::new(move |sql, _| {
        let i = n.fetch_add(u32::from(sql.contains("CON_NAME")), std::sync::atomic::Ordering::Relaxed);
        Ok(vec![row(&[&format!("db{i}")])])
    });
    let request = OpenRequest { nodes: vec!["oracle://ann:secret@db2/x".into()], ..request() };
    let error = cluster::Oracle::open(&request, paper.dial()).err().unwrap().to_string();
    assert!(error.contains("db0") && error.contains("db1") && !error.contains("secret"), "{error}");
}

#[test]
fn counters_reach_the_snapshot() {
    let target = cluster::Oracle::open(&request(), willing().dial()).unwrap();
    let s = target.observer().unwrap().snapshot().unwrap();
    assert_eq!((s.counters[counter::REDO_BYTES], s.counters[counter::REDO_WRITES]), (1000.0, 4.0));
}

#[test]
fn without_the_driver_it_says_how_to_build_it_in() {
    if driver::BUILT_IN {
        return;
    }
    let error = crate::open(&request()).err().unwrap();
    assert!(matches!(error, TargetError::Unsupported(_)));
    let text = error.to_string();
    assert!(text.contains("--features oracle") && !text.contains("secret"), "{text}");
}

mod doctor_says {
    use loadline_model::Severity;

    use super::super::doctor::{Answers, QUESTIONS, ask, judge};
    use super::*;

    fn found(answers: &Answers, id: &str) -> Option<(Severity, String, String)> {
        let findings = judge(answers);
        for f in &findings {
            assert!(f.severity == Severity::Ok || !f.advice.is_empty(), "{}: no advice", f.id);
        }
        findings.iter().find(|f| f.id == id).map(|f| (f.severity, f.value.clone(), f.advice.clone()))
    }

    fn answers(given: &[(&'static str, Vec<super::super::session::Row>)]) -> Answers {
        Answers {
            version: "19.24.0.0.0".into(),
            answers: given.iter().map(|(id, rows)| (*id, Ok(rows.clone()))).collect(),
            ..Answers::default()
        }
    }

    #[test]
    fn each_question_that_is_refused_says_what_is_lost_and_what_to_ask_for() {
        let no = OraError::numbered(942, "ORA-00942: table or view does not exist");
        for q in &QUESTIONS {
            let a = Answers { answers: vec![(q.id, Err(no.clone()))], ..answers(&[]) };
            let (severity, value, advice) = found(&a, q.id).unwrap();
            assert!(
                severity == Severity::Warning && value.contains("ORA-00942") && advice.contains("not known"),
                "{}",
                q.id
            );
        }
        let a = ask(&mut unwilling()).unwrap();
        let (severity, _, advice) = found(&a, "v$osstat").unwrap();
        assert!(
            severity == Severity::Warning
                && advice.contains("cpu_busy_pct")
                && advice.contains("GRANT SELECT ON SYS.V_$OSSTAT")
                || advice.contains("SYS.GV_$OSSTAT")
        );
    }

    #[test]
    fn servers_that_cannot_be_written_to_are_refused() {
        let database = |mode: &str, role: &str| {
            answers(&[
                (
                    "v$database",
                    vec![row(&[
                        "ARCHIVELOG",
                        "YES",
                        mode,
                        role,
                        "Linux x86 64-bit",
                        "YES",
                        "NO",
                        "MAXIMUM PERFORMANCE",
                    ])],
                ),
                ("database", vec![row(&["orcl", "pdb", "orcl1", role, "ANN", "ANN"])]),
            ])
        };
        let a = database("READ ONLY WITH APPLY", "PHYSICAL STANDBY");
        assert_eq!(found(&a, "open-mode").unwrap().0, Severity::Refused);
        assert_eq!(found(&a, "database-role").unwrap().0, Severity::Refused);
        let a = database("READ WRITE", "PRIMARY");
        assert_eq!(found(&a, "open-mode").unwrap().0, Severity::Ok);
        assert!(found(&a, "database-role").is_none());
        let old = Answers { version: "12.2.0.1.0".into(), ..answers(&[]) };
        assert_eq!(found(&old, "version").unwrap().0, Severity::Refused);
        assert_eq!(found(&answers(&[]), "version").unwrap().0, Severity::Ok);
    }

    #[test]
    fn what_spoils_figures_is_named() {
        let a = answers(&[
            ("parameters", vec![row(&["commit_wait", "FORCE_WAIT"])]),
            ("v$log", vec![row(&["1", "52428800", "512", "CURRENT"]), row(&["2", "4294967296", "512", "INACTIVE"])]),
            ("privileges", vec![row(&["CREATE SESSION"])]),
            ("quota", vec![row(&["USERS", "∅", "8192", "NO"])]),
            ("log-writer-statistics", vec![row(&["redo size", "7"]), row(&["redo writes", "0"])]),
            ("gv$session", vec![row(&["3"])]),
        ]);
        for (id, severity, says) in [
            ("commit_wait", Severity::Warning, "do wait"),
            ("redo-log-size", Severity::Warning, "4 GB"),
            ("create-table", Severity::Refused, "GRANT CREATE TABLE"),
            ("checkpoint", Severity::Warning, "ALTER SYSTEM"),
            ("tablespace", Severity::Refused, "QUOTA"),
            ("log-writer-statistics", Severity::Warning, "root"),
            ("other-sessions", Severity::Warning, "counters"),
            ("never-run", Severity::Warning, "never been run"),
        ] {
            let (is, value, advice) = found(&a, id).unwrap_or_else(|| panic!("{id} is not said"));
            assert!(is == severity && advice.contains(says), "{id}: {is:?} {value} {advice}");
        }
        assert!(found(&a, "log-writer-statistics").unwrap().1.contains("redo writes"));
    }

    #[test]
    fn room_for_jobs_is_the_tightest_limit() {
        let mut paper = Paper::new(|sql, _| {
            Ok(if sql.contains("RESOURCE_LIMIT WHERE RESOURCE_NAME IN") {
                vec![row(&["processes", "80", "300"]), row(&["sessions", "90", "UNLIMITED"])]
            } else if sql.contains("USER_RESOURCE_LIMITS") {
                vec![row(&["SESSIONS_PER_USER", "50"]), row(&["IDLE_TIME", "10"])]
            } else {
                vec![]
            })
        });
        let limit = super::super::doctor::job_limit(&mut paper).unwrap();
        assert_eq!(limit.jobs, Some(47));
        assert!(limit.because.contains("SESSIONS_PER_USER = 50"));
    }
}

mod plsql {
    //! Every script that loadline would send is read by a parser of PL/SQL (PMD's, in Java).

    use super::*;

    /// Parses `scripts` by name; the reasons of those that are refused.
    fn parse(scripts: &BTreeMap<String, String>) -> BTreeMap<String, Option<String>> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plsql");
        let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
        let jars = target.join("plsql-parser-7.10.0");
        let missing =
            "missing: a Java development kit and Maven; run ./test, or: apt-get install default-jdk-headless maven";
        if !jars.join("pmd-plsql-7.10.0.jar").exists() {
            let got = Command::new("mvn")
                .args(["-B", "-q", "-f"])
                .arg(sources.join("pom.xml"))
                .arg("dependency:copy-dependencies")
                .arg(format!("-DoutputDirectory={}", jars.display()))
                .output()
                .expect(missing);
            assert!(got.status.success(), "mvn: {}", String::from_utf8_lossy(&got.stdout));
        }
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in scripts {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let classes = format!("{}/*", jars.display());
        let said = Command::new("java")
            .args(["-cp", &classes])
            .arg(sources.join("Parse.java"))
            .arg(folder.path())
            .output()
            .expect(missing);
        assert!(said.status.success(), "java: {}", String::from_utf8_lossy(&said.stderr));
        let said = String::from_utf8(said.stdout).unwrap();
        let parsed: BTreeMap<String, Option<String>> = said
            .lines()
            .map(|line| match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["ok", name] => ((*name).to_owned(), None),
                ["bad", name, reason @ ..] => ((*name).to_owned(), Some(reason.join(" "))),
                _ => panic!("the parser says «{line}»"),
            })
            .collect();
        assert_eq!(parsed.keys().collect::<Vec<_>>(), scripts.keys().collect::<Vec<_>>(), "all were read");
        parsed
    }

    /// All that is sent: by a run with every workload, to servers that let loadline do all or little.
    fn sent() -> BTreeSet<String> {
        let (willing, unwilling) = (willing(), unwilling());
        go_through(&willing);
        let target = cluster::Oracle::open(&request(), unwilling.dial()).unwrap();
        target.doctor().unwrap();
        target.create(&work(0)).unwrap();
        target.clean().unwrap();
        let mut all: BTreeSet<String> = willing.texts().into_iter().chain(unwilling.texts()).collect();
        all.insert(SETUP.to_owned());
        all
    }

    #[test]
    fn every_script_is_plsql_and_a_broken_one_is_not() {
        let sent = sent();
        for begins in [
            "DECLARE",
            "CREATE TABLE",
            "COMMENT",
            "LOCK",
            "DROP",
            "INSERT",
            "UPDATE",
            "DELETE",
            "COMMIT",
            "SELECT",
            "ALTER",
        ] {
            assert!(sent.iter().any(|t| t.starts_with(begins)), "{begins} is sent");
        }
        let mut scripts = BTreeMap::new();
        for (i, text) in sent.iter().enumerate() {
            // PMD wants the sign that ends a statement in a script; a driver does not send it.
            let end = if text.ends_with(';') { "" } else { ";" };
            scripts.insert(format!("{i:03}-whole"), format!("{text}{end}"));
        }
        // Broken ones: each of these words or signs is needed wherever it stands. PMD only skims DDL and
        // LOCK, which the snapshots hold, and what follows the values of an UPDATE; a DELETE may do without FROM.
        let needed = [
            "LOOP", "END IF", "BEGIN", "THEN", ":=", "IS\n", "SET ", "WHERE", "FROM ", "VALUES", "TABLE ", "(", ")",
            " ||", "BETWEEN",
        ];
        let mut broken = 0;
        let read = ["DECLARE", "SELECT", "INSERT", "UPDATE", "DELETE"];
        let mut blocks = 0;
        for (i, text) in sent.iter().enumerate().filter(|(_, t)| read.iter().any(|r| t.starts_with(r))) {
            let block = text.starts_with("DECLARE");
            blocks += u32::from(block);
            // The blocks of the workloads differ in a number or two.
            if block && blocks > 2 {
                continue;
            }
            for (k, word) in needed
                .iter()
                .enumerate()
                .filter(|(_, w)| !matches!(**w, "WHERE" | "FROM ") || text.starts_with("SELECT"))
            {
                for (n, (at, _)) in text.match_indices(word).enumerate().take(2) {
                    let mutated = format!("{}{};", &text[..at], &text[at + word.len()..]);
                    scripts.insert(format!("{i:03}-{k:02}-{n:03}-broken"), mutated);
                    broken += 1;
                }
            }
        }
        let parsed = parse(&scripts);
        let mut wrong = Vec::new();
        for (name, reason) in &parsed {
            match (name.ends_with("-whole"), reason) {
                (true, Some(reason)) => wrong.push(format!("{reason}\n{}", scripts[name])),
                (false, None) => wrong.push(format!("taken though it is broken: {name}\n{}", scripts[name])),
                _ => {}
            }
        }
        // A machine that is too slow must not pass for a parser that refuses.
        let endless = parsed.values().flatten().filter(|reason| reason.contains("come to an end")).count();
        assert!(endless * 10 <= broken, "{endless} of {broken} were not read in time");
        assert!(broken > 100, "{broken} broken ones were made");
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), scripts.len(), wrong.join("\n\n"));
    }
}
