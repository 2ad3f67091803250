//! `loadline forecast` of tables: the forms of its output, and what it says of bad ones.

use std::path::Path;

use crate::common::loadline;

const STUDY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../references/log-writer-exadata.csv");

/// Exit code, standard output and standard error.
fn forecast(args: &[&str]) -> (i32, String, String) {
    let ran = loadline().arg("forecast").args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (ran.status.code().unwrap(), text(&ran.stdout), text(&ran.stderr))
}

/// What is said of a table that cannot be used: exit code 2, nothing on standard output.
fn refused(folder: &Path, table: &str) -> String {
    let file = folder.join("table.csv");
    std::fs::write(&file, table).unwrap();
    let (code, out, said) = forecast(&[file.to_str().unwrap()]);
    assert!(code == 2 && out.is_empty(), "{table}: {code} {out} {said}");
    said
}

#[test]
fn a_forecast_is_a_row_per_series_jobs_and_figure() {
    let (code, out, _) = forecast(&[STUDY, "--jobs", "30,128", "--tps", "25000", "--format", "csv", "--output", "-"]);
    assert_eq!(code, 0);
    let mut lines = out.lines();
    assert_eq!(lines.next(), Some("series,jobs,figure,value,low,high,model"));
    let rows: Vec<Vec<&str>> = lines.map(|l| l.split(',').collect()).collect();
    assert!(rows.iter().all(|r| r.len() == 7), "{rows:?}");
    let tps: Vec<_> = rows.iter().filter(|r| r[2] == "commit_throughput_tps").collect();
    assert_eq!(tps.len(), 16);
    for row in tps {
        let [value, low, high] = [3, 4, 5].map(|n| row[n].parse::<f64>().unwrap());
        assert!(low < value && value < high && (row[6] == "interpolation") == (row[1] == "30"), "{row:?}");
    }
    assert!(
        rows.iter()
            .any(|r| r[0] == "X9M-2 LGWR-LAT25" && r[2] == "jobs_for_25000_tps" && r[3].parse::<f64>().unwrap() < 24.0)
    );
}

#[test]
fn an_evaluation_ends_with_all_series() {
    let (code, out, _) = forecast(&["--evaluate", STUDY, "--format", "csv", "--output", "-"]);
    assert_eq!(code, 0);
    assert_eq!(out.lines().next(), Some("series,model,held_out,mean_abs_error_pct,coverage_pct,refused"));
    let all: Vec<&str> = out.lines().last().unwrap().split(',').collect();
    assert!(out.lines().count() == 10 && all[..3] == ["all", "", "27"], "{out}");
    let [error, coverage] = [3, 4].map(|n| all[n].parse::<f64>().unwrap());
    assert!(error <= 5.0 && coverage >= 85.0, "{out}");
    let (_, json, _) = forecast(&["--evaluate", STUDY, "--format", "json"]);
    assert!(["\"overall\"", "\"held_out\": 27", "\"model\": \"usl\""].iter().all(|part| json.contains(part)), "{json}");
    let (_, text, _) = forecast(&["--evaluate", STUDY]);
    for model in ["closed model", "Universal Scalability Law"] {
        assert!(text.contains(model), "{text}");
    }
}

#[test]
fn every_format_holds_the_answer() {
    let (_, csv, _) = forecast(&[STUDY, "--latency", "9ms", "--format", "csv"]);
    assert!(csv.contains(",jobs_above_9_commit_latency_ms,"), "{csv}");
    for (format, holds) in
        [("text", "20,000 tps need"), ("md", "| "), ("html", "<svg"), ("json", "\"jobs_for_20000_tps\"")]
    {
        let (code, out, said) = forecast(&[STUDY, "--workload", "LGWR-LAT25", "--tps", "20000", "--format", format]);
        assert!(code == 0 && out.contains(holds) && !out.contains("NaN"), "{format}: {said}{out}");
    }
}

#[test]
fn bad_tables_are_refused_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let head = "jobs,commit_throughput_tps\n";
    for (table, said) in [
        (format!("{head}8,500\n"), "single job count"),
        (format!("{head}1,100\n2,NaN\n4,300\n"), "NaN"),
        (format!("{head}1,100\n2,0\n4,300\n"), "'0'"),
        (format!("{head}1,100\n-2,200\n4,300\n"), "'-2'"),
        ("clients,speed\n1,100\n2,200\n".to_owned(), "commit_throughput_tps"),
        ("jobs,latency_ms\n1,1\n2,2\n".to_owned(), "commit_throughput_tps"),
        (String::new(), "empty"),
    ] {
        assert!(refused(folder.path(), &table).contains(said), "{table}: {}", refused(folder.path(), &table));
    }
    let (code, _, said) = forecast(&["/nonexistent"]);
    assert!(code == 2 && said.contains("/nonexistent"), "{said}");
    for (option, value) in [
        ("--tps", "15,000"),
        ("--p99", "5"),
        ("--cpu", "180%"),
        ("--latency", "0ms"),
        ("--jobs", "0"),
        ("--tps", "-5"),
        ("--latency", "-1ms"),
        ("--workload", "X"),
    ] {
        let (code, _, said) = forecast(&[STUDY, option, value]);
        assert!(code == 2 && said.contains(value), "{option} {value}: {said}");
    }
}

#[test]
fn numbers_may_be_written_in_other_ways_and_rows_twice() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("table.csv");
    let answer = |table: &str| {
        std::fs::write(&file, table).unwrap();
        let (code, out, said) = forecast(&[file.to_str().unwrap(), "--jobs", "32", "--format", "csv"]);
        assert_eq!(code, 0, "{table}: {said}");
        (out.lines().find(|l| l.contains("commit_throughput_tps")).unwrap().to_owned(), said)
    };
    let (plain, _) = answer("jobs,commit_throughput_tps\n1,1000.5\n2,1900\n4,3400\n8,5200\n16,6700\n");
    for (table, note) in [
        ("jobs;commit_throughput_tps\n1;1.000,5\n2;1.900,0\n4;3.400,0\n8;5.200,0\n16;6.700,0\n".to_owned(), ""),
        ("jobs,tps\n1,\"1,000.5\"\n2,\"1,900\"\n4,\"3,400\"\n8,\"5,200\"\n16,\"6,700\"\n".to_owned(), ""),
        ("jobs,tps\n1,1000.5\n2,1900\n2,1900\n3,\n4,3400\n8,5200\n16,6700\n".to_owned(), "twice"),
        (
            "jobs,tps,valid\n1,1000.5,true\n2,1900,true\n2,9,false\n4,3400,true\n8,5200,true\n16,6700,true\n"
                .to_owned(),
            "invalid",
        ),
    ] {
        let (found, said) = answer(&table);
        assert!(found == plain && said.contains(note), "{table}: {found}, {plain}, {said}");
    }
    // What differs within the table belongs to the series' name.
    let rows = |nodes: u32| format!("L,LAT1,{nodes},1,1000\nL,LAT1,{nodes},2,1900\nL,LAT1,{nodes},4,3400\n");
    std::fs::write(&file, format!("platform,workload,nodes,jobs,tps\n{}{}", rows(1), rows(2))).unwrap();
    let (code, out, said) = forecast(&[file.to_str().unwrap(), "--workload", "LAT1", "--format", "csv"]);
    assert!(code == 0 && out.contains("\nL LAT1 nodes 1,") && out.contains("\nL LAT1 nodes 2,"), "{out}{said}");
}
