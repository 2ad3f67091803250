//! Equal work of two platforms' tests: what `data/compare.txt` says of parameters, programs, redo, load and the source of blocks; and
//! what is pooled.

use std::collections::BTreeMap;

use crate::common::{lines, measured};
use loadline_analyze::compare::{Platform, compare};
use loadline_analyze::sweeps;
use loadline_model::manifest::Calibration;
use loadline_model::plan::WorkloadFile;
use loadline_model::{Check, CheckId, DataSource, Outcome, TestRecord, column};

#[test]
fn tests_are_compared_or_refused_as_the_table_says() {
    for line in lines(include_str!("../data/compare.txt"), &measured("a", 1, 4, 100.0, 40.0)) {
        let calibrations: Vec<Option<BTreeMap<String, Calibration>>> =
            line.sides.iter().map(|side| serde_json::from_value(side["calibration"].clone()).unwrap()).collect();
        let file = |text: &str| WorkloadFile { name: "queue.toml".to_owned(), text: text.to_owned() };
        let files: Vec<Vec<WorkloadFile>> =
            line.sides.iter().map(|side| side["file"].as_str().map(file).into_iter().collect()).collect();
        let named = |(test, label): (&TestRecord, &str)| {
            [TestRecord { platform: label.to_owned(), run: format!("run-{label}"), ..test.clone() }]
        };
        let records: Vec<[TestRecord; 1]> = line.tests.iter().zip(["a", "b"]).map(named).collect();
        let side = |n: usize, label| Platform {
            calibration: calibrations[n].as_ref(),
            workload_files: &files[n],
            payload: serde_json::from_value(line.sides[n].clone()).ok(),
            data_bytes: line.sides[n]["data_bytes"].as_u64(),
            in_process: line.sides[n]["in_process"] == true,
            across_drivers: line.sides[n]["across_drivers"] == true,
            ..Platform::new(label, &records[n])
        };
        let mut found = compare(&[side(0, "a"), side(1, "b")]).remove(0);
        assert!(found.rows.iter().all(|row| row.factors.is_empty() == row.refused.is_some()), "{found:?}");
        let row = (!found.rows.is_empty()).then(|| found.rows.remove(0));
        let refused = found.refused.or_else(|| row.as_ref()?.refused.clone());
        let caveat = row.and_then(|row| row.caveat);
        let (kind, part) = line.expected.split_once(' ').unwrap_or((line.expected, ""));
        let said = [("refused", &refused), ("caveat", &caveat)].map(|(is, said)| match (kind == is, said) {
            (true, Some(said)) => part.strip_prefix("= ").map_or_else(|| said.contains(&part[2..]), |all| said == all),
            (is_wanted, said) => !is_wanted && said.is_none(),
        });
        assert_eq!(said, [true; 2], "{}\nis {refused:?}, {caveat:?}", line.expected);
    }
}

#[test]
fn tests_that_were_disturbed_are_a_caveat_and_not_pooled_with_others() {
    let a = [measured("a", 1, 4, 100.0, 40.0)];
    let mut b = [measured("b", 1, 4, 50.0, 80.0), measured("b", 2, 4, 100.0, 40.0)];
    b[0].set(column::OTHER_CPU_PCT, 75.0);
    b[0].add_check(Check::new(CheckId::OtherCpu, Outcome::Failed, ""));
    b[1].set(column::OTHER_CPU_PCT, 19.0);
    let kept = "disturbed: other processes on the CPU; throughput without the disturbance was at most 300 % higher";
    let row = compare(&[Platform::new("a", &a), Platform::new("b", &b[..1])]).remove(0).rows.remove(0);
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
    let read = |test: u32, tps: f64, source: DataSource| {
        let mut r = measured("a", test, 4, tps, 40.0);
        r.data_source = Some(source);
        r.forced.not_the_devices = source != DataSource::Device;
        r
    };
    let tests = [
        read(1, 900.0, DataSource::Cached),
        read(2, 100.0, DataSource::Device),
        read(3, 400.0, DataSource::Lukewarm),
        read(4, 110.0, DataSource::Device),
    ];
    let all = sweeps(&tests);
    let point = &all[0].points[0];
    assert_eq!((point.tests.as_slice(), point.throughput().unwrap().mean), (&[2, 4][..], 105.0));
    assert_eq!((point.kept.data_source, point.kept()), (Some(DataSource::Device), None));
    let aside: Vec<(u32, String)> = point.set_aside.iter().map(|s| (s.test, s.kept().unwrap())).collect();
    assert_eq!(aside[0], (1, "kept by --allow-cached: cached, not the device's figures".to_owned()));
    assert_eq!((aside[1].0, aside.len()), (3, 2));
    // Without device figures, the next best source.
    let all = sweeps(&[tests[0].clone(), tests[2].clone()]);
    let point = &all[0].points[0];
    assert_eq!((point.tests.as_slice(), point.kept.data_source), (&[3][..], Some(DataSource::Lukewarm)));
    assert!(point.kept.forced.not_the_devices);
}
