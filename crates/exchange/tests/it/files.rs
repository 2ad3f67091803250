//! What is no list of expected values: figures against sums over the raw lines of logs, forms that change nothing.

use loadline_exchange::Tool;
use loadline_model::column::*;

use crate::{contents, figure, latencies, near, one, read, test_of};

#[test]
fn logs_of_all_threads_give_the_percentiles() {
    let test = one(Tool::Pgbench, &["pgbench-tries.txt", "pgbench-tries.32652", "pgbench-tries.32652.1"]);
    let texts = contents("pgbench-tries.32652") + &contents("pgbench-tries.32652.1");
    let mut us: Vec<u64> = texts.lines().filter_map(|line| line.split(' ').nth(2)?.parse().ok()).collect();
    us.sort_unstable();
    assert_eq!((us.len(), latencies(&test, "transaction").count(), figure(&test, COMMITS)), (117, 117, 117.0));
    // --rate: times are from the scheduled start, so they are response times.
    assert!(test.record.figure(TRANSACTION_TIME_NS_MEAN).is_none());
    let mean = us.iter().sum::<u64>() as f64 / us.len() as f64 * 1e3;
    assert!(near(figure(&test, RESPONSE_TIME_NS_MEAN), mean, 1e-9));
    for (column, q) in [(RESPONSE_TIME_NS_P50, 0.5), (RESPONSE_TIME_NS_P99, 0.99), (RESPONSE_TIME_NS_MAX, 1.0)] {
        let exact = us[(us.len() as f64 * q).ceil() as usize - 1] as f64 * 1e3;
        assert!(near(figure(&test, column), exact, 1.1e-3), "{column}: {} for {exact}", figure(&test, column));
    }
}

#[test]
fn histograms_give_the_percentiles_that_are_printed() {
    let rw = one(Tool::Sysbench, &["sysbench-rw.txt"]);
    assert!(near(latencies(&rw, "transaction").quantile_ns(0.95).unwrap() as f64, 4.82e6, 2e-3));
    // fio's buckets are 1.6 % wide, and it states the end of one.
    for test in read(Tool::Fio, &[("f", &contents("fio-two-jobs.json"))]).unwrap().remove(0).tests {
        for (column, q) in [(TRANSACTION_TIME_NS_P50, 0.5), (TRANSACTION_TIME_NS_P99, 0.99)] {
            let computed = latencies(&test, "transaction").quantile_ns(q).unwrap() as f64;
            assert!(near(computed, figure(&test, column), 0.02), "{column}: {computed}");
        }
    }
}

#[test]
fn jobs_that_are_alike_are_tests() {
    let mut output: serde_json::Value = serde_json::from_str(&contents("fio-read.json")).unwrap();
    let job = output["jobs"][0].clone();
    output["jobs"].as_array_mut().unwrap().push(job);
    let groups = read(Tool::Fio, &[("two.json", &output.to_string())]).unwrap();
    let seen: Vec<_> = groups[0].tests.iter().map(|t| (t.record.workload.as_str(), t.record.jobs)).collect();
    assert_eq!(seen, [("FIO-RANDREAD-4K-RR-1-OF-2", 1), ("FIO-RANDREAD-4K-RR-2-OF-2", 1)]);
}

#[test]
fn an_option_that_stands_twice_is_noted_twice() {
    let text =
        contents("fio-depth.json").replace("\"filename\":", "\"iodepth\": \"2\", \"iodepth\": \"4\", \"filename\":");
    let notes = test_of(Tool::Fio, &text).record.notes;
    assert!(notes.iter().any(|note| note.contains("iodepth=64") && note.contains("iodepth=2 iodepth=4")), "{notes:?}");
}

#[test]
fn line_ends_and_marks_of_windows_change_nothing() {
    for (tool, file) in crate::bad::FIRST {
        let text = format!("\u{feff}{}", contents(file).replace('\n', "\r\n"));
        let [unix, windows] = [contents(file), text].map(|text| test_of(tool, &text));
        assert_eq!((unix.record, unix.series), (windows.record, windows.series), "{tool}");
    }
}
