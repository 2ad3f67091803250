//! Equal work of two platforms' tests: what `data/compare.txt` says of parameters, programs, redo, load and the source of blocks.

use std::collections::BTreeMap;

use crate::common::{lines, measured};
use loadline_analyze::compare::{Platform, compare};
use loadline_model::TestRecord;
use loadline_model::manifest::Calibration;
use loadline_model::plan::WorkloadFile;

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
