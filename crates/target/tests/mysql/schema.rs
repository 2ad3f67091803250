//! loadline's database: made, gone on with, cleaned, and never mixed up with a foreign one.

use loadline_model::Severity;
use loadline_target::TargetError;

use crate::server::{alone, server, work};

#[test]
fn what_loadline_made_goes_and_what_others_made_stays() {
    let _alone = alone();
    let server = server();
    let target = &server.target;
    let work = work("LGWR-LAT1", &[]);
    let databases = || server.sql("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'loadline'");
    target.create(&work).unwrap();
    target.load(&work, 2).unwrap();
    target.install(&work).unwrap();
    // A load that was cut off is gone on with.
    server.sql("DELETE FROM loadline.lgwr_lat1_redo WHERE id = 130");
    target.load(&work, 3).unwrap();
    assert_eq!(server.sql("SELECT COUNT(*), MIN(id), MAX(id) FROM loadline.lgwr_lat1_redo"), "384\t0\t383");
    server.sql("CREATE TABLE loadline.theirs (a INT)");
    let said = target.clean().unwrap().join("; ");
    assert!(said.contains("left alone") && said.contains("lgwr_lat1_redo") && said.contains("lgwr_lat1_run"), "{said}");
    assert_eq!(server.sql("SHOW TABLES FROM loadline"), "theirs");
    // It has no mark any more and holds something: it is not loadline's.
    let e = target.create(&work).unwrap_err();
    assert!(matches!(&e, TargetError::Refused(t) if t.contains("made_by_loadline")), "{e}");
    server.sql("DROP TABLE loadline.theirs");
    // Empty, made by an administrator for a user who may not make one: taken, and left there.
    target.create(&work).unwrap();
    target.clean().unwrap();
    assert_eq!(databases(), "1");
    server.sql("DROP DATABASE loadline");
    target.create(&work).unwrap();
    let said = target.clean().unwrap();
    assert!(said.contains(&"the database loadline".to_owned()), "{said:?}");
    assert_eq!((databases().as_str(), target.clean().unwrap().len()), ("0", 0));
}

#[test]
fn a_poor_user_is_told_what_is_missing() {
    let _alone = alone();
    let server = server();
    server.sql("CREATE OR REPLACE USER poor@localhost");
    let poor = server.as_users("poor").unwrap();
    let e = poor.create(&work("LGWR-LAT1", &[])).unwrap_err();
    assert!(matches!(&e, TargetError::Refused(t) if t.contains("GRANT ALL ON loadline.*")), "{e}");
    let findings = poor.doctor().unwrap();
    let process = findings.iter().find(|f| f.id == "process-privilege").unwrap();
    assert_eq!(process.severity, Severity::Warning);
    // All counters are there without a privilege.
    let mine = server.target.observer().unwrap().snapshot().unwrap();
    let theirs = poor.observer().unwrap().snapshot().unwrap();
    assert_eq!(mine.counters.keys().collect::<Vec<_>>(), theirs.counters.keys().collect::<Vec<_>>());
    server.sql("ALTER USER poor@localhost WITH MAX_USER_CONNECTIONS 9");
    let limit = server.as_users("poor").unwrap().job_limit().unwrap();
    assert_eq!(limit.jobs, Some(5));
    assert!(limit.because.contains("max_user_connections = 9"), "{}", limit.because);
    server.sql("DROP USER poor@localhost");
}

#[test]
fn the_lock_lets_one_run_in() {
    let _alone = alone();
    let server = server();
    let held = server.target.lock().unwrap();
    let e = server.as_users("root").unwrap().lock().map(drop).unwrap_err();
    assert!(matches!(&e, TargetError::Refused(t) if t.contains("another loadline run")), "{e}");
    drop(held);
    // The server lets go when it has seen that the session is gone.
    let again = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        server.target.lock().ok()
    });
    assert!(again.is_some());
}
