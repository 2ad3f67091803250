//! Facts of platforms, throughput for the price, and one job against a node and all nodes: as raw values, and in the report.

use loadline_model::{Check, CheckId, Outcome, column};
use loadline_report::{Format, Options, Prices, RunData, redact, render};
use serde_json::Value;

use crate::common::*;

fn rows(runs: &[RunData], table: &str, prices: Option<&str>) -> Vec<Value> {
    let options = with(prices, Some(table));
    serde_json::from_slice(&render(runs, Format::Json, &options).unwrap()).unwrap()
}

fn with(prices: Option<&str>, table: Option<&str>) -> Options {
    let prices = prices.map(|list| Prices::parse(list).unwrap());
    Options { prices, table: table.map(str::to_owned), ..Options::default() }
}

fn page(runs: &[RunData], prices: &str, format: Format) -> String {
    String::from_utf8(render(runs, format, &with(Some(prices), None)).unwrap()).unwrap()
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
    let table = section(&text(&runs, Format::Markdown), "Facts of the platforms");
    let line = |name: &str| words(table.lines().find(|l| l.starts_with(&format!("| {name} "))).unwrap());
    assert_eq!(line("Launch year"), "| Launch year | 2021 (stated) | – |");
    assert!(line("Memory").contains("| 1 TiB (stated; found: 64.0 GiB) | 64.0 GiB |"), "{}", line("Memory"));
    for format in [Format::Html, Format::Text] {
        assert!(text(&runs, format).contains("2021 (stated)"), "{format:?}");
    }
    let all = rows(&runs, "facts", None);
    let stated: Vec<&Value> = all.iter().filter(|row| !row["stated"].is_null()).collect();
    assert_eq!(stated.len(), 2, "{stated:?}");
    assert!(stated.iter().all(|row| row["platform"] == "sata ssd"));
    let json: Value = serde_json::from_str(&text(&runs, Format::Json)).unwrap();
    let of_run = json["runs"][0]["facts"].as_array().unwrap();
    assert!(of_run.iter().any(|fact| fact["id"] == "launch-year" && fact["stated"] == "2021"), "{of_run:?}");
    // An imported run has no machine, and keeps what is stated.
    runs[0].manifest.machine = Default::default();
    runs[0].manifest.target.local = false;
    assert!(text(&runs, Format::Text).contains("1 TiB (stated)"));
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
    let text = words(&page(&runs, &list, Format::Text));
    for said in ["licence", "the database", "26,280 h", "no capacity is stated", "Throughput for the price"] {
        assert!(text.contains(said), "'{said}' is not in: {text}");
    }
    let json: Value = serde_json::from_str(&page(&runs, &list, Format::Json)).unwrap();
    assert_eq!(json["summary"]["prices"], Value::from(all));
}

#[test]
fn a_platform_without_a_price_is_told_and_a_list_of_others_is_refused() {
    let runs = two_platforms();
    let text = words(&page(&runs, ONCE, Format::Text));
    assert!(
        text.contains("Without a price: nvme.") && text.contains("nvme: the price list has no [[price]]"),
        "{text}"
    );
    let all = rows(&runs, "prices", Some(ONCE));
    assert!(all.iter().filter(|row| row["platform"] == "nvme").all(|row| row["rate_per_1000"].is_null()));
    let more = format!("{ONCE}{}", BY_HOUR.replace("nvme", "tape"));
    assert!(words(&page(&runs, &more, Format::Markdown)).contains("and not in this report: tape."));
    let others = with(Some(&BY_HOUR.replace("nvme", "tape")), None);
    let e = render(&runs, Format::Html, &others).unwrap_err().to_string();
    assert!(e.contains("'tape'") && e.contains("'sata ssd', 'nvme'"), "{e}");
    assert!(render(&runs, Format::Csv, &with(None, Some("prices"))).unwrap_err().to_string().contains("--price"));
}

/// A load over jobs on one node, and on two if `more`.
fn load_study(more: bool) -> RunData {
    let mut study = run("cluster", "run-load", 1.0);
    let m = study.manifest.clone();
    let tests: &[(u32, u32, f64)] =
        &[(1, 1, 500.0), (1, 4, 1500.0), (1, 8, 1400.0), (2, 2, 900.0), (2, 8, 2600.0), (2, 16, 2900.0)];
    let tests = tests.iter().filter(|(nodes, ..)| *nodes == 1 || more).zip(1..);
    let test = |((nodes, jobs, tps), number): (&(u32, u32, f64), u32)| {
        let mut r = record(&m, number, "DBL-11", *jobs, *tps, 1.0);
        r.group = "data-load".to_owned();
        r.nodes = *nodes;
        r.kpis = [column::ROWS_PER_S, column::COMMIT_THROUGHPUT_TPS].map(|c| c.id.to_owned()).into();
        r.set(column::ROWS_PER_S, tps * 2.0);
        r
    };
    study.records = tests.map(test).collect();
    study
}

#[test]
fn a_load_study_sets_one_job_beside_the_peaks_of_a_node_and_of_all() {
    let study = [load_study(true)];
    let all = rows(&study, "load-study", None);
    let part = |part: &str| all.iter().find(|row| row["part"] == part && row["figure"] == "rows_per_s").unwrap();
    let found = ["one-job", "one-node", "all-nodes"]
        .map(|name| ["nodes", "jobs", "value"].map(|key| part(name)[key].as_f64().unwrap()));
    assert_eq!(found, [[1.0, 1.0, 1000.0], [1.0, 4.0, 3000.0], [2.0, 16.0, 5800.0]]);
    let table = section(&text(&study, Format::Markdown), "One process, one server, the cluster");
    assert!(words(&table).contains("1 job | 4 jobs | 16 jobs, 2 nodes"), "{table}");
    let json: Value = serde_json::from_str(&text(&study, Format::Json)).unwrap();
    assert_eq!(json["summary"]["load_study"], Value::from(all));
    // Without more nodes there is no column of them; a refused peak is none.
    let mut one = load_study(false);
    one.records[1].add_check(Check::new(CheckId::Settings, Outcome::Failed, "a setting changed"));
    let table = words(&section(&text(&[one], Format::Markdown), "One process, one server, the cluster"));
    assert!(table.contains("1 job | 8 jobs") && !table.contains("all nodes, peak"), "{table}");
    // Beside another platform, its peak of all nodes is absent, and why is said.
    let mut other = load_study(false);
    other.manifest.plan.platform = "single".to_owned();
    let both = words(&text(&[load_study(true), other], Format::Markdown));
    assert!(
        both.contains("| single | 1 job | 4 jobs |") && both.contains("no sweep over jobs on more than one node"),
        "{both}"
    );
}
