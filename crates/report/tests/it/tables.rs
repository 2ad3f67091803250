//! Published studies, facts of platforms, throughput for the price, and one job against a node and all nodes: as raw values, and in the report.

use std::collections::BTreeMap;

use loadline_model::{CheckId, Detail, TestRecord, column};
use loadline_report::{Format, Options, Prices, RunData, end_page, redact, render};
use serde_json::{Value, json};

use crate::common::*;

fn options(prices: Option<&str>, table: Option<&str>) -> Options {
    let prices = prices.map(|list| Prices::parse(list).unwrap());
    Options { prices, table: table.map(str::to_owned), ..Options::default() }
}

fn rows(runs: &[RunData], table: &str, prices: Option<&str>) -> Vec<Value> {
    serde_json::from_str(&with(runs, Format::Json, &options(prices, Some(table)))).unwrap()
}

fn page(runs: &[RunData], prices: &str, format: Format) -> String {
    words(&with(runs, format, &options(Some(prices), None)))
}

fn with_facts(facts: &[(&str, &str)]) -> Vec<RunData> {
    let mut runs = two_platforms();
    let facts = facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    runs[0].manifest.plan.facts = facts.collect();
    runs
}

#[test]
fn facts_of_all_platforms_are_one_table_that_says_what_is_stated() {
    assert!(!text(&two_platforms(), Format::Markdown).contains("Facts of the platforms"), "nothing is stated");
    let mut runs = with_facts(&[("launch-year", "2021"), ("memory", "1 TiB")]);
    let table = sections(&runs, &["Facts of the platforms"]);
    let line = |name: &str| words(table.lines().find(|l| l.starts_with(&format!("| {name} "))).unwrap());
    assert_eq!(line("Launch year"), "| Launch year | 2021 (stated) | – |");
    assert_says(&line("Memory"), &["| 1 TiB (stated; found: 64.0 GiB) | 64.0 GiB |"]);
    for format in [Format::Html, Format::Text] {
        assert_says(&text(&runs, format), &["2021 (stated)"]);
    }
    let all = rows(&runs, "facts", None);
    let stated: Vec<&Value> = all.iter().filter(|row| !row["stated"].is_null()).collect();
    assert!(stated.len() == 2 && stated.iter().all(|row| row["platform"] == "sata ssd"), "{stated:?}");
    let json = json(&runs);
    let of_run = json["runs"][0]["facts"].as_array().unwrap();
    assert!(of_run.iter().any(|fact| fact["id"] == "launch-year" && fact["stated"] == "2021"), "{of_run:?}");
    // An imported run has no machine, and keeps what is stated.
    runs[0].manifest.machine = Default::default();
    runs[0].manifest.target.local = false;
    assert_says(&text(&runs, Format::Text), &["1 TiB (stated)"]);
}

#[test]
fn a_redacted_report_keeps_numbers_of_facts_and_no_names() {
    let facts = [("system", "Zeus 9000"), ("launch-year", "2021"), ("flash", "25.6 TB"), ("database-version", "19.21")];
    for anonymous in [false, true] {
        let mut runs = with_facts(&facts);
        redact(&mut runs, anonymous, &|_| false).unwrap();
        let facts = &runs[0].manifest.plan.facts;
        assert_eq!((facts["launch-year"].as_str(), facts["flash"].as_str()), ("2021", "25.6 TB"));
        assert!(!facts["system"].contains("Zeus"), "{facts:?}");
        assert_eq!(facts.contains_key("database-version"), !anonymous);
    }
}

const ONCE: &str = include_str!("once.toml");
const BY_HOUR: &str = include_str!("by-hour.toml");

#[test]
fn throughput_for_the_price_follows_from_peaks_totals_and_factors() {
    let runs = with_facts(&[("flash", "2 TB"), ("disk", "8 TB")]);
    let list = format!("{ONCE}{BY_HOUR}");
    let all = rows(&runs, "prices", Some(&list));
    assert_eq!(all.len(), 4, "two workloads on two platforms: {all:?}");
    let number = |row: &Value, key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"));
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
    assert_eq!([&all[0]["dates"], &all[1]["dates"]], ["2021-06-01", "2021-06-02"]);
    for row in &all {
        let total = if row["platform"] == "nvme" { 4.0 * 26_280.0 } else { 50_000.0 };
        assert!(near(number(row, "total_price"), total), "the licence is in it: {row}");
        assert!(near(number(row, "rate_per_1000"), number(row, "peak_rate") / (total / 1000.0)), "{row}");
    }
    // Totals are of three years unless all prices are by the hour.
    let hourly = rows(&runs, "prices", Some(BY_HOUR)).into_iter().find(|row| row["platform"] == "nvme").unwrap();
    assert_eq!((number(&hourly, "total_price"), hourly["basis"].as_str()), (4.0, Some("per hour")));
    assert!(near(number(&all[0], "price_per_tb"), 5_000.0) && all[1]["price_per_tb"].is_null(), "{all:?}");
    let compared: Vec<&Value> = all.iter().filter(|row| !row["throughput_factor"].is_null()).collect();
    assert!(!compared.is_empty(), "{all:?}");
    for row in compared {
        assert!(near(number(row, "price_factor"), 4.0 * 26_280.0 / 50_000.0));
        let both = number(row, "throughput_factor") / number(row, "price_factor");
        assert!(near(number(row, "throughput_for_price_factor"), both), "{row}");
    }
    let said = ["licence", "the database", "26,280 h", "no capacity is stated", "Throughput for the price"];
    assert_says(&page(&runs, &list, Format::Text), &said);
    let said = [
        "| sata ssd | price | 30,000 | once | 2021-06-01 | 30,000 | | | a server |",
        "| | licence | 20,000 | once |",
        "| | total | | | | 50,000 | 10.000 | 5,000 | |",
        "| nvme | price | 4.00 | per hour | 2021-06-02 | 105,120 | | | an instance |",
    ];
    assert_says(&page(&runs, &list, Format::Markdown), &said);
    let json: Value = serde_json::from_str(&with(&runs, Format::Json, &options(Some(&list), None))).unwrap();
    assert_eq!(json["summary"]["prices"], Value::from(all));
}

#[test]
fn a_given_throughput_has_no_figure_for_the_price_and_no_growth() {
    let mut runs = two_platforms();
    runs.iter_mut().for_each(|run| change(run, "LGWR-LAT1", &json!({"rate_tps": 500})));
    let list = format!("{ONCE}{BY_HOUR}");
    let all = rows(&runs, "prices", Some(&list));
    let given: Vec<&Value> = all.iter().filter(|row| row["workload"] == "LGWR-LAT1").collect();
    assert_eq!(given.len(), 2);
    for row in given {
        assert!(row["rate_per_1000"].is_null() && row["throughput_for_price_factor"].is_null(), "{row}");
        assert_says(row["remark"].as_str().unwrap(), &["throughput was given"]);
    }
    let said = ["throughput was given", "| –: the rate was given |"];
    assert_says(&page(&runs, &list, Format::Markdown), &said);
    assert_eq!(json(&runs)["summary"]["sweeps"][0]["saturation"], "rate-given");
}

#[test]
fn a_platform_without_a_price_is_told_and_a_list_of_others_is_refused() {
    let runs = two_platforms();
    let none = ["Without a price: nvme.", "nvme: the price list has no [[price]]"];
    assert_says(&page(&runs, ONCE, Format::Text), &none);
    let all = rows(&runs, "prices", Some(ONCE));
    assert!(all.iter().filter(|row| row["platform"] == "nvme").all(|row| row["rate_per_1000"].is_null()));
    let tape = BY_HOUR.replace("nvme", "tape");
    assert_says(&page(&runs, &format!("{ONCE}{tape}"), Format::Markdown), &["and not in this report: tape."]);
    let e = render(&runs, Format::Html, &options(Some(&tape), None)).unwrap_err().to_string();
    assert_says(&e, &["'tape'", "'sata ssd', 'nvme'"]);
}

/// A load over jobs on one node, and on two if `more`.
fn load_study(platform: &str, more: bool) -> RunData {
    let m = manifest(platform, "run-load");
    let kpis = r#"kpis=["rows_per_s","commit_throughput_tps"]"#;
    let table = format!(
        "group=data-load  {kpis}  nodes  jobs  commit_throughput_tps  rows_per_s
        1  1  500  1000\n1  4  1500  3000\n1  8  1400  2800\n2  2  900  1800\n2  8  2600  5200\n2  16  2900  5800"
    );
    let mut records = tests(&record(&m, 1, "DBL-11", 1, 1000.0, 1.0), &table);
    records.retain(|r| r.nodes == 1 || more);
    made(m, records)
}

#[test]
fn a_load_study_sets_one_job_beside_the_peaks_of_a_node_and_of_all() {
    let study = [load_study("cluster", true)];
    let all = rows(&study, "load-study", None);
    let part = |part: &str| all.iter().find(|row| row["part"] == part && row["figure"] == "rows_per_s").unwrap();
    let found = ["one-job", "one-node", "all-nodes"]
        .map(|name| ["nodes", "jobs", "value"].map(|key| part(name)[key].as_f64().unwrap()));
    assert_eq!(found, [[1.0, 1.0, 1000.0], [1.0, 4.0, 3000.0], [2.0, 16.0, 5800.0]]);
    let table = |runs: &[RunData]| words(&sections(runs, &["One process, one server, the cluster"]));
    assert_says(&table(&study), &["1 job | 4 jobs | 16 jobs, 2 nodes"]);
    assert_eq!(json(&study)["summary"]["load_study"], Value::from(all));
    // Without more nodes there is no column of them; a refused peak is none.
    let mut one = load_study("cluster", false);
    one.records[1].add_check(failed(CheckId::Settings, "a setting changed"));
    assert_says(&table(&[one]), &["1 job | 8 jobs", "!all nodes, peak"]);
    // Beside another platform, its peak of all nodes is absent, and why is said.
    let both = [load_study("cluster", true), load_study("single", false)];
    let wanted = ["| single | 1 job | 4 jobs |", "no sweep over jobs on more than one node"];
    assert_says(&words(&text(&both, Format::Markdown)), &wanted);
}

const DATA_LOAD: &str = include_str!("../../../../references/data-load-exadata-x4-2.csv");

/// The tests of `platform` in a published table, with its figures and `more`.
fn published(csv: &str, platform: &str, product: [&str; 2], more: &Value) -> RunData {
    let mut m = manifest(platform, "7");
    [m.target.product, m.target.version] = product.map(str::to_owned);
    m.plan.workloads.clear();
    let bare = TestRecord {
        checks: Vec::new(),
        absent: BTreeMap::new(),
        waits: Default::default(),
        figures: BTreeMap::new(),
        ..record(&m, 1, "", 1, 1.0, 1.0)
    };
    let mut records = tests(&patched(&bare, more.clone()), csv);
    records.retain(|r| r.platform == platform);
    made(m, records)
}

#[test]
fn the_factors_of_the_log_writer_study_are_computed() {
    let csv = include_str!("../../../../references/log-writer-exadata.csv");
    let of = |name: &str| published(csv, name, ["Oracle", "19c"], &json!({}));
    assert_says(
        &text(&[of("X5-2"), of("X9M-2")], Format::Html),
        &["4.95 at 48", "8.25 at 48", "one test each: no interval", "61 tests, all valid.", "still rising at 72 jobs"],
    );
}

fn data_load() -> RunData {
    let more = json!({"group": "data-load", "kpis": ["rows_per_s", "commit_throughput_tps", "sql_service_time_s"],
        "swept": "rows_per_tx"});
    let mut run = published(DATA_LOAD, "X4-2", ["Oracle", "12c"], &more);
    for r in &mut run.records {
        let [rows, tps] = [column::ROWS_PER_TX, column::TX_PER_S].map(|column| r.figure(column).unwrap());
        r.parameters.insert("rows".to_owned(), rows as i64);
        r.set(column::COMMIT_THROUGHPUT_TPS, tps);
        // The study prints no latency: with one job its inverse is the transaction time.
        r.set(column::COMMIT_LATENCY_MS, 1e3 / tps);
    }
    run
}

#[test]
fn the_report_has_the_table_of_the_data_load_study() {
    let csv = text(&[data_load()], Format::Csv);
    assert_eq!(csv.lines().count(), DATA_LOAD.lines().count());
    for (ours, published) in csv.lines().zip(DATA_LOAD.lines()) {
        assert!(ours.starts_with(&format!("{published},")), "{published}\n{ours}");
    }
    // Shown tables have all of its columns too, in its order.
    let plain = text(&[data_load()], Format::Text);
    let table = plain.split("X4-2 – DBL-11 (run 7").nth(1).unwrap();
    let row = table.lines().find(|l| l.split_whitespace().next() == Some("8")).unwrap();
    let wanted = "8 1 1 1 100 1 27,020 270 0.003501 1,490 3,257 53.0 27.00 296 156.0 3 128.0 310";
    assert_eq!(row.split_whitespace().collect::<Vec<_>>().join(" "), wanted);
}

#[test]
fn rows_per_transaction_were_swept() {
    assert_says(
        &text(&[data_load()], Format::Html),
        &[
            "DBL-11: rows over rows/tx",
            "DBL-11: SQL service time over rows/tx",
            "still rising at 100 rows/tx (+7.1 % over 50)",
        ],
    );
    insta::assert_snapshot!("data_load_study", end_page(&data_load(), Some(100)));
}

#[test]
fn on_a_busy_disk_the_lowest_deciles_are_used() {
    let mut run = run("busy disk", "run-busy", 1.0);
    run.records.truncate(1);
    let mut scan = scan(&run.manifest, 2, None, 0.0);
    scan.details = vec![Detail::Sizes(scanned("1 MiB"))];
    run.records.push(scan);
    run.manifest.target.settings.insert("flush_at_bytes".to_owned(), "1048576".to_owned());
    assert_says(
        &text(&[run], Format::Html),
        &["(in the lowest deciles: stalls blur the medians)", "flush_at_bytes = 1048576 (1.0 MiB).", "cut off above"],
    );
}
