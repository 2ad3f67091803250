//! The doctor's findings from a server's answers.

use loadline_model::Severity;

use super::*;
use crate::oracle::descriptor::KNOWLEDGE;
use crate::oracle::doctor::{Answers, ask, judge};

fn found(answers: &Answers, id: &str) -> Option<(Severity, String, String)> {
    let findings = judge(answers);
    for f in &findings {
        assert!(f.severity == Severity::Ok || !f.advice.is_empty(), "{}: no advice", f.id);
    }
    findings.iter().find(|f| f.id == id).map(|f| (f.severity, f.value.clone(), f.advice.clone()))
}

fn answers(given: &[(&'static str, Vec<crate::oracle::session::Row>)]) -> Answers {
    Answers {
        version: "19.24.0.0.0".into(),
        answers: given.iter().map(|(id, rows)| (*id, Ok(rows.clone()))).collect(),
        ..Answers::default()
    }
}

#[test]
fn each_question_that_is_refused_says_what_is_lost_and_what_to_ask_for() {
    let no = OraError::numbered(942, "ORA-00942: table or view does not exist");
    for q in &KNOWLEDGE.questions {
        let a = Answers { answers: vec![(q.id.as_str(), Err(no.clone()))], ..answers(&[]) };
        let (severity, value, advice) = found(&a, &q.id).unwrap();
        assert!(
            severity == Severity::Warning && value.contains("ORA-00942") && advice.contains("unknown:"),
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
                vec![row(&["ARCHIVELOG", "YES", mode, role, "Linux x86 64-bit", "YES", "NO", "MAXIMUM PERFORMANCE"])],
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
        ("alter-system", Severity::Warning, "GRANT ALTER SYSTEM"),
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
fn the_tightest_limit_of_sessions_limits_jobs() {
    let mut server = FakeServer::new(|sql, _| {
        Ok(if sql.contains("RESOURCE_LIMIT WHERE RESOURCE_NAME IN") {
            vec![row(&["processes", "80", "300"]), row(&["sessions", "90", "UNLIMITED"])]
        } else if sql.contains("USER_RESOURCE_LIMITS") {
            vec![row(&["SESSIONS_PER_USER", "50"]), row(&["IDLE_TIME", "10"])]
        } else {
            vec![]
        })
    });
    let limit = crate::oracle::doctor::job_limit(&mut server).unwrap();
    assert_eq!(limit.jobs, Some(47));
    assert!(limit.because.contains("SESSIONS_PER_USER = 50"));
}

#[test]
fn what_is_missing_is_asked_for_in_statements_with_the_users_name() {
    let no = OraError::numbered(942, "ORA-00942: table or view does not exist");
    let mut a = answers(&[
        ("database", vec![row(&["orcl", "pdb", "orcl1", "PRIMARY", "ann b", "ann b"])]),
        ("privileges", vec![row(&["CREATE SESSION"])]),
        ("quota", vec![row(&["USERS", "∅", "8192", "NO"])]),
        ("gv$instance", vec![row(&["orcl1", "a"]), row(&["orcl2", "b"])]),
    ]);
    a.answers.push(("v$log", Err(no)));
    let (_, statements, _) = found(&a, "to-ask-the-administrator-for").unwrap();
    assert_eq!(
        statements,
        "GRANT CREATE TABLE, ALTER SYSTEM, SELECT_CATALOG_ROLE TO \"ann b\"; ALTER USER \"ann b\" QUOTA 1G ON USERS"
    );
    assert!(found(&a, "v$log").unwrap().2.ends_with("GRANT SELECT ON SYS.V_$LOG TO \"ann b\""));
    assert!(found(&a, "cluster").unwrap().2.contains("--node"));
    assert_eq!(found(&a, "database-driver").unwrap().0, Severity::Warning, "nothing of it was tried");
    assert!(found(&answers(&[]), "to-ask-the-administrator-for").is_none());
}

/// The findings as `loadline doctor` prints them.
fn shown(server: &FakeServer) -> String {
    let target = cluster::Oracle::open(&request(), server.connector()).unwrap();
    let mut findings = target.doctor().unwrap();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    let line = |f: &loadline_model::Finding| {
        let advice = if f.advice.is_empty() { String::new() } else { format!(": {}", f.advice) };
        format!("{:?} {} = {}{advice}\n", f.severity, f.subject, f.value)
    };
    findings.iter().map(line).collect()
}

/// The whole output, on a server that allows nothing and on a good one.
#[test]
fn the_whole_output() {
    insta::assert_snapshot!("doctor_without_grants", shown(&unwilling()));
    insta::assert_snapshot!("doctor_on_a_good_server", shown(&good()));
}

/// A server as it should be, of one instance.
fn good() -> FakeServer {
    FakeServer::new(|sql, _| {
        let is = |id: &str| KNOWLEDGE.question(id).is_some_and(|q| q.sql == sql);
        Ok(if is("database") {
            vec![row(&["orcl", "PDB1", "orcl1", "PRIMARY", "ANN", "ANN"])]
        } else if is("privileges") {
            vec![row(&["ALTER SYSTEM"]), row(&["CREATE SESSION"]), row(&["CREATE TABLE"])]
        } else if is("quota") {
            vec![row(&["USERS", "-1", "8192", "NO"])]
        } else if is("profile") {
            vec![]
        } else if is("utl_raw") {
            vec![row(&["4F41"])]
        } else if is("parameters") {
            vec![row(&["cluster_database", "FALSE"]), row(&["processes", "300"])]
        } else if is("v$database") {
            vec![row(&[
                "ARCHIVELOG", "YES", "READ WRITE", "PRIMARY", "Linux x86 64-bit", "YES", "NO", "MAXIMUM PERFORMANCE",
            ])]
        } else if is("v$log") {
            vec![row(&["1", "4294967296", "512", "CURRENT"]), row(&["2", "4294967296", "512", "INACTIVE"])]
        } else if is("gv$instance") {
            vec![row(&["orcl1", "db1", "19.0.0.0.0", "OPEN"])]
        } else if is("gv$session") {
            vec![row(&["0"])]
        } else if is("gv$resource_limit") {
            vec![row(&["processes", "80", "300"]), row(&["sessions", "90", "472"])]
        } else if is("log-writer-statistics") {
            let names = ["redo blocks written", "redo size", "redo synch writes", "redo writes", "user commits"];
            names.iter().map(|n| row(&[n, "12345"])).collect()
        } else if sql.contains(":overhead_ns") {
            vec![row(&["2100"])]
        } else if sql.contains("SYSTIMESTAMP") {
            vec![row(&["800000000000000"])]
        } else {
            vec![row(&["0"])]
        })
    })
}
