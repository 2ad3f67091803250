//! The two published studies: what is known to be odd about them is found, and nothing else is called an error.

use loadline_analyze::audit::{Audit, Claim, Finding, Options, Severity, audit, table};

fn study(text: &str, claims: &[&str]) -> Audit {
    let claims = claims.iter().map(|c| Claim::parse(c).unwrap()).collect();
    audit(&table::read(text, "study.csv").unwrap(), &Options { claims, ..Options::default() })
}

fn log_writer() -> Audit {
    study(include_str!("data/log-writer-exadata.csv"), &["latency factor 6"])
}

fn data_load() -> Audit {
    study(include_str!("data/data-load-exadata-x4-2.csv"), &[])
}

fn of<'a>(found: &'a Audit, law: &str) -> Vec<&'a Finding> {
    found.findings.iter().filter(|f| f.law == law).collect()
}

#[test]
fn the_only_error_is_the_row_whose_cpu_does_not_add_up() {
    let found = log_writer();
    let errors: Vec<&Finding> = found.findings.iter().filter(|f| f.severity == Severity::Error).collect();
    let [error] = errors.as_slice() else { panic!("{errors:#?} {:#?}", of(&found, "cpu-parts")) };
    assert_eq!((error.law, error.row), ("cpu-parts", Some(14)));
    assert_eq!((error.printed.as_str(), error.recomputed.as_str()), ("24", "22"));
    assert!(error.test.contains("jobs 80"), "{error:?}");
    assert_eq!(data_load().count(Severity::Error), 0, "{:#?}", data_load().findings);
}

#[test]
fn units_padding_and_the_row_with_other_work_are_found() {
    let found = log_writer();
    let unit = of(&found, "kilobyte");
    assert!(unit.len() == 1 && unit[0].message.contains("61 of 61") && unit[0].severity == Severity::Info, "{unit:?}");
    let padding: Vec<&Finding> = of(&found, "redo-blocks").into_iter().filter(|f| f.row.is_none()).collect();
    assert_eq!(padding.len(), 8, "one a series");
    assert!(padding.iter().all(|f| f.message.contains("blocks of 512 B") && f.message.contains("per transaction")));
    let other = of(&found, "same-work");
    assert!(other.len() == 1 && other[0].row == Some(1) && other[0].printed == "2.07", "{other:?}");
}

#[test]
fn rates_are_diluted_by_less_than_a_percent_and_corrected() {
    let found = log_writer();
    let diluted = of(&found, "dilution");
    assert!(diluted.len() > 45, "{}", diluted.len());
    for f in &diluted {
        let (off, printed) = (f.deviation_pct.unwrap(), f.printed.parse::<f64>().unwrap());
        assert!((-0.7..-0.1).contains(&off) && f.recomputed.parse::<f64>().unwrap() > printed, "{f:?}");
    }
    let load = data_load();
    let long = of(&load, "elapsed");
    assert!(long.len() == 8 && long.iter().all(|f| f.row.is_some() && f.message.contains("300 s")), "{long:?}");
}

#[test]
fn falling_throughput_and_missing_tests_are_named() {
    let found = log_writer();
    let falls: Vec<Option<usize>> = of(&found, "falling-throughput").iter().map(|f| f.row).collect();
    assert_eq!(falls, [Some(51), Some(52)], "X5-2, LGWR-THR with 60 and 72 jobs");
    let gaps: Vec<&str> = of(&found, "test-numbers").iter().map(|f| f.printed.as_str()).collect();
    assert_eq!(gaps, ["194", "196", "198", "200"]);
}

#[test]
fn the_factor_of_six_is_that_of_another_latency() {
    let found = log_writer();
    let claims = of(&found, "claim");
    let column = |id: &str| *claims.iter().find(|f| f.columns == [id]).unwrap();
    let (commit, sync) = (column("commit_latency_ms"), column("log_file_sync_ms"));
    assert!(commit.message.contains("4.95 at best") && commit.severity == Severity::Warning, "{commit:?}");
    assert!(sync.message.contains("8.25"), "{sync:?}");
}

#[test]
fn blocks_of_the_load_hold_the_log_and_commits_do_not_wait() {
    let found = data_load();
    let blocks = of(&found, "data-blocks");
    assert!(blocks.len() == 1 && blocks[0].message.contains("blocks of 8192 B fit in 8 of 8"), "{blocks:?}");
    assert_eq!(of(&found, "group-commit").len(), 8);
}

#[test]
fn percentiles_that_fall_are_errors_and_at_an_edge_warnings() {
    let with = |p95: &str| study(&format!("clients,tps,p95 (ms),p99 (ms)\n4,3000,{p95},2.1\n16,8000,3.0,5.0\n"), &[]);
    let severity = |p95: &str| of(&with(p95), "percentiles").first().map(|f| f.severity);
    assert_eq!(severity("2.1"), None);
    assert_eq!(severity("2.2"), Some(Severity::Warning), "both can be 2.15");
    assert_eq!(severity("2.4"), Some(Severity::Error));
}

#[test]
fn rows_per_transaction_printed_as_0_or_not_at_all_are_recomputed() {
    let text = include_str!("data/data-load-exadata-x4-2.csv");
    let with = |cell: &str| study(&text.replace("DBL-11,7,7,1,1,1,50,", &format!("DBL-11,7,7,1,1,1,{cell},")), &[]);
    for (cell, severity) in [("0", Severity::Error), ("", Severity::Info), ("40", Severity::Error)] {
        let found = with(cell);
        let rows = of(&found, "rows");
        assert!(rows.len() == 1 && rows[0].row == Some(7) && rows[0].severity == severity, "{cell}: {rows:?}");
        let value: f64 = rows[0].recomputed.parse().unwrap();
        assert!((value - 50.0).abs() < 0.2, "{cell}: {value}");
        assert_eq!(found.count(Severity::Error), usize::from(severity == Severity::Error), "{:#?}", found.findings);
    }
}

/// A counter read a moment late in one row of precise figures: others that agree make no error of it.
#[test]
fn a_counter_read_a_moment_late_is_no_error() {
    let with = |rate: &str| {
        let rows = "1,1013.27,24.4137,24.1579\n2,2027.41,24.4137,48.3365\n4,3041.13,24.4137,72.5051\n";
        study(&format!("jobs,tps,redo_kib_per_tx,redo_mib_per_s\n{rows}8,4057.89,24.4137,{rate}\n"), &[])
    };
    let severity = |rate: &str| with(rate).findings.iter().find(|f| f.law == "redo-rate").map(|f| f.severity);
    assert_eq!(severity("96.7462"), None);
    assert_eq!(severity("96.8139"), Some(Severity::Warning), "0.07 %");
    assert_eq!(severity("98.0039"), Some(Severity::Error), "1.3 %");
}

/// At the end of a sweep no curve tells it.
#[test]
fn writes_that_hold_far_fewer_commits_than_with_fewer_jobs_are_named() {
    let text = include_str!("data/log-writer-exadata.csv");
    let rows = |text: &str| of(&study(text, &[]), "group-commit").iter().map(|f| f.row).collect::<Vec<_>>();
    assert!(!rows(text).contains(&Some(7)));
    assert!(rows(&text.replace("345624,6813,", "345624,68130,")).contains(&Some(7)));
}
