//! The two published studies: what is known to be odd about them is found, and nothing else is called an error.

use loadline_analyze::audit::{Audit, Finding, Options, Severity, audit, table};

const LOAD: &str = include_str!("data/data-load-exadata-x4-2.csv");

fn study(text: &str) -> Audit {
    audit(&table::read(text, "study.csv").unwrap(), &Options::default())
}

fn of_law<'a>(found: &'a Audit, law: &str) -> Vec<&'a Finding> {
    found.findings.iter().filter(|f| f.law == law).collect()
}

#[test]
fn the_log_writers_have_one_error_and_known_oddities() {
    let found = study(include_str!("data/log-writer-exadata.csv"));
    let errors: Vec<&Finding> = found.findings.iter().filter(|f| f.severity == Severity::Error).collect();
    let [error] = errors.as_slice() else { panic!("{errors:#?}") };
    assert_eq!((error.law, error.row, error.test.contains("jobs 80")), ("cpu-parts", Some(14), true));
    assert_eq!((error.printed.as_str(), error.recomputed.as_str()), ("24", "22"));
    let said = |law| of_law(&found, law)[0].reason.to_string();
    assert!(said("kilobyte").contains("61 of 61") && said("redo-blocks").contains("512 B fit in 61 of 61"));
    let of_rows = |law| of_law(&found, law).iter().map(|f| (f.row.unwrap(), f.printed.as_str())).collect::<Vec<_>>();
    assert_eq!(of_rows("same-work"), [(1, "2.07")]);
    assert_eq!(of_rows("falling-throughput"), [(51, "2100"), (52, "2082")], "X5-2, LGWR-THR with 60 and 72 jobs");
    assert_eq!(of_rows("test-numbers"), [(9, "194"), (10, "196"), (11, "198"), (12, "200")]);
    let diluted = of_law(&found, "dilution");
    assert!(diluted.len() > 45, "{}", diluted.len());
    assert!(diluted.iter().all(|f| (-0.7..-0.1).contains(&f.deviation_pct.unwrap())), "{diluted:#?}");
}

#[test]
fn the_data_load_has_no_error_and_known_oddities() {
    let load = study(LOAD);
    assert_eq!(load.count(Severity::Error), 0, "{:#?}", load.findings);
    let blocks = of_law(&load, "data-blocks")[0].reason.to_string();
    assert!(blocks.contains("8192 B fit in 8 of 8 rows, less the redo"), "{blocks}");
    assert_eq!(["group-commit", "elapsed", "same-work"].map(|law| of_law(&load, law).len()), [8, 8, 0]);
}

#[test]
fn rows_per_transaction_that_cannot_be_are_recomputed() {
    for cell in ["0", "40"] {
        let found = study(&LOAD.replace("DBL-11,7,7,1,1,1,50,", &format!("DBL-11,7,7,1,1,1,{cell},")));
        let rows = of_law(&found, "rows");
        assert!(rows.len() == 1 && rows[0].row == Some(7) && rows[0].severity == Severity::Error, "{cell}: {rows:?}");
        assert!((rows[0].recomputed.parse::<f64>().unwrap() - 50.0).abs() < 0.2, "{cell}");
        assert_eq!(found.count(Severity::Error), 1, "{:#?}", found.findings);
    }
}

/// A counter read a moment late in one row of precise figures: others that agree make no error of it.
#[test]
fn a_counter_read_a_moment_late_is_no_error() {
    let severity = |rate: &str| {
        let rows = "1,1013.27,24.4137,24.1579\n2,2027.41,24.4137,48.3365\n4,3041.13,24.4137,72.5051\n";
        let found = study(&format!("jobs,tps,redo_kib_per_tx,redo_mib_per_s\n{rows}8,4057.89,24.4137,{rate}\n"));
        found.findings.iter().find(|f| f.law == "redo-rate").map(|f| f.severity)
    };
    assert_eq!(severity("96.7462"), None);
    assert_eq!(severity("96.8139"), Some(Severity::Warning), "0.07 %");
    assert_eq!(severity("98.0039"), Some(Severity::Error), "1.3 %");
}
