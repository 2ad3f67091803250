//! The page of key figures, sections of groups and wait histograms.

use crate::common::groups::all_groups;
use crate::common::{run, text, two_platforms, words};
use loadline_model::{Check, CheckId, LimitSource, Outcome, TestLimit, column};
use loadline_report::{Format, RunData, end_page, terminal_table, test_line};

/// A run of `code` whose peak of `rate` per transaction has a limit with these `samples`, tps.
fn with_limit(code: &str, samples: [f64; 2], share: f64) -> RunData {
    let mut run = all_groups("disk", "run-disk", 1.0);
    run.records.retain(|r| r.workload == code);
    for r in &mut run.records {
        let limit = (samples[0] + samples[1]) / 2.0;
        r.limit = Some(TestLimit {
            name: "block reads".to_owned(),
            of: "io_uring in /data".to_owned(),
            jobs: r.jobs,
            redo_bytes_per_tx: None,
            tps: limit,
            samples: samples.to_vec(),
            source: LimitSource::Run,
        });
        r.set(column::LIMIT_TPS, limit);
        r.set(column::LIMIT_SHARE_PCT, share);
        r.set(column::COMMIT_THROUGHPUT_TPS, limit * share / 100.0);
    }
    run
}

/// Cells of the line of `code` in the section `title` of a text report, split at gaps.
fn cells(report: &str, title: &str, code: &str) -> Vec<String> {
    let section = report.split(&format!("\n{title}\n")).nth(1).unwrap();
    let line = section.lines().find(|l| l.starts_with(code)).unwrap();
    line.split("  ").map(str::trim).filter(|c| !c.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_rate_that_was_not_reached_is_said_at_the_end_of_a_run() {
    let mut run = run("disk", "run-disk", 1.0);
    let detail = "54648.0 tps of 9999999.0 asked for: the target cannot sustain this rate";
    let missed = |test: u32| format!("Test {test} did not reach the rate asked for: {detail}.");
    assert!(!end_page(&run, Some(100)).contains("rate asked for"));
    run.records[0].add_check(Check::new(CheckId::Rate, Outcome::Passed, detail));
    run.records[1].add_check(Check::new(CheckId::Rate, Outcome::Noted, detail));
    let second = run.records[1].test;
    let page = words(&end_page(&run, Some(100)));
    assert_eq!(page.matches("rate asked for").count(), 1, "{page}");
    assert!(page.contains(&format!("! {}", missed(second))), "{page}");
    assert!(words(&text(std::slice::from_ref(&run), Format::Text)).contains(&missed(second)));
    run.records[2].add_check(Check::new(CheckId::Rate, Outcome::Noted, detail));
    let third = run.records[2].test;
    let page = words(&end_page(&run, Some(100)));
    let all = format!("! Tests {second}–{third} did not reach the rate asked for. {}", missed(third));
    assert!(page.contains(&all) && page.matches("tps of").count() == 1, "{page}");
}

#[test]
fn settings_that_differ_come_first_and_are_in_the_text_report() {
    let mut runs = two_platforms();
    let mut set = |at: usize, name: &str, value: &str| {
        let settings = &mut runs[at].manifest.target.settings;
        settings.insert(name.to_owned(), value.to_owned());
    };
    set(0, "aaa_same", "1");
    set(1, "aaa_same", "1");
    set(1, "zzz_only_here", "2");
    let report = text(&runs, Format::Text);
    let section = |report: &str| {
        let section = report.split("Settings that differ\n").nth(1)?.split("\n==").next()?.to_owned();
        Some(section)
    };
    let said = section(&report).unwrap();
    let line = |name: &str| words(said.lines().find(|l| l.starts_with(name)).unwrap_or_default());
    assert_eq!(
        (line("wal_buffers"), line("zzz_only_here")),
        ("wal_buffers 16MB 64MB".into(), "zzz_only_here – 2".into())
    );
    assert!(!said.contains("aaa_same") && !said.contains("fsync"), "{said}");
    let markdown = text(&runs, Format::Markdown).replace('\\', "");
    let at = |row: &str| markdown.find(row).unwrap_or_else(|| panic!("{row}"));
    assert!(at("| ≠ wal_buffers |") < at("| ≠ zzz_only_here |") && at("| ≠ zzz_only_here |") < at("| aaa_same |"));
    // Another product has settings of its own.
    runs[1].manifest.target.product = "MariaDB".to_owned();
    let other = section(&text(&runs, Format::Text)).unwrap();
    assert!(other.contains("wal_buffers") && !other.contains("zzz_only_here"), "{other}");
    assert_eq!(section(&text(&runs[..1], Format::Text)), None, "one platform differs from nothing");
}

#[test]
fn a_limit_is_in_the_unit_of_the_peak() {
    let run = with_limit("STO-READ", [2_000.0, 2_000.0], 40.0);
    let report = text(std::slice::from_ref(&run), Format::Text);
    let line = cells(&report, "Load lines", "STO-READ");
    let number =
        |cell: &str| cell.replace(',', "").trim_end_matches(|c: char| !c.is_ascii_digit()).parse::<f64>().unwrap();
    let (peak, limit) = (number(&line[1]), number(&line[7]));
    assert!((peak / limit * 100.0 - 40.0).abs() < 0.1, "{line:?}");
    assert!(line[2].starts_with("block reads/s"), "{line:?}");
    assert!(!words(&report).contains("not steady"), "{report}");
}

#[test]
fn a_doubtful_limit_has_a_footnote_with_its_two_values() {
    for (samples, share, said) in
        [([500.0, 2_000.0], 60.0, "was not steady"), ([1_000.0, 1_020.0], 160.0, "the test got more than its limit")]
    {
        let run = with_limit("STO-READ", samples, share);
        let peak = run.records.iter().filter_map(|r| r.figure(column::BLOCK_READS_PER_S)).fold(0.0, f64::max);
        let of_rate = peak / (samples[0] + samples[1]) * 2.0 / share * 100.0;
        let values = samples.map(|s| loadline_model::format::number(s * of_rate, 0)).join(" and ") + " block reads/s";
        let report = text(std::slice::from_ref(&run), Format::Text);
        for title in ["Key figures", "Load lines"] {
            let section = report.split(&format!("\n{title}\n")).nth(1).unwrap().split("\n==").next().unwrap();
            let note = words(section);
            assert!(note.contains(said) && note.contains(&values), "{values}: {section}");
            let share = format!("{share}");
            assert!(
                cells(&report, title, "STO-READ").iter().any(|c| c.starts_with(&share) && *c != share),
                "{section}"
            );
        }
    }
}

/// The line of the page that begins with `code`.
fn line(page: &str, code: &str) -> String {
    let found = page.lines().find(|l| l.split_whitespace().next().is_some_and(|w| w.trim_end_matches('✗') == code));
    words(found.unwrap_or_else(|| panic!("no line of {code}: {page}")))
}

#[test]
fn every_planned_workload_is_on_the_page() {
    let run = all_groups("disk", "run-disk", 1.0);
    for width in [None, Some(200), Some(100), Some(80), Some(60)] {
        let page = words(&end_page(&run, width));
        let planned = run.manifest.plan.workloads.iter().map(|w| &w.code);
        for code in planned.chain(run.manifest.plan.skipped.iter().map(|s| &s.code)) {
            assert!(page.contains(code.as_str()), "{width:?}: the page lacks {code}: {page}");
        }
        for skipped in &run.manifest.plan.skipped {
            assert!(page.contains(&skipped.reason), "{width:?}: {page}");
        }
        assert!(page.contains("the run ended before: TP-HEAVY"), "{page}");
        assert!(page.contains("money does not add up"), "why a test is invalid: {page}");
    }
}

#[test]
fn a_line_has_the_first_kpi_where_it_is_highest_and_the_latency_there() {
    let page = end_page(&all_groups("disk", "run-disk", 1.0), Some(120));
    assert_eq!(line(&page, "SRV-SCAN"), "SRV-SCAN 8,317.0 MiB/s 8 jobs 124 ms 321 ms 4 limit unknown");
    assert_eq!(line(&page, "DBL-11"), "DBL-11 20,549 rows/s 100 rows/tx 9.58 ms 24.9 ms 4 limit unknown");
    assert_eq!(line(&page, "DA-PARALLEL"), "DA-PARALLEL 12,671,137 rows/s 4 threads 315 ms 819 ms 3 limit unknown");
    assert!(line(&page, "DBL-22").contains("rows/s 1 job, 20 tps"), "{page}");
    // The time of the read, not of its transaction.
    assert!(line(&page, "STO-READ").contains("375 µs 1.18 ms"), "{page}");
    // Invalid tests are not counted.
    assert_eq!(line(&page, "STO-WRITE"), "STO-WRITE✗ –¹ – – 0 of 4 –");
    assert!(line(&page, "TP-LIGHT").contains("4 jobs") && line(&page, "TP-LIGHT").contains("3 of 4"), "{page}");
    // Groups are in their order.
    let titles = ["Server", "Storage", "Log writer", "Database writer", "Data load", "Data analytics"];
    let at: Vec<usize> = titles.iter().map(|t| page.find(&format!("\n{t}\n")).unwrap()).collect();
    assert!(at.is_sorted(), "{page}");
}

#[test]
fn no_line_of_the_page_is_wider_than_the_terminal() {
    let run = all_groups("disk", "run-disk", 1.0);
    for width in [50, 70, 80, 90, 100, 120, 200] {
        for line in end_page(&run, Some(width)).lines().chain(terminal_table(&run.records, Some(width)).lines()) {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn a_workload_without_kpis_is_shown_by_its_throughput() {
    let mut run = run("pg", "run-1", 1.0);
    let page = end_page(&run, Some(200));
    assert!(page.starts_with("Key figures of pg\n"), "{page}");
    assert!(line(&page, "LGWR-LAT1").starts_with("LGWR-LAT1 5,800 tps 4 jobs 690 µs 1.79 ms 3"), "{page}");
    for r in run.records.iter_mut().filter(|r| r.workload == "LGWR-THR") {
        r.kpis = vec!["redo_mib_per_s".to_owned()];
    }
    let page = end_page(&run, Some(200));
    assert!(line(&page, "LGWR-THR").starts_with("LGWR-THR 122.65 MiB/s redo 4 jobs"), "{page}");
    for r in run.records.iter_mut().filter(|r| r.workload == "LGWR-THR") {
        r.valid = false;
        r.invalid_reason = Some("it was cut off".to_owned());
    }
    let page = end_page(&run, Some(200));
    assert!(line(&page, "LGWR-THR").starts_with("LGWR-THR✗ –¹ – – 0 of 3"), "{page}");
    assert!(page.contains("no valid test has a throughput") && page.contains("tests 4–6 are invalid: it was cut off"));
}

#[test]
fn a_narrow_terminal_gets_sentences() {
    let mut run = run("pg", "run-1", 1.0);
    let mut other = run.records[2].clone();
    other.parameters.insert("a_parameter_with_a_long_name".to_owned(), 1_200_000);
    other.test = 7;
    run.records.push(other);
    let page = words(&end_page(&run, Some(70)));
    let wanted = "LGWR-LAT1 (database driver, a_parameter_with_a_long_name 1200000): peak 5,800 tps at 4 jobs, mean 690 µs, \
                  p99 1.79 ms, valid tests 1, bounded by log sync.";
    assert!(page.contains(wanted), "{page}");
}

#[test]
fn the_report_begins_with_the_page() {
    let runs = two_platforms();
    let markdown = text(&runs, Format::Markdown);
    let (page, lines) = (markdown.find("## Key figures").unwrap(), markdown.find("## Load lines").unwrap());
    assert!(page < lines && markdown[page..lines].contains("| LGWR-LAT1 | 15,080 | tps | 4 jobs |"));
    assert!(
        markdown[page..lines].contains("nvme: Skipped: LGWR-LAT125: it needs 3 GiB of free space, and there are 2.")
    );
}

#[test]
fn groups_have_sections_with_their_own_columns() {
    let runs = [all_groups("disk", "run-a", 1.0), all_groups("flash", "run-b", 2.5)];
    let page = text(&runs, Format::Html);
    for id in ["server", "storage", "log-writer", "data-load", "data-analytics", "procedural-code"] {
        assert!(page.contains(&format!("<section id=\"{id}\" class=\"group\">")), "{id}");
    }
    let section = |id: &str| {
        let from = page.find(&format!("<section id=\"{id}\"")).unwrap();
        page[from..].split("</section>").next().unwrap()
    };
    assert!(
        section("data-load").contains("DBL-11: rows over rows&#x2f;tx")
            || section("data-load").contains("rows over rows/tx")
    );
    assert!(section("data-load").contains("Rows per transaction (logarithmic)"));
    assert!(section("data-analytics").contains("over threads"));
    let heads: Vec<&str> = section("server").split("<th ").skip(1).filter_map(|h| h.split("</th>").next()).collect();
    assert!(heads.iter().any(|h| h.contains("Queries")) && !heads.iter().any(|h| h.contains("Log file sync")));
    // Columns without any figure are left out, but not the reasons.
    let heads: Vec<&str> = section("data-load").split("<th ").skip(1).filter_map(|h| h.split("</th>").next()).collect();
    assert!(!heads.iter().any(|h| h.contains("Redo sync time")));
    assert!(
        section("data-load")
            .contains("Redo write time [µs], Redo sync time [µs] (DBL-11, DBL-22): track_wal_io_timing is off.")
    );
    let table = terminal_table(&runs[0].records, Some(120));
    assert!(words(&table).contains("Not shown: Redo write time [µs], Redo sync time [µs] (DBL-11, DBL-22)"), "{table}");
    // Points of a sweep over rows are not in charts over jobs.
    assert_eq!(section("data-load").matches("disk, 100 rows/tx: ").count(), 4, "a marker in each of four charts");
    let factors = words(&text(&runs, Format::Text));
    assert!(factors.contains("DBL-11 over rows/tx Rows [1/s]"), "{factors}");
}

#[test]
fn the_load_of_the_data_set_is_shown() {
    let page = text(&[all_groups("disk", "run-a", 1.0)], Format::Markdown).replace('\\', "");
    assert!(page.contains(
        "| data_rows | 1,048,576 | 1,048,576 | 100.0 MiB | 1.60 | 0.40 | 655,360 | 62.5 | 2 | COPY, binary |"
    ));
    assert!(page.contains("| Size of the data set | 128.0 MiB |"));
}

#[test]
fn waits_have_power_of_two_buckets() {
    let runs = [all_groups("disk", "run-a", 1.0), all_groups("flash", "run-b", 2.5)];
    let page = text(&runs, Format::Html);
    for wanted in ["STO-READ: read times at the peak", "LGWR-LAT1: commit times at the peak", "class=\"br\""] {
        assert!(page.contains(wanted), "{wanted}");
    }
    // Every wait is in the table once, and the share reaches all of them.
    let plain = text(&runs[..1], Format::Text);
    let from = plain.find("disk – STO-READ: read times").unwrap();
    let table: Vec<Vec<&str>> = plain[from..]
        .lines()
        .skip(4)
        .take_while(|l| !l.is_empty())
        .map(|l| l.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect())
        .collect();
    let count =
        |column: usize| -> u64 { table.iter().map(|r| r[column].replace(',', "").parse::<u64>().unwrap()).sum() };
    assert_eq!([1, 4, 7, 10].map(count), [5_000; 4], "{table:?}");
    assert!([3, 6, 9, 12].iter().all(|c| table.last().unwrap()[*c] == "100.00"), "{table:?}");
    // Invalid tests and latencies that were not measured have no histogram.
    assert!(!page.contains("STO-WRITE: read times") && !page.contains("SRV-QUERY1: commit times"));
    let json: serde_json::Value = serde_json::from_str(&text(&runs[..1], Format::Json)).unwrap();
    let waits = json["summary"]["waits"].as_array().unwrap();
    let first = waits.iter().find(|w| w["workload"] == "STO-READ" && w["at"] == 8).unwrap();
    let counts = first["buckets"].as_array().unwrap().iter().map(|b| b["count"].as_u64().unwrap());
    assert_eq!((first["kind"].as_str(), counts.sum::<u64>()), (Some("read"), 5_000));
    let mut without = runs[0].clone();
    without.histograms.clear();
    assert!(!text(&[without], Format::Html).contains("times at the peak"));
}

#[test]
fn the_line_of_a_test_has_its_first_kpi() {
    let mut run = all_groups("disk", "run-disk", 1.0);
    let of = |run: &RunData, code: &str| {
        words(&test_line(run.records.iter().rev().find(|r| r.workload == code && r.swept.is_none()).unwrap()))
    };
    assert_eq!(of(&run, "SRV-SCAN"), "test 8 SRV-SCAN 8 jobs 8,317.0 MiB/s 123.534 ms");
    assert_eq!(of(&run, "LGWR-LAT1"), "test 24 LGWR-LAT1 8 jobs 8,574 tps 0.933 ms 2.90 MiB/s of redo");
    // The line of an invalid test has its figure; the verdict follows it.
    assert!(of(&run, "STO-WRITE").contains("505.9 MiB/s written"));
    let swept = run.records.iter().find(|r| r.workload == "DA-PARALLEL").unwrap();
    assert!(words(&test_line(swept)).contains("DA-PARALLEL 1 job 1 thread 7,800,000 rows/s"));
    run.records[7].leave_out(column::DATA_MIB_PER_S, "the tables' size could not be read");
    assert_eq!(of(&run, "SRV-SCAN"), "test 8 SRV-SCAN 8 jobs 65 tps 123.534 ms");
}
