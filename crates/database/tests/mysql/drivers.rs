//! Both drivers: the same work, the same bytes, honest times.

use loadline_database::{TargetError, Work};
use loadline_workload::{Arg, ColumnDef, LogicalType};

use crate::server::*;
use crate::shared::*;

fn contents(server: &Server, work: &Work) -> String {
    let first = &work.workload.tables[0];
    let table = format!("loadline.{}_{}", work.workload.code.to_lowercase().replace('-', "_"), first.name);
    let hex = |c: &ColumnDef| if c.logical == LogicalType::Bytes { format!("HEX({})", c.name) } else { c.name.clone() };
    let row: Vec<String> = first.columns.iter().map(hex).collect();
    let row = format!("MD5(CONCAT_WS(':', {}))", row.join(", "));
    server.sql(&format!(
        "SELECT COUNT(*), MD5(GROUP_CONCAT({row} ORDER BY id SEPARATOR '')), \
         BIT_XOR(CONV(SUBSTRING({row}, 1, 15), 16, 10)) FROM {table}"
    ))
}

#[test]
fn both_drivers_write_the_same_bytes_and_the_evidence_equals_the_work() {
    let server = server_alone();
    let seen = both_drivers_write_the_same_bytes(server.target.as_ref(), |work| contents(&server, work));
    assert_eq!(seen, 0, "one answer: the moment of the commit cannot be seen");
}

#[test]
fn a_slice_ends_in_time_and_its_times_are_on_our_clock() {
    let server = server_alone();
    let fewest = slices(server.target.as_ref(), &work("LGWR-LAT1", &[]), 200_000_000, 2_000_000, 0.0);
    assert!(fewest > 10, "{fewest}");
}

#[test]
fn a_failed_statement_is_an_error_and_the_session_lives_on() {
    let server = server_alone();
    let work = loaded(server.target.as_ref(), work("LGWR-LAT1", &[]), 1);
    let (mut client, committed) = crate::shared::a_failed_statement_is_an_error_and_the_session_lives_on(
        server.target.as_ref(),
        &work,
        &[7; 5000],
        "1406",
    );
    assert!(committed.is_ok(), "the transaction goes on without it: {committed:?}");
    client.canceller().cancel();
    assert!(matches!(client.execute(0, &[Arg::Bytes(b"x"), Arg::Int(0)]), Err(TargetError::Lost(_))));
}

/// Defaults of a server for its sessions must not reach loadline's.
#[test]
fn no_sql_mode_and_no_character_set_of_the_server_changes_the_work() {
    let server = server_alone();
    let work = work("LGWR-LAT1", &[]);
    let mut seen = Vec::new();
    for (mode, charset, init) in [
        ("STRICT_TRANS_TABLES", "utf8mb4", ""),
        ("ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH", "latin1", ""),
        ("ORACLE", "utf16", ""),
        ("MAXDB,NO_AUTO_VALUE_ON_ZERO", "ucs2", "SET NAMES latin1"),
        ("EMPTY_STRING_IS_NULL,SIMULTANEOUS_ASSIGNMENT,HIGH_NOT_PRECEDENCE", "utf32", "SET sql_mode = ORACLE"),
    ] {
        server.sql(&format!(
            "SET GLOBAL sql_mode = '{mode}'; SET GLOBAL character_set_server = {charset}; SET GLOBAL init_connect = '{init}'"
        ));
        // init_connect is for those who are no administrators.
        server.sql("CREATE OR REPLACE USER plain@localhost; GRANT ALL ON loadline.* TO plain@localhost");
        let said = (|| {
            let target = server.as_users("plain")?;
            target.create(&work)?;
            target.load(&work, 1)?;
            target.abilities().driver().unwrap().install(&work)?;
            let mut session = target.abilities().driver().unwrap().database_session(&work, 0)?;
            for _ in 0..5 {
                session.run_slice(0)?;
            }
            let mut client = target.client_session(&work, 0)?;
            let mut stream = work.stream(0).map_err(|e| TargetError::Usage(e.to_string()))?;
            for _ in 0..5 {
                assert_eq!(transact(&mut stream, &work, client.as_mut()), None);
            }
            assert_eq!(target.evidence(&work)?, Some(10));
            Ok::<_, TargetError>((contents(&server, &work), target.clean()?))
        })();
        server.sql(
            "SET GLOBAL sql_mode = DEFAULT; SET GLOBAL character_set_server = DEFAULT; SET GLOBAL init_connect = ''",
        );
        let (contents, cleaned) = said.unwrap_or_else(|e| panic!("{mode} {charset} {init}: {e}"));
        assert!(cleaned.contains(&"the database loadline".to_owned()), "{mode} {charset}: {cleaned:?}");
        seen.push(contents);
    }
    assert!(seen.iter().all(|contents| *contents == seen[0]), "{seen:#?}");
    server.sql("DROP USER plain@localhost");
}
