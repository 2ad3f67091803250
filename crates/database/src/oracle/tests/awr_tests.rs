//! AWR is used only on request, and then completely.

use super::*;

/// Names of what needs the Diagnostics Pack (Database Licensing Information), in capitals.
const LICENSED: [&str; 12] = [
    "DBA_HIST_", "ACTIVE_SESSION_HISTORY", "ACTIVE_SESS_HIST", "DBMS_WORKLOAD_REPOSITORY", "DBMS_ADDM", "DBA_ADDM_",
    "DBA_ADVISOR_", "AWR_", "SQL_MONITOR", "METRIC_HISTORY", "V$METRIC", "MGMT$",
];

#[test]
fn nothing_of_awr_is_touched_unless_asked_for() {
    let licensed = |server: &FakeServer| -> Vec<String> {
        let texts = server.texts().into_iter();
        texts.filter(|t| LICENSED.iter().any(|name| t.to_uppercase().contains(name))).collect()
    };
    let (plain, asked, refusing) = (willing(), willing(), unwilling());
    go_through(&plain, false);
    let target = cluster::Oracle::open(&request(), refusing.connector()).unwrap();
    target.doctor().unwrap();
    target.clean().unwrap();
    target.abilities().statistics_views.unwrap().views().unwrap();
    for server in [&plain, &refusing] {
        assert!(server.texts().iter().any(|text| text.contains("V$SQLSTATS")), "the statistics views are asked for");
    }
    assert_eq!(licensed(&plain), Vec::<String>::new());
    assert_eq!(licensed(&refusing), Vec::<String>::new());
    // The test can fail: with the option they are sent.
    go_through(&asked, true);
    assert!(licensed(&asked).len() >= 4, "{:?}", licensed(&asked));
    // And no other source file names it.
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/oracle")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".rs") && !["awr.rs", "tests.rs"].contains(&name.as_str()) {
            let text = std::fs::read_to_string(&path).unwrap().to_uppercase();
            let found = LICENSED.iter().find(|licensed| text.contains(*licensed));
            assert_eq!(found, None, "{name}");
        }
    }
}

#[test]
fn an_awr_report_is_made_between_two_snapshots() {
    let asked = OpenRequest { native_report: true, ..request() };
    let server = willing();
    let target = cluster::Oracle::open(&asked, server.connector()).unwrap();
    let reports = target.abilities().native_reports.unwrap();
    let mark = reports.native_mark().unwrap();
    assert_eq!(reports.native_report(mark).unwrap(), "<html>\n\n</html>\n");
    let sent: Vec<String> =
        server.texts().into_iter().filter(|t| t.contains("WORKLOAD") || t.contains("DBA_HIST")).collect();
    assert_eq!(sent, [awr::SNAPSHOT, awr::SNAPSHOT, awr::FILED, awr::OF_INSTANCE]);
    // Without the option there are no reports.
    let plain = cluster::Oracle::open(&request(), server.connector()).unwrap();
    assert!(plain.abilities().native_reports.is_none());

    // On a cluster the report covers all instances; without filed snapshots there is none.
    let answering = |filed: &'static [&'static str]| {
        FakeServer::new(move |sql, _| {
            Ok(match sql {
                awr::SNAPSHOT => vec![row(&["8"])],
                awr::FILED if filed.is_empty() => vec![],
                awr::FILED => vec![row(filed)],
                awr::OF_ALL => vec![row(&["all"])],
                _ => vec![],
            })
        })
    };
    let cluster_of = |server: &FakeServer| cluster::Oracle::open(&asked, server.connector()).unwrap();
    assert_eq!(
        cluster_of(&answering(&["4711", "1", "2"])).abilities().native_reports.unwrap().native_report(7).unwrap(),
        "all\n"
    );
    for (filed, says) in [(&[][..], "not in DBA_HIST_SNAPSHOT"), (&["4711", "1", "1"][..], "is empty")] {
        let error =
            cluster_of(&answering(filed)).abilities().native_reports.unwrap().native_report(7).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("snapshot 7 to snapshot 8"), "{error}");
    }
    // Without the grant it says what to ask for.
    let refusing = FakeServer::new(|sql, _| {
        if sql == awr::SNAPSHOT {
            return Err(OraError::numbered(6550, "PLS-00201: identifier 'DBMS_WORKLOAD_REPOSITORY' must be declared"));
        }
        Ok(vec![])
    });
    let refusing = cluster_of(&refusing);
    let mark = refusing.abilities().native_reports.unwrap().native_mark();
    let Err(TargetError::Refused(text)) = mark else { panic!("it was taken") };
    assert!(text.contains("PLS-00201") && text.contains("GRANT EXECUTE"), "{text}");
}
