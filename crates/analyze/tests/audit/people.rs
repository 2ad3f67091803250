//! Tables as vendors, bloggers and issue threads write them: what is read, what is found, and that nothing else is an error.

use loadline_analyze::audit::{Audit, Claim, Options, Severity, audit, table};

fn check(text: &str, claims: &[&str]) -> Audit {
    let claims = claims.iter().map(|c| Claim::parse(c).unwrap()).collect();
    audit(&table::read(text, "x").unwrap(), &Options { claims, ..Options::default() })
}

/// Law, severity and row of what is no info.
fn found(text: &str) -> Vec<(&'static str, Severity, Option<usize>)> {
    let found = check(text, &[]);
    found.findings.iter().filter(|f| f.severity != Severity::Info).map(|f| (f.law, f.severity, f.row)).collect()
}

fn says(text: &str, part: &str) -> bool {
    check(text, &[]).findings.iter().any(|f| f.message.contains(part))
}

/// A table of `people.txt`: below `== name` the table, and below it planted errors: `! row line text`.
struct Written {
    name: &'static str,
    lines: Vec<&'static str>,
    /// Row of the finding, line that is another one, and its text.
    planted: Vec<(usize, usize, &'static str)>,
}

fn written() -> Vec<Written> {
    let mut all: Vec<Written> = Vec::new();
    for line in include_str!("data/people.txt").lines() {
        if let Some(name) = line.strip_prefix("== ") {
            all.push(Written { name, lines: Vec::new(), planted: Vec::new() });
            continue;
        }
        let last = all.last_mut().unwrap();
        match line.strip_prefix("! ") {
            Some(planted) => {
                let mut parts = planted.splitn(3, ' ');
                let mut number = || parts.next().unwrap().parse().unwrap();
                last.planted.push((number(), number(), parts.next().unwrap()));
            }
            None => last.lines.push(line),
        }
    }
    all
}

/// Consistent tables in the styles of benchmarks, vendors, databases and blogs: whatever they look like, nothing is an error.
#[test]
fn tables_of_people_have_no_errors_and_few_warnings() {
    let (all, mut warned) = (written(), Vec::new());
    assert!(all.len() > 200);
    for table in &all {
        let found = found(&table.lines.join("\n"));
        assert!(found.iter().all(|(_, severity, _)| *severity != Severity::Error), "{}: {found:?}", table.name);
        warned.extend(found.iter().any(|(law, ..)| *law != "table").then_some(table.name));
    }
    assert!(warned.len() * 12 <= all.len(), "{} of {}: {warned:?}", warned.len(), all.len());
}

#[test]
fn a_wrong_cell_in_them_is_found_in_its_row() {
    let mut count = 0;
    for table in written() {
        for (row, line, text) in &table.planted {
            let mut lines = table.lines.clone();
            lines[*line] = text;
            let found = found(&lines.join("\n"));
            assert!(found.iter().any(|(.., at)| *at == Some(*row)), "{}, {text}: {found:?}", table.name);
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

#[test]
fn a_bare_unit_beside_iops_is_their_bandwidth_and_the_k_of_a_block_is_binary() {
    let with = |rate: u32| {
        format!(
            "|Test|Block size|IOPS|MB/s|\n|-|-|-|-|\n|read|4k|85.2k|333|\n|write|4k|42.1k|164|\n|read|8k|61.0k|477|\n|write|8k|30.4k|{rate}|\n"
        )
    };
    assert_eq!(found(&with(238)), []);
    assert_eq!(found(&with(298)), [("io-rate", Severity::Warning, Some(4))]);
}

#[test]
fn aligned_text_with_a_title_and_a_rule_is_a_table() {
    let with = |last: &str| {
        format!(
            "Results (prepared, scale 1000, 300 s a run):\n\nclients   tps       latency average\n-------   -------   ---------------\n\
             1         1012.11   0.988 ms\n10        8423.52   1.187 ms\n50        21034.76  2.377 ms\n100       {last}  4.182 ms\n"
        )
    };
    assert_eq!(found(&with("23912.08")), []);
    assert_eq!(found(&with("29312.08")), [("little", Severity::Error, Some(4))]);
}

#[test]
fn platforms_side_by_side_are_rows_below_each_other() {
    let html = |tps: &str| {
        format!(
            "<table><tr><td></td><td colspan=2>Old array</td><td colspan=2>New array</td></tr>\
             <tr><td>Clients</td><td>TPS</td><td>Latency (ms)</td><td>TPS</td><td>Latency (ms)</td></tr>\
             <tr><td>8</td><td>4,100</td><td>1.95</td><td>12,800</td><td>0.62</td></tr>\
             <tr><td>32</td><td>9,900</td><td>3.23</td><td>31,000</td><td>1.03</td></tr>\
             <tr><td>64</td><td>11,200</td><td>5.71</td><td>{tps}</td><td>1.64</td></tr></table>"
        )
    };
    assert_eq!(found(&html("39,000")), []);
    // The third row of the second platform.
    assert_eq!(found(&html("93,000")), [("little", Severity::Error, Some(6))]);
    let claims = check(&html("39,000"), &["throughput 5x"]);
    assert!(claims.findings.iter().any(|f| f.law == "claim" && f.severity == Severity::Error));
    // One name above all figures is no platform beside those that the table has.
    let result = "<table><tr><th rowspan=2>Platform<th rowspan=2>Clients<th colspan=2>Result<tr><th>TPS<th>Latency (ms)\
                  <tr><td>A<td>8<td>6400<td>1.25<tr><td>B<td>8<td>12800<td>0.625</table>";
    assert!(check(result, &["throughput 2x"]).unchecked.is_empty());
    let before = "|Clients|Before TPS|After TPS|Speed-up|\n|-|-|-|-|\n|8|4100|12800|3.12x|\n|32|9900|31000|3.13x|\n";
    assert!(says(before, "Before, After stand side by side"));
    let cpu = "|Clients|TPS|Client CPU %|Server CPU %|\n|-|-|-|-|\n|8|4100|12|31|\n|32|9900|31|80|\n";
    assert!(!says(cpu, "side by side"), "client and server are no platforms");
}

#[test]
fn a_claim_is_held_against_platforms_in_tables_of_their_own() {
    let of = |name: &str, factor: f64| {
        let rows: String =
            [(8, 2.0), (32, 3.25), (64, 5.75)].map(|(jobs, ms)| format!("|{jobs}|{:.2}|\n", ms / factor)).concat();
        format!("## {name}\n\n|Jobs|Latency (ms)|\n|-|-|\n{rows}\n")
    };
    let text = of("Old", 1.0) + &of("New", 3.0);
    let severity = |claim: &str| {
        let all = check(&text, &[claim]).findings;
        all.iter().find(|f| f.law == "claim").map(|f| f.severity)
    };
    assert_eq!(severity("latency factor 3"), Some(Severity::Info));
    assert_eq!(severity("latency factor 6"), Some(Severity::Error));
}

/// Of the printed cells, not of what they can have been before they were rounded.
#[test]
fn a_ratio_that_does_not_reach_the_claim_is_never_said_to_hold() {
    let claim = |text: &str, claim: &str| {
        let found = check(text, &[claim]);
        let of = |id: &str| found.findings.iter().find(|f| f.law == "claim" && f.columns == [id]).cloned();
        (of("commit_latency_ms"), of("commit_throughput_tps"), found.unchecked)
    };
    let whole = "platform,jobs,tps,latency_ms\nA,1,1000,1\nA,2,2000,1\nA,4,4000,1\nB,1,500,2\nB,2,1000,2\nB,4,2000,2\n";
    let three = claim(whole, "latency 3x").0.unwrap();
    assert!(three.severity == Severity::Warning && three.message.contains("2 at best"), "{three:?}");
    assert!(claim(whole, "latency 2x").0.unwrap().message.contains("the claim holds"));
    let near = "platform,jobs,tps\nold,1,1000\nold,8,2000\nnew,1,1000\nnew,8,2100\n";
    assert!(claim(near, "throughput 1.1x").1.unwrap().message.contains("not reached"));
    assert!(claim(near, "throughput 5 % higher").1.unwrap().message.contains("in 1 of them only"));
    assert!(claim(near, "latency 2x").2[0].contains("commit_latency_ms"));
    assert!(claim(&near.replace("platform", "Storage type"), "throughput 5 % higher").1.is_some());
    assert!(claim("jobs,tps\n1,1000\n8,2000\n", "throughput 2x").2[0].contains("only 'x'"));
}

#[test]
fn a_column_per_test_is_turned() {
    let with = |ms: &str| {
        format!("Metric,1 client,8 clients,32 clients\nTPS,1012,7800,19000\nLatency (ms),0.987,{ms},1.683\n")
    };
    assert!(found(&with("1.025")).iter().all(|(_, severity, _)| *severity == Severity::Warning));
    assert!(found(&with("1.252")).contains(&("little", Severity::Error, Some(2))));
}

#[test]
fn marks_remarks_and_thousands_are_read() {
    let text = "|Users[1]|Throughput²|Avg. response time (ms)*|\n|-|-|-|\n|10|4,963†|2.015|\n|50|21,276|2.35*|\n|100|31,050 (peak)|3.22|\n|200|~30,900|6.47|\n";
    assert_eq!(found(text), []);
    assert_eq!(found(&text.replace("31,050", "36,050")), [("little", Severity::Error, Some(3))]);
    assert_eq!(
        found("|Clients|TPS (k)|Latency (ms)|\n|-|-|-|\n|64|12.1|5.29|\n|128|18.9|6.77|\n|256|25.0|10.24|\n"),
        []
    );
    let units = "Clients,Throughput,Response time,WAL,WAL per txn\n#,txn/s,ms,MB/s,kB\n10,8423,1.187,20.2,2.4\n50,21034,2.377,50.5,2.4\n100,23912,4.182,75.4,2.4\n";
    assert_eq!(found(units), [("redo-rate", Severity::Error, Some(3))]);
}

#[test]
fn what_is_not_used_is_said() {
    assert!(says(
        "|Clients|TPS|Net|p50 / p99|\n|-|-|-|-|\n|8|4100|120 MB/s|1 / 2|\n|32|9900|310 MB/s|1 / 3|\n",
        "'Net', 'p50 / p99'"
    ));
    let empty = "jobs,commit_throughput_tps,tx_per_s,commit_latency_ms,redo_mib_per_s\n1,,1000,1.0,-\n2,,1900,1.5,-\n";
    assert_eq!(
        found(empty),
        [("little", Severity::Error, Some(2))],
        "a column without figures hides none that has them"
    );
    assert!(!check(empty, &[]).checked.contains(&"hardware"));
    assert!(says("jobs,tps\n1,1e200\n2,3\n4,5\n", "1.0000e200 at 1 jobs"));
    assert!(says("|Clients|TPS|CPU util|\n|-|-|-|\n|8|4100|0.42|\n|32|9900|0.96|\n", "parts of 1"));
}

#[test]
fn a_percentile_that_leaves_the_others_is_named() {
    let with = |off: f64| {
        let row = |at: u32| {
            let (jobs, ms) = (1u32 << at, 0.6 + 0.02 * f64::from(1u32 << at));
            let p99 = ms * 2.13 * if at == 2 { off } else { 1.0 };
            format!("{jobs},{:.1},{ms:.4},{:.4},{p99:.3}\n", f64::from(jobs) / ms * 1e3, ms * 0.87)
        };
        format!("jobs,tps,latency_ms,p50_ms,p99_ms\n{}", (0..8).map(row).collect::<String>())
    };
    assert_eq!(found(&with(1.0)), []);
    assert_eq!(found(&with(3.0)), [("neighbours", Severity::Warning, Some(3))]);
}

/// In a table too short for curves.
#[test]
fn a_mean_above_its_p99_is_a_warning() {
    let with = |p99: &str| format!("|Clients|Latency (ms)|p99 (ms)|\n|-|-|-|\n|16|1.01|2.9|\n|64|2.79|{p99}|\n");
    assert_eq!(found(&with("2.9")), []);
    assert_eq!(found(&with("2.2")), [("mean", Severity::Warning, Some(2))]);
}

/// A million rows take seconds.
#[test]
#[ignore = "nightly: asserts seconds"]
fn a_million_rows_are_audited_in_time() {
    let mut text = "jobs,commit_throughput_tps,commit_latency_ms,redo_kib_per_tx,redo_mib_per_s,cpu_busy_pct,cpu_user_pct,cpu_sys_pct\n".to_owned();
    for row in 0..1_000_000u32 {
        let (jobs, ms) = (1 + row % 64, 1.0 + f64::from(row % 7) / 10.0);
        let tps = f64::from(jobs) / ms * 1e3;
        text += &format!("{jobs},{tps:.1},{ms:.3},2.00,{:.2},40,30,10\n", tps * 2.0 / 1024.0);
    }
    let start = std::time::Instant::now();
    let found = check(&text, &[]);
    let seconds = start.elapsed().as_secs_f64();
    println!("1,000,000 rows in {seconds:.1} s");
    assert_eq!((found.rows, found.count(Severity::Error)), (1_000_000, 0), "{:#?}", found.findings.first());
    assert!(seconds < 30.0, "{seconds} s");
}

/// A name says what is counted, and not over which time.
#[test]
fn a_count_is_no_rate() {
    let fixed = "clients,transactions,seconds,tps,latency_ms\n1,1000000,674.8,1482.0,0.675\n8,1000000,91.3,10954,0.730\n16,1000000,52.3,19120,0.837\n32,1000000,33.1,30221,1.059\n";
    assert!(found(fixed).is_empty() && says(fixed, "'transactions' is a count"), "{:?}", found(fixed));
    assert_eq!(found(&fixed.replace("8,1000000", "8,1300000")), [("tx-rate", Severity::Error, Some(2))]);
    let timeless = "clients,transactions,tps,latency_ms\n1,1000000,1482.0,0.675\n8,1000000,10954,0.730\n";
    assert!(found(timeless).is_empty() && says(timeless, "'transactions' was left out"));
    let rows = "|Sessions|Rows inserted|Batch size|Commits/s|Elapsed (s)|\n|-|-|-|-|-|\n|1|4,200,000|100|700|60|\n|4|15,600,000|100|2,600|60|\n|8|27,000,000|100|4,500|60|\n|16|39,000,000|100|6,500|60|\n";
    assert_eq!(found(rows), []);
    let redo = "|Sessions|Commits/s|Redo size (MB)|Redo per tx (KB)|Elapsed (s)|\n|-|-|-|-|-|\n|1|700|98.4|2.40|60|\n|4|2,600|365.6|2.40|60|\n|8|4,500|632.8|2.40|60|\n|16|6,500|914.1|2.40|60|\n";
    assert_eq!(found(redo), []);
    assert_eq!(found(&redo.replace("632.8", "832.8")), [("redo-rate", Severity::Error, Some(3))]);
    let alone = "|Clients|Transactions|Latency (ms)|\n|-|-|-|\n|8|4100|1.95|\n|32|9900|3.23|\n|64|11200|9.71|\n";
    assert_eq!(found(alone), [("little", Severity::Error, Some(3))]);
}

#[test]
fn the_rate_that_fits_the_time_is_held_against_littles_law() {
    let hammer = "|Virtual Users|NOPM|TPM|Avg response time (ms)|\n|-|-|-|-|\n|1|12,411|28,530|2.103|\n|4|46,120|106,021|2.264|\n|8|81,870|188,205|2.550|\n|16|120,411|276,801|3.468|\n";
    assert_eq!(found(hammer), []);
    assert_eq!(found(&hammer.replace("188,205", "288,205")), [("little", Severity::Error, Some(3))]);
    let queries = "|Connections|QPS|Avg latency|\n|-|-|-|\n|1|5.0k|0.20 ms|\n|10|41.7k|0.240 ms|\n|100|125k|8.00 ms|\n|200|129k|1.55 ms|\n";
    assert_eq!(found(queries), [("little", Severity::Error, Some(3))]);
    // Times of transactions of 20 queries.
    assert_eq!(found("|Threads|QPS|Latency (ms)|\n|-|-|-|\n|1|5000|4.0|\n|8|36000|4.4|\n|16|64000|5.0|\n"), []);
}

#[test]
fn a_raised_digit_is_none_of_the_number() {
    let html = "<table><tr><th>Clients<th>TPS<th>Latency (ms)<tr><td>1<td>1,482<td>0.675 ± 0.002<tr><td>8<td>10,954<sup>1</sup><td>0.730\
                <tr><td title=it's>16<td title='a > b'>19,120<td>0.837<tr><td>32<td>LAST<td>1.059<sup>2</sup></table>";
    assert_eq!(found(&html.replace("LAST", "30,221")), []);
    assert_eq!(found(&html.replace("LAST", "35,221<sup>3</sup>")), [("little", Severity::Error, Some(4))]);
    let md =
        "|Clients|TPS|Latency (ms)|\n|-|-|-|\n|8|10,954<sup>1</sup>|0.730|\n|16|19,120|0.837|\n|32|30,221¹|1.059|\n";
    assert_eq!(found(md), []);
}

#[test]
fn a_claim_with_names_is_about_these_platforms_and_this_direction() {
    let table = "platform,jobs,tps,latency [ms]\nFast 9,4,1000,4.00\nSlow,4,400,10.0\nOther,4,2000,2.00\n";
    for (claim, severity) in [
        ("Fast 9 is 2.5x faster than Slow", Severity::Info),
        ("Fast 9 is up to 2.5x faster than Slow", Severity::Info),
        ("2.5x faster than Slow", Severity::Info),
        ("Slow is 2.5x slower than Fast 9", Severity::Info),
        ("the latency of Slow is 2.5x higher than Fast 9", Severity::Info),
        ("Fast 9's latency is 60 % lower than Slow", Severity::Info),
        ("Slow is 2.5x faster than Fast 9", Severity::Error),
        ("Fast 9 is 3x faster than Slow", Severity::Error),
        ("Fast 9 is 2x faster than Other", Severity::Error),
        ("Fast 9's latency is 2.5x higher than Slow", Severity::Error),
        ("Fast 9 is 2.5 times as fast as Slow", Severity::Info),
        ("Fast 9 is 2.5x faster over Slow", Severity::Info),
        ("Other reduces latency by 50 % over Fast 9", Severity::Info),
        ("Other reduces latency by 90 %", Severity::Error),
        ("Fast 9 is on average 2.5 times faster than Slow", Severity::Info),
        ("on average 6 times faster than Slow", Severity::Error),
    ] {
        for name in ["Slow", "Slow_X5-2"] {
            let [table, claim] = [table, claim].map(|text| text.replace("Slow", name));
            let audit = check(&table, &[&claim]);
            let found: Vec<_> = audit.findings.iter().filter(|f| f.law == "claim").collect();
            let worst = found.iter().map(|f| f.severity).max();
            assert_eq!(worst, Some(severity), "{claim}: {found:#?} {:?}", audit.unchecked);
        }
    }
    let audit = check(table, &["Fast 8 is 2x faster than Slow"]);
    assert!(audit.unchecked[0].contains("no platform is called fast 8"), "{:?}", audit.unchecked);
}

/// Eight jobs that think are less than one busy job, and eight transactions began before the window.
#[test]
fn jobs_that_think_have_transactions_that_began_before_the_window() {
    let table = |tps: f64| {
        format!(
            "jobs,commit_throughput_tps,commit_latency_ms,transaction_time_ns_max,thinking_pct,outside_tx_pct,elapsed_s\n\
             8,{tps},1.7842,20000000,88.6,0.344,3\n"
        )
    };
    let errors = |text: &str| check(text, &[]).findings.iter().filter(|f| f.severity == Severity::Error).count();
    assert_eq!(errors(&table(506.666_666_667)), 0);
    assert_eq!(errors(&table(706.666_666_667)), 1, "more than the edges explain");
}
