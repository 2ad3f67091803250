//! Equal work of two platforms' tests: parameters, programs, redo, and the source of blocks.

use std::collections::BTreeMap;

use crate::common::measured;
use loadline_analyze::compare::{Comparison, Platform, compare};
use loadline_analyze::sweeps;
use loadline_model::manifest::Calibration;
use loadline_model::plan::WorkloadFile;
use loadline_model::{Check, CheckId, DataSource, Outcome};
use loadline_model::{Driver, TestRecord, column};

fn versus(a: &[TestRecord], b: &[TestRecord]) -> Comparison {
    compare(&[Platform::of("a", a), Platform::of("b", b)]).remove(0)
}

fn with(platform: &str, parameters: &[(&str, i64)]) -> Vec<TestRecord> {
    let mut r = measured(platform, 1, 4, 100.0, 40.0);
    r.parameters = parameters.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
    vec![r]
}

#[test]
fn other_parameters_are_other_work() {
    let a = with("a", &[("rows", 1), ("batch", 64)]);
    let refused = |b: &[TestRecord]| versus(&a, b).refused;
    assert_eq!(refused(&with("b", &[("rows", 1), ("batch", 64)])), None);
    assert_eq!(
        refused(&with("b", &[("rows", 1), ("batch", 8)])).unwrap(),
        "different parameters: batch is 64 on 'a', 8 on 'b'"
    );
    assert!(refused(&with("b", &[("rows", 1)])).unwrap().contains("batch is 64 on 'a', missing on 'b'"));
    // An older version did not record them: only a caveat is possible.
    let c = versus(&a, &with("b", &[]));
    let caveat = c.rows[0].caveat.as_deref().unwrap();
    assert!(c.refused.is_none() && caveat.contains("parameters of the workload on 'b'"), "{caveat}");
    // Nor did it draw anew in each test.
    let mut drawn = with("c", &[("rows", 1), ("batch", 64)]);
    let caveat = |b: &[TestRecord]| versus(&a, b).rows[0].caveat.clone().unwrap_or_default();
    assert!(!caveat(&drawn).contains("seeds"));
    drawn[0].seed = Some(7);
    assert!(caveat(&drawn).contains("seeds of the tests") && caveat(&drawn).ends_with("on 'a'"), "{}", caveat(&drawn));
}

/// Log-writer workloads once changed their rows one by one: such a test is no equal work, though rows and redo are.
#[test]
fn the_same_rows_by_other_statements_are_other_work() {
    let with = |platform: &str, statements: f64| {
        let mut r = measured(platform, 1, 4, 100.0, 40.0);
        r.set(column::ROWS_PER_TX, 480.0);
        r.set(column::STATEMENTS_PER_TX, statements);
        vec![r]
    };
    let one = with("a", 1.0);
    assert_eq!(versus(&one, &with("b", 1.0)).rows[0].refused, None);
    let refused = versus(&one, &with("b", 480.0)).rows[0].refused.clone();
    assert_eq!(refused.unwrap(), "unequal work: 1 statements per transaction on 'a', 480 on 'b'");
}

#[test]
fn what_calibration_chose_may_differ() {
    let (a, b) =
        (with("a", &[("payload", 1_200), ("own-rows", 128)]), with("b", &[("payload", 1_330), ("own-rows", 128)]));
    let chosen = |names: &[&str]| {
        let parameters = names.iter().map(|n| ((*n).to_owned(), 1)).collect();
        BTreeMap::from([("LGWR-LAT1".to_owned(), Calibration { parameters, ..Calibration::default() })])
    };
    // One of the two met the nominal redo with the catalogue's defaults.
    let (of_a, of_b) = (chosen(&["payload"]), chosen(&[]));
    let side =
        |label, records, calibration| Platform { calibration: Some(calibration), ..Platform::of(label, records) };
    let all = compare(&[side("a", a.as_slice(), &of_a), side("b", b.as_slice(), &of_b)]);
    assert_eq!(all[0].refused, None);
    let none = chosen(&[]);
    let all = compare(&[side("a", a.as_slice(), &none), side("b", b.as_slice(), &none)]);
    assert!(all[0].refused.as_deref().unwrap().contains("payload is 1200 on 'a', 1330 on 'b'"));
}

#[test]
fn log_writers_do_equal_work_with_the_redo_that_their_workload_is_defined_with() {
    let test = |platform: &str, rows: f64, kib: f64| {
        let mut r = measured(platform, 1, 4, 100.0, 40.0);
        r.set(column::ROWS_PER_TX, rows);
        r.set(column::REDO_KIB_PER_TX, kib);
        vec![r]
    };
    let calibrated = |names: &[&str], kib: [f64; 3]| {
        let parameters = names.iter().map(|n| ((*n).to_owned(), 1)).collect();
        let nominal = Some(kib.map(|kib| kib * 1024.0));
        BTreeMap::from([("LGWR-LAT1".to_owned(), Calibration { parameters, nominal, ..Calibration::default() })])
    };
    let row = |a: (f64, f64), b: (f64, f64), of: &BTreeMap<String, Calibration>| {
        let (x, y) = (test("a", a.0, a.1), test("b", b.0, b.1));
        let side = |label, records| Platform { calibration: Some(of), ..Platform::of(label, records) };
        compare(&[side("a", x.as_slice()), side("b", y.as_slice())]).remove(0).rows.remove(0)
    };
    let lat1 = calibrated(&["payload"], [1.0, 1.5, 2.0]);
    let within = row((1.0, 1.88), (1.0, 1.02), &lat1);
    let caveat = within.caveat.unwrap();
    assert!(within.refused.is_none() && caveat.contains("1.84 times as much") && caveat.contains("1.00 to 2.00 KiB"));
    assert!(row((1.0, 1.5), (1.0, 2.04), &lat1).refused.is_none(), "what redo-size allows at the edges of a window");
    let outside = row((1.0, 1.5), (1.0, 2.2), &lat1).refused.unwrap();
    assert!(outside.starts_with("unequal work: 2.20 KiB") && outside.contains("1.00 to 2.00 KiB"), "{outside}");
    assert!(row((1.0, 1.5), (2.0, 1.5), &lat1).refused.unwrap().contains("1 rows per transaction on 'a', 2 on 'b'"));
    let lat25 = calibrated(&["payload", "rows"], [22.5, 25.0, 27.5]);
    let rows = row((25.0, 25.0), (12.0, 25.1), &lat25);
    let caveat = rows.caveat.unwrap();
    assert!(rows.refused.is_none() && caveat.contains("25 rows per transaction on 'a', 12 on 'b', which calibration"));
}

#[test]
fn a_users_workload_is_compared_by_its_file() {
    let file = |text: &str| vec![WorkloadFile { name: "queue.toml".to_owned(), text: text.to_owned() }];
    let (a, b) = (with("a", &[]), with("b", &[]));
    let compared = |x: &[WorkloadFile], y: &[WorkloadFile]| {
        let side = |label, records, workload_files| Platform { workload_files, ..Platform::of(label, records) };
        compare(&[side("a", &a, x), side("b", &b, y)]).remove(0)
    };
    let one = file("code = \"LGWR-LAT1\"   # mine\nprogram = [1]\n");
    assert_eq!(compared(&one, &file("code = \"LGWR-LAT1\"   # mine\r\nprogram = [1]")).refused, None);
    let other = compared(&one, &file("code = \"LGWR-LAT1\"\nprogram = [1, 2]\n"));
    assert!(
        other.refused.as_deref().unwrap().starts_with("different work: the workload file of LGWR-LAT1"),
        "{other:?}"
    );
    let unknown = compared(&one, &file("code = \"QUEUE\"\n"));
    assert!(unknown.rows[0].caveat.as_deref().unwrap().contains("file of the workload on 'b'"), "{unknown:?}");
}

#[test]
fn redo_refuses_only_what_it_defines() {
    let test = |platform: &str, workload: &str, group: &str, kib: f64| {
        let mut r = measured(platform, 1, 4, 100.0, 40.0);
        (r.workload, r.group) = (workload.to_owned(), group.to_owned());
        r.set(column::REDO_KIB_PER_TX, kib);
        vec![r]
    };
    let row = |workload: &str, group: &str, kib: f64| {
        versus(&test("a", workload, group, 1.0), &test("b", workload, group, kib)).rows.remove(0)
    };
    let refused = row("LGWR-LAT1", "log-writer", 1.2).refused.unwrap();
    assert_eq!(
        refused, "unequal work: 1.20 KiB of redo per transaction on 'b', 1.20 times as much as the 1.00 on 'a'",
        "what it is defined with is unknown here"
    );
    for (workload, group) in [
        ("TP-LIGHT", "transaction-processing"),
        ("DBL-11", "data-load"),
        ("DBWR-THR", "database-writer"),
        ("STO-RANDOM", "storage"),
    ] {
        let row = row(workload, group, 3.0);
        let caveat = row.caveat.unwrap();
        assert!(row.refused.is_none() && !row.factors.is_empty(), "{workload}");
        let said = "3.00 KiB of redo per transaction on 'b', 3.0 times as much as the 1.00 on 'a'";
        assert!(caveat.contains(said), "{caveat}");
    }
    assert_eq!(row("TP-LIGHT", "transaction-processing", 1.09).caveat, None);
    assert_eq!(row("DA-SCAN", "data-analytics", 3.0).caveat, None, "background redo");
}

fn read(platform: &str, test: u32, tps: f64, source: Option<DataSource>) -> TestRecord {
    let mut r = measured(platform, test, 4, tps, 40.0);
    (r.workload, r.group) = ("STO-READ".to_owned(), "storage".to_owned());
    r.data_source = source;
    r.forced.not_the_devices = source != Some(DataSource::Device);
    r
}

#[test]
fn cached_figures_are_never_compared_with_device_figures() {
    let row = |x, y| versus(&[read("a", 1, 100.0, x)], &[read("b", 1, 200.0, y)]).rows.remove(0);
    let refused = row(Some(DataSource::Device), Some(DataSource::Cached)).refused.unwrap();
    assert_eq!(refused, "different sources: blocks came from the device on 'a', from a cache on 'b'");
    assert!(row(None, Some(DataSource::Device)).refused.unwrap().contains("from an unknown source on 'a'"));
    let device = row(Some(DataSource::Device), Some(DataSource::Device));
    assert_eq!((device.refused, device.caveat), (None, None));
    let cached = row(Some(DataSource::Cached), Some(DataSource::Cached));
    let caveat = cached.caveat.unwrap();
    assert!(
        cached.refused.is_none()
            && caveat == "on both platforms kept by --allow-cached: cached, not the device's figures",
        "{caveat}"
    );
    // Writes have no source; only `forced` shows that they stayed in a cache.
    let mut kept = read("b", 1, 200.0, Some(DataSource::Device));
    kept.forced.not_the_devices = true;
    let row = versus(&[read("a", 1, 100.0, Some(DataSource::Device))], &[kept]).rows.remove(0);
    assert!(row.refused.unwrap().contains("figures kept by --allow-cached on 'b'"));
}

#[test]
fn rates_of_blocks_of_other_sizes_are_a_caveat() {
    let test = |platform: &str, block: f64, reads: f64| {
        let mut r = read(platform, 1, 100.0, Some(DataSource::Device));
        r.kpis = vec![column::BLOCK_READS_PER_S.id.to_owned()];
        r.set(column::BLOCK_BYTES, block);
        r.set(column::BLOCK_READS_PER_S, reads);
        r.set(column::READ_MIB_PER_S, reads * block / 1048576.0);
        vec![r]
    };
    let row = versus(&test("a", 16_384.0, 1_000.0), &test("b", 8_192.0, 1_070.0)).rows.remove(0);
    assert!((row.factor(column::BLOCK_READS_PER_S).unwrap().factor.value - 1.07).abs() < 1e-9);
    assert_eq!(
        row.caveat.unwrap(),
        "blocks of 16.0 KiB on 'a', of 8.0 KiB on 'b': as many blocks are not as many bytes; the factor of read [MiB/s] is 0.54"
    );
    let same = versus(&test("a", 8_192.0, 1_000.0), &test("b", 8_192.0, 1_070.0)).rows.remove(0);
    assert_eq!(same.caveat, None);
    let without: Vec<_> = [test("a", 16_384.0, 1.0), test("b", 8_192.0, 2.0)]
        .into_iter()
        .map(|mut t| {
            t[0].kpis = vec![column::ROWS_PER_S.id.to_owned()];
            t
        })
        .collect();
    assert_eq!(versus(&without[0], &without[1]).rows[0].caveat, None, "no rate of blocks is compared");
}

#[test]
fn forced_tests_are_a_caveat() {
    let a = [measured("a", 1, 4, 100.0, 40.0)];
    let mut b = [measured("b", 1, 4, 100.0, 40.0)];
    b[0].forced.refused = Some("fsync = off: commits are not durable".to_owned());
    let row = versus(&a, &b).rows.remove(0);
    assert_eq!(row.caveat.unwrap(), "on 'b' kept by --force: fsync = off: commits are not durable");
    assert_eq!(b[0].kept_by(), ["--force"]);
}

#[test]
fn tests_that_were_disturbed_are_a_caveat_and_not_pooled_with_others() {
    let a = [measured("a", 1, 4, 100.0, 40.0)];
    let mut b = [measured("b", 1, 4, 50.0, 80.0), measured("b", 2, 4, 100.0, 40.0)];
    b[0].set(column::OTHER_CPU_PCT, 75.0);
    b[0].add_check(Check::new(CheckId::OtherCpu, Outcome::Failed, ""));
    b[1].set(column::OTHER_CPU_PCT, 19.0);
    let kept = "disturbed: other processes on the CPU; throughput without the disturbance was at most 300 % higher";
    let row = versus(&a, &b[..1]).rows.remove(0);
    assert_eq!(row.caveat.unwrap(), format!("on 'b' {kept}"));
    let all = sweeps(&b);
    let point = &all[0].points[0];
    assert_eq!((point.tests.as_slice(), point.kept()), (&[2][..], None));
    assert_eq!((point.set_aside[0].test, point.set_aside[0].kept().as_deref()), (1, Some(kept)));
    b[0].add_check(Check::new(CheckId::Errors, Outcome::Failed, ""));
    assert_eq!(sweeps(&b[..1])[0].points[0].tests, [0; 0], "a refused test counts for nothing");
}

#[test]
fn repetitions_of_different_sources_are_not_pooled() {
    let tests = [
        read("a", 1, 900.0, Some(DataSource::Cached)),
        read("a", 2, 100.0, Some(DataSource::Device)),
        read("a", 3, 400.0, Some(DataSource::Lukewarm)),
        read("a", 4, 110.0, Some(DataSource::Device)),
    ];
    let all = sweeps(&tests);
    let point = &all[0].points[0];
    assert_eq!((point.tests.as_slice(), point.throughput().unwrap().mean), (&[2, 4][..], 105.0));
    assert_eq!((point.data_source, point.kept()), (Some(DataSource::Device), None));
    let aside: Vec<(u32, String)> = point.set_aside.iter().map(|s| (s.test, s.kept().unwrap())).collect();
    assert_eq!(aside[0], (1, "kept by --allow-cached: cached, not the device's figures".to_owned()));
    assert_eq!((aside[1].0, aside.len()), (3, 2));
    // Without device figures, the next best source.
    let all = sweeps(&[tests[0].clone(), tests[2].clone()]);
    let point = &all[0].points[0];
    assert_eq!((point.tests.as_slice(), point.data_source), (&[3][..], Some(DataSource::Lukewarm)));
    assert!(point.forced.not_the_devices);
}

#[test]
fn read_times_by_two_clocks_are_a_caveat() {
    let timed = |platform: &str, by_database: bool| {
        let mut r = read(platform, 1, 100.0, Some(DataSource::Device));
        r.set(column::READ_TIME_US_MEAN, 80.0);
        if by_database {
            r.set(column::READ_WAIT_PCT, 70.0);
        }
        vec![r]
    };
    let row = versus(&timed("a", true), &timed("b", false)).rows.remove(0);
    assert!(row.caveat.unwrap().contains("measured by the database on 'a', and is that of whole transactions on 'b'"));
    assert_eq!(versus(&timed("a", true), &timed("b", true)).rows.remove(0).caveat, None);
}

/// In loadline's process and in the database there are neither a client nor a network: such figures mean the same.
#[test]
fn other_drivers_are_compared_where_they_mean_the_same_or_if_asked() {
    let of = |platform: &str, driver: Driver| {
        let mut r = measured(platform, 1, 4, 100.0, 40.0);
        r.driver = driver;
        vec![r]
    };
    let (client, database) = (of("a", Driver::Client), of("b", Driver::Database));
    let compared = |in_process: bool, across_drivers: bool| {
        let a = Platform { in_process, across_drivers, ..Platform::of("a", &client) };
        let b = Platform { across_drivers, ..Platform::of("b", &database) };
        compare(&[a, b]).remove(0)
    };
    let refused = compared(false, false).refused.unwrap();
    assert!(refused.contains("'a' was measured with the client driver") && refused.contains("--across-drivers"));
    let said = |c: Comparison| {
        assert_eq!(c.refused, None);
        assert!(!c.rows[0].factors.is_empty());
        c.rows[0].caveat.clone().unwrap()
    };
    let embedded = said(compared(true, false));
    assert!(embedded.contains("'a' ran in loadline's process, 'b' ran in the database: neither"), "{embedded}");
    let asked = said(compared(false, true));
    assert!(asked.contains("round trip") && asked.contains("(--across-drivers)"), "{asked}");
}
