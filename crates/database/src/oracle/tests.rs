//! Everything above the driver, on the fake servers of `tests/servers.toml`.

mod plsql;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock, Mutex};

use loadline_model::activity::{Topic, View, growth};
use loadline_model::snapshot::WaitProfile;
use loadline_workload::{Arg, CATALOGUE, Workload};
use serde::Deserialize;

use super::session::{OraError, OraSession, Row};
use super::*;
use crate::request::Secret;
use crate::role::Scope;
use crate::work::Work;

static SERVERS: LazyLock<BTreeMap<String, Script>> =
    LazyLock::new(|| toml::from_str(include_str!("tests/servers.toml")).unwrap());

/// Answers of a fake server; the file describes them.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    base: Option<String>,
    version: Option<String>,
    answers: Vec<Answer>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    sql: String,
    #[serde(default)]
    rows: Vec<Vec<String>>,
    error: Option<String>,
    #[serde(default)]
    once: bool,
    #[serde(default)]
    changes: bool,
}

/// A session of a fake server. All sessions of a server share what was sent.
#[derive(Clone)]
struct FakeServer {
    script: Script,
    sent: Arc<Mutex<Vec<String>>>,
}

impl FakeServer {
    fn named(name: &str) -> FakeServer {
        let mut script = SERVERS[name].clone();
        if let Some(base) = script.base.as_ref().map(|base| SERVERS[base].clone()) {
            script.answers.extend(base.answers);
        }
        FakeServer { script, sent: Arc::default() }
    }

    fn open(&self, native_report: bool) -> Result<Box<dyn Target>, TargetError> {
        let server = self.clone();
        // It lives as long as the test's process.
        let connector = Box::leak(Box::new(move |_: &address::OraAddress, _: &Secret, _: &str| {
            Ok(Box::new(server.clone()) as Box<dyn OraSession>)
        }));
        let request = OpenRequest::new("oracle://ann:secret@db/x", std::path::PathBuf::new());
        cluster::Oracle::open(&OpenRequest { native_report, ..request }, connector)
    }

    fn texts(&self) -> Vec<String> {
        self.sent.lock().unwrap().clone()
    }

    fn ask(&self, sql: &str, args: &[Arg<'_>]) -> Result<Vec<Row>, OraError> {
        let mut sent = self.sent.lock().unwrap();
        let is_asked = |answer: &Answer, text: &str| match answer.sql.strip_prefix('^') {
            Some(begin) => text.starts_with(begin),
            None => text.contains(&answer.sql),
        };
        let is_over = |answer: &Answer| answer.once && sent.iter().any(|text| is_asked(answer, text));
        let found = self.script.answers.iter().find(|answer| is_asked(answer, sql) && !is_over(answer));
        sent.push(sql.to_owned());
        let Some(answer) = found else { return Ok(Vec::new()) };
        if let Some(text) = &answer.error {
            return Err(OraError::numbered(text[4..9].parse().unwrap(), text));
        }
        if answer.changes {
            return Ok(vec![Row::new(); changed(sql, args)]);
        }
        let value = |v: &String| v.replace("{n}", &sent.len().to_string());
        let row = |row: &Vec<String>| row.iter().map(|v| (v != "∅").then(|| value(v))).collect();
        Ok(answer.rows.iter().map(row).collect())
    }
}

/// Rows that an INSERT or UPDATE changes: one, all keys of a range, or those of a list.
fn changed(sql: &str, args: &[Arg<'_>]) -> usize {
    match (args, sql.split_once(" IN (")) {
        _ if sql.starts_with("INSERT") => sql.matches(" INTO ").count(),
        ([Arg::Int(first), Arg::Int(last)], _) if sql.ends_with("BETWEEN :1 AND :2") => (last - first + 1) as usize,
        (_, Some((_, list))) => list.split(',').count(),
        _ => 1,
    }
}

impl OraSession for FakeServer {
    fn query(&mut self, sql: &str, args: &[Arg<'_>]) -> Result<Vec<Row>, OraError> {
        self.ask(sql, args)
    }

    fn execute(&mut self, sql: &str, args: &[Arg<'_>]) -> Result<u64, OraError> {
        Ok(self.ask(sql, args)?.len() as u64)
    }

    fn batch(&mut self, sql: &str, columns: usize, args: &[Arg<'_>]) -> Result<u64, OraError> {
        self.ask(sql, args)?;
        Ok((args.len() / columns) as u64)
    }

    fn call(&mut self, block: &str, args: &[Arg<'_>], _: &[usize]) -> Result<Row, OraError> {
        Ok(self.ask(block, args)?.into_iter().next().unwrap_or_default())
    }

    fn rollback(&mut self) -> Result<(), OraError> {
        Ok(())
    }

    fn version(&self) -> String {
        self.script.version.clone().unwrap_or_else(|| "19.24.0.0.0".to_owned())
    }

    fn id(&self) -> Option<String> {
        Some("12, 34567".to_owned())
    }
}

fn work_of(w: &Arc<Workload>) -> Work {
    // PMD is slow with many rows in one statement, because it looks far ahead at each assignment.
    let several = matches!(w.code.as_str(), "DBL-12" | "DBL-STREAM");
    let given = if several { [("rows".to_owned(), 3)].into() } else { BTreeMap::new() };
    Work::new(Arc::clone(w), w.params(&given).unwrap().with_size(1 << 20), 1, Default::default())
}

fn work() -> Work {
    work_of(&loadline_workload::find("LGWR-LAT1").unwrap())
}

/// Does all that a run does, with every workload and both drivers.
fn go_through(server: &FakeServer, native_report: bool) {
    let target = server.open(native_report).unwrap();
    target.info().unwrap();
    target.doctor().unwrap();
    target.job_limit().unwrap();
    for workload in CATALOGUE.iter() {
        let work = work_of(workload);
        let lock = target.lock().unwrap();
        target.create(&work).unwrap();
        target.load(&work, 2).unwrap();
        for table in workload.tables.iter().filter(|t| t.scope == loadline_workload::Scope::DataSet) {
            let sql = crate::changed_rows::query(&knowledge::KNOWLEDGE.dialect, &work, table);
            server.clone().query(&sql, &[]).unwrap();
        }
        target.settle().unwrap();
        let abilities = target.abilities();
        abilities.tables.unwrap().set_cache(Some(1 << 30)).unwrap();
        abilities.tables.unwrap().checkpoint().unwrap();
        abilities.driver().unwrap().overhead_ns().unwrap();
        let mut client = target.client_session(&work, 1).unwrap();
        let can = |driver| Kind.facts().capabilities().refusal(driver, &workload.needs).is_none();
        client.begin().unwrap();
        if work.program.statements.iter().any(|s| s.effect.reads()) {
            // The fake server returns no rows, which the program does not accept.
            for (i, s) in work.program.statements.iter().enumerate() {
                client.execute(i, &vec![Arg::Int(0); s.template.vars().count()]).unwrap();
            }
        } else if can(loadline_model::Driver::Client) {
            work.stream(1).unwrap().transaction(client.as_mut()).unwrap();
        }
        client.commit().unwrap();
        if can(loadline_model::Driver::Database) {
            let mut session = abilities.driver().unwrap().database_session(&work, 1).unwrap();
            session.run_slice(loadline_storage::now_ns()).unwrap();
        }
        let mut observer = target.observer().unwrap();
        observer.snapshot().unwrap();
        observer.sample_waits().unwrap();
        client.canceller().cancel();
        let views = abilities.tables.unwrap();
        assert!(views.views().unwrap().iter().all(|view| view.absent.is_none()));
        target.observer_of(Scope::All).unwrap().sample_waits().unwrap();
        if let Some(reports) = abilities.native_reports {
            let mark = reports.native_mark().unwrap();
            reports.native_report(mark).unwrap();
        }
        assert_eq!(target.evidence(&work).unwrap().is_some(), workload.evidence.is_some());
        drop(lock);
    }
}

/// Findings at a server: the doctor's as it prints them, and the answers of the other roles.
fn found(name: &str) -> String {
    let server = FakeServer::named(name);
    let target = server.open(true).unwrap();
    let mut findings = target.doctor().unwrap();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    let mut out = String::new();
    for f in &findings {
        let advice = if f.advice.is_empty() { String::new() } else { format!(": {}", f.advice) };
        assert!(f.severity == loadline_model::Severity::Ok || !f.advice.is_empty(), "{}: no advice", f.id);
        writeln!(out, "{:?} {} = {}{advice}", f.severity, f.subject, f.value).unwrap();
    }
    let abilities = target.abilities();
    let parallel = Work::from_catalogue("DA-PARALLEL", &[("workers", 4)]).unwrap();
    let absent = |view: View| view.absent.map(|why| (view.title, why));
    let absent: Vec<_> = abilities.tables.unwrap().views().unwrap().into_iter().filter_map(absent).collect();
    let snapshot = target.observer().unwrap().snapshot().unwrap();
    let waits = target.observer().unwrap().sample_waits().unwrap();
    let mut profile = WaitProfile::default();
    waits.iter().for_each(|waits| profile.add(waits));
    target.observer_of(Scope::All).unwrap().sample_waits().unwrap();
    let waits_asked = server.texts().into_iter().filter(|text| text.starts_with("SELECT W, "));
    let absent_columns = target.absent_columns().into_iter().map(|(column, why)| (column.id, why));
    for (what, said) in [
        ("settings", format!("{:?}", target.info().map(|info| (info.settings, info.memory_bytes)))),
        ("job limit", format!("{:?}", target.job_limit())),
        ("absent columns", format!("{:#?}", absent_columns.collect::<Vec<_>>())),
        ("absent views", format!("{absent:#?}")),
        ("counters", format!("{:#?}", snapshot.counters)),
        ("times of CPUs", format!("{:?}", snapshot.proc_stat)),
        (
            "waits",
            format!(
                "{waits:?}, mean in log waits {:?}",
                profile.mean_sessions(|event| target.facts().waits.log_sync.has(event))
            ),
        ),
        ("queries of waits", format!("{:#?}", waits_asked.collect::<Vec<_>>())),
        ("free space", format!("{:?}", target.free_space())),
        ("log space", format!("{:?}", target.log_space(0, 0))),
        ("workers", format!("{:?}", abilities.parallel_queries.unwrap().max_parallel_workers())),
        ("parallel", format!("{:?}", abilities.parallel_queries.unwrap().try_parallel(&parallel))),
        ("settle", format!("{:?}", target.settle())),
        ("lock", format!("{:?}", target.lock().map(drop))),
        ("create", format!("{:?}", target.create(&work()))),
        ("report", format!("{:?}", abilities.native_reports.unwrap().native_report(7))),
        ("clean", format!("{:?}", target.clean())),
    ] {
        writeln!(out, "{what}: {said}").unwrap();
    }
    // Of tables with the names of ours, those without our comment are another's.
    let dropped: BTreeSet<_> = server.texts().into_iter().filter(|text| text.starts_with("DROP")).collect();
    writeln!(out, "dropped: {dropped:#?}").unwrap();
    out
}

#[test]
fn what_loadline_finds_is_as_before() {
    for name in ["good", "no-grants", "spoiled", "standby"] {
        insta::assert_snapshot!(name, found(name));
    }
}

#[test]
fn a_slice_that_ends_early_is_continued() {
    let target = FakeServer::named("full-block").open(false).unwrap();
    let mut session = target.abilities().driver().unwrap().database_session(&work(), 0).unwrap();
    let slice = session.run_slice(loadline_storage::now_ns()).unwrap();
    assert_eq!((slice.transaction.count(), slice.transaction.sum_ns()), (3, 1_350_000));
    assert_eq!(slice.commit.count(), 3);
    let end = slice.end.unwrap();
    assert_eq!((end.commit_ns - end.start_ns, end.end_ns - end.commit_ns), (100_000, 300_000));
}

#[test]
fn statistics_views_have_all_topics_and_hide_secrets() {
    let target = FakeServer::named("good").open(false).unwrap();
    let views = target.abilities().tables.unwrap();
    let grown = growth(&views.views().unwrap(), views.views().unwrap());
    for topic in Topic::ALL {
        assert!(grown.iter().any(|v| v.topic == topic), "{topic:?}");
    }
    let of = |topic| grown.iter().find(|v| v.topic == topic).unwrap();
    let statements = of(Topic::Statements);
    let executions = statements.columns.iter().position(|c| c.title == "executions").unwrap();
    assert!(View::number(&statements.rows[0], executions).is_some_and(|n| n > 0.0));
    let shown = format!("{:?}", of(Topic::Settings).rows);
    assert!(shown.contains("600") && shown.contains("(set, not shown)") && !shown.contains("geheim"), "{shown}");
}

#[test]
fn a_call_that_hangs_is_cancelled_by_another_session() {
    // Without the privilege each statement is sent once too, and cancelling returns at once.
    for name in ["good", "no-grants"] {
        let server = FakeServer::named(name);
        let target = server.open(false).unwrap();
        let client = target.client_session(&work(), 0).unwrap();
        client.canceller().cancel();
        client.canceller().cancel();
        let cancel = "ALTER SYSTEM CANCEL SQL '12, 34567, @1'";
        let said = || server.texts().iter().filter(|text| *text == cancel).count();
        let waited = (0..500).find(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            said() >= 2
        });
        assert!(waited.is_some() && said() == 2, "{name}: {:?}", server.texts());
    }
}

#[test]
fn a_list_of_nodes_is_refused_before_anything_is_opened() {
    let mut request = OpenRequest::new("oracle://ann:secret@db/x", std::path::PathBuf::new());
    request.nodes.push("oracle://ann:secret@db2/x".to_owned());
    let connector: &'static session::Connector = &|_, _, _| Err(TargetError::Local("opened".into()));
    let error = cluster::Oracle::open(&request, connector).err().unwrap().to_string();
    assert!(error.contains("leave out --node") && !error.contains("secret"), "{error}");
}

/// Names of what needs the Diagnostics Pack (Database Licensing Information), in capitals.
const LICENSED: [&str; 12] = [
    "DBA_HIST_", "ACTIVE_SESSION_HISTORY", "ACTIVE_SESS_HIST", "DBMS_WORKLOAD_REPOSITORY", "DBMS_ADDM", "DBA_ADDM_",
    "DBA_ADVISOR_", "AWR_", "SQL_MONITOR", "METRIC_HISTORY", "V$METRIC", "MGMT$",
];

fn licensed(text: &str) -> bool {
    LICENSED.iter().any(|name| text.to_uppercase().contains(name))
}

#[test]
fn nothing_of_awr_is_touched_unless_asked_for() {
    let (plain, asked, refusing) =
        (FakeServer::named("good"), FakeServer::named("good"), FakeServer::named("no-grants"));
    go_through(&plain, false);
    let target = refusing.open(false).unwrap();
    target.doctor().unwrap();
    target.clean().unwrap();
    target.abilities().tables.unwrap().views().unwrap();
    for server in [&plain, &refusing] {
        assert!(server.texts().iter().any(|text| text.contains("V$SQLSTATS")), "the statistics views are asked for");
        assert!(!server.texts().iter().any(|text| licensed(text)));
    }
    // The test can fail: with the option they are sent.
    go_through(&asked, true);
    assert!(asked.texts().iter().filter(|text| licensed(text)).count() >= 4);
    // And no other source file names it.
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/oracle")).unwrap() {
        let path = file.unwrap().path();
        if !path.is_dir() && !path.ends_with("awr.rs") && !path.ends_with("tests.rs") {
            assert!(!licensed(&std::fs::read_to_string(&path).unwrap()), "{path:?}");
        }
    }
}

#[test]
fn an_awr_report_is_made_between_two_snapshots() {
    for (name, want) in [
        ("good", Ok("<html>\n\n</html>\n")),
        // All instances.
        ("cluster", Ok("all\n")),
        ("no-snapshot", Err("not in DBA_HIST_SNAPSHOT")),
        ("empty-report", Err("is empty")),
        ("no-grants", Err("GRANT EXECUTE")),
    ] {
        let target = FakeServer::named(name).open(true).unwrap();
        match (target.abilities().native_reports.unwrap().native_report(7), want) {
            (Ok(report), want) => assert_eq!(Ok(report.as_str()), want, "{name}"),
            (Err(e), want) => assert!(want.is_err_and(|says| e.to_string().contains(says)), "{name}: {e}"),
        }
    }
}
