//! Tables as people write them.

use loadline_analyze::audit::table::{ReadError, Table, read};
use loadline_analyze::audit::{Mapping, Sheet};

fn one(text: &str) -> Table {
    let mut tables = read(text, "file.csv").unwrap();
    assert_eq!(tables.len(), 1, "{tables:?}");
    tables.remove(0)
}

fn values(text: &str, id: &str) -> Vec<Option<f64>> {
    let table = one(text);
    let sheet = Sheet::new(&table, &Mapping::default());
    assert!(sheet.has(id), "{id}: {:?}", sheet.remarks);
    (0..table.rows()).map(|row| sheet.value(id, row)).collect()
}

/// The same two tests in every form must give the same figures.
#[test]
fn the_same_table_is_read_from_every_form() {
    let forms = [
        ("plain", "jobs,commit_throughput_tps,commit_latency_ms\n2,3949,0.506\n12,19610,0.61\n"),
        ("CRLF and BOM", "\u{feff}jobs,commit_throughput_tps,commit_latency_ms\r\n2,3949,0.506\r\n12,19610,0.61\r\n"),
        ("quoted", "\"jobs\",\"commit_throughput_tps\",commit_latency_ms\n2,\"3,949\",\"0.506\"\n12,\"19,610\",0.61"),
        ("semicolons, decimal commas", "jobs;commit_throughput_tps;commit_latency_ms\n2;3.949;0,506\n12;19.610;0,61\n"),
        ("tabs, narrow spaces", "jobs\ttps\tlatency (ms)\n2\t3\u{202f}949\t0.506\n12\t19\u{a0}610\t0.61\n"),
        ("bars", "jobs|tps|latency [ms]\n2|3949|0.506\n12|19610|0.61\n"),
        ("spaces", "jobs  TPS    latency_ms\n2     3949   0.506\n12    19610  0.61\n"),
        ("a title above", "Log writer on X5-2\n\njobs,tps,latency_us\n2,3949,506\n12,19610,610\n"),
        ("units below", "clients,tps,latency\n,1/s,ms\n2,3949,0.506\n12,19610,0.61\n"),
        ("units in cells", "clients,tps,latency\n2,3949,506 us\n12,19.610k,610 us\n"),
        (
            "Markdown",
            "# Results\n\n| Clients | TPS | Latency [ms] |\n|---:|---:|---:|\n| 2 | **3,949** | 0.506 |\n| 12 | 19,610 | `0.61` |\n",
        ),
        (
            "mysql",
            "+---------+-------+------------+\n| clients | tps   | latency_ms |\n+---------+-------+------------+\n| 2 | 3949 | 0.506 |\n| 12 | 19610 | 0.61 |\n+---------+-------+------------+\n",
        ),
        (
            "psql",
            " clients |  tps  | latency_ms \n---------+-------+-----------\n 2 | 3949 | 0.506\n 12 | 19610 | 0.61\n(2 rows)\n",
        ),
        (
            "SQL*Plus",
            "   CLIENTS        TPS LATENCY_MS\n---------- ---------- ----------\n         2       3949       .506\n        12      19610        .61\n\n2 rows selected.\n",
        ),
        (
            "HTML",
            "<html><body><h2>Run <b>1</b></h2><TABLE class='x'><thead><tr><th rowspan=2>Jobs<th colspan=2>Commit</tr>\
             <tr><th>throughput [tps]<th>latency [ms]</tr></thead><tr><td>2<td>3&nbsp;949<td>0.506</tr><tr><td colspan=3>Test 1 was disturbed.</tr><tr><td>12</td><td>19&#160;610</td><td>0.61</td></tr></table>",
        ),
    ];
    for (form, text) in forms {
        assert_eq!(values(text, "jobs"), [Some(2.0), Some(12.0)], "{form}");
        assert_eq!(values(text, "commit_throughput_tps"), [Some(3949.0), Some(19610.0)], "{form}");
        let times = values(text, "commit_latency_ms");
        let close = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-9);
        assert!(close(times[0], 0.506) && close(times[1], 0.61), "{form}: {times:?}");
    }
}

#[test]
fn a_first_row_of_ones_is_a_test() {
    assert_eq!(values("jobs,nodes\n1,1\n2,1\n", "jobs"), [Some(1.0), Some(2.0)]);
    assert_eq!(values("jobs\n1\n2\n", "jobs"), [Some(1.0), Some(2.0)]);
}

#[test]
fn several_tables_are_named_by_their_headings() {
    let text = "## Before\n| jobs | tps |\n|--|--|\n| 1 | 2 |\n\n## After\n| jobs | tps |\n|--|--|\n| 1 | 3 |\n";
    let names: Vec<String> = read(text, "x.md").unwrap().into_iter().map(|t| t.name).collect();
    assert_eq!(names, ["Before (table 1)", "After (table 2)"]);
    let text = "jobs,tps\n1,2\n\njobs,latency_ms\n1,3\n2,4\n";
    let rows: Vec<(String, usize)> =
        read(text, "x.csv").unwrap().into_iter().map(|t| (t.name.clone(), t.rows())).collect();
    assert_eq!(rows, [("x.csv (table 1)".to_owned(), 1), ("x.csv (table 2)".to_owned(), 2)]);
}

#[test]
fn what_is_no_table_is_refused_with_a_reason() {
    assert_eq!(read("", "x").unwrap_err(), ReadError::Empty);
    assert_eq!(read("\u{feff} \n\r\n", "x").unwrap_err(), ReadError::Empty);
    assert_eq!(read("jobs,tps\n", "x").unwrap_err(), ReadError::NoTable);
    assert!(matches!(read("1,2\n3,4\n", "x"), Err(ReadError::NoHeader(_))));
    assert_eq!(read("<table></table>", "x").unwrap_err(), ReadError::NoTable);
}

#[test]
fn ragged_rows_are_said_and_never_shifted() {
    let table = one("jobs,tps,latency_ms\n1,100\n2,200,1.0,9,9\n3,300,1.0,\njobs,tps,latency_ms\n4,400,1\n");
    assert_eq!(table.rows(), 5);
    assert_eq!((table.cell(0, 1), table.cell(0, 2)), ("100", ""));
    assert_eq!(table.cell(1, 0), "", "a row with too many cells is not used");
    assert_eq!(table.cell(2, 2), "1.0", "a separator at the end is no cell");
    let rows: Vec<Option<usize>> = table.remarks.iter().map(|r| r.row).collect();
    assert_eq!(rows, [Some(0), Some(1), Some(3)]);
}

#[test]
fn odd_texts_never_panic() {
    let odd = [
        "\"",
        "a,\"b\n1,2",
        "a,b\n\"1,2\n3,4",
        "|\n|-|\n",
        "| a |\n|---|\n|",
        "<table><td>",
        "<table><tr><td rowspan=0 colspan=99999>é",
        "a;b\né;ü\n",
        "<table",
        "&#xffffffff; <table><tr><th>&bogus;<tr><td>1",
        "a,b\n\u{0},\u{202e}\n",
        "| \\",
        "--|--",
        "x\\|y|z\n--|--\n1|2",
    ];
    for text in odd {
        if let Ok(tables) = read(text, "x") {
            for table in &tables {
                let sheet = Sheet::new(table, &Mapping::default());
                let _ = (sheet.series(), sheet.swept());
            }
        }
    }
}

/// A few MiB that would take minutes if each tag were looked for in all that follows.
#[test]
fn hostile_tags_and_entities_are_read_once() {
    let many = |text: &str| text.repeat((4 << 20) / text.len());
    let texts = [
        format!("| {} |\n|---|\n| 1 |\n", many("<a")),
        format!("<table><tr><th>{}</th></tr><tr><td>1</td></tr></table>", many("&")),
        format!("<table><tr><th>a</th></tr><tr><td>1</td></tr></table>{}", many("<style></STYLE>")),
    ];
    for text in texts {
        assert_eq!(one(&text).rows(), 1);
    }
}

#[test]
fn a_figure_is_as_wide_as_its_digits() {
    let table = one("jobs,commit_throughput_tps,cpu_busy_pct,rows_per_s\n10,15000,0.50,12180\n20,26000,74,5609\n");
    let sheet = Sheet::new(&table, &Mapping::default());
    let half = |id, row| sheet.figure(id, row).map(|f| (f.half(), f.loose())).unwrap();
    assert_eq!(half("jobs", 0), (0.0, 0.0), "a count is exact");
    assert_eq!(half("commit_throughput_tps", 0), (0.5, 500.0), "no cell shows that its zeros are digits");
    assert!((half("cpu_busy_pct", 0).0 - 0.005).abs() < 1e-6);
    assert_eq!(half("cpu_busy_pct", 1), (0.5, 0.5));
    assert_eq!(half("rows_per_s", 0), (0.5, 5.0), "all cells have four digits");
}

#[test]
fn series_are_told_apart_by_text_and_settings() {
    let table = one("platform,engine,nodes,jobs,tps\nA,x,1,1,10\nA,x,1,2,20\nA,y,1,1,10\nB,x,1,1,11\nB,x,2,1,12\n");
    let sheet = Sheet::new(&table, &Mapping::default());
    assert_eq!(sheet.swept(), Some("jobs"));
    let labels: Vec<String> = sheet.series().into_iter().map(|s| s.label).collect();
    assert_eq!(labels, ["A x nodes 1", "A y nodes 1", "B x nodes 1", "B x nodes 2"]);
}

#[test]
fn mappings_name_what_is_wrong() {
    let table = one("a b,x\n1,2\n");
    let mapping = Mapping::parse("a b=jobs, x=commit_throughput_tps").unwrap();
    assert!(mapping.check(std::slice::from_ref(&table)).is_ok());
    let sheet = Sheet::new(&table, &mapping);
    assert_eq!((sheet.value("jobs", 0), sheet.value("commit_throughput_tps", 0)), (Some(1.0), Some(2.0)));
    for (text, named) in [("x", "'x'"), ("x=tsp", "'tsp'"), ("x=jobs,y=jobs", "'jobs'"), ("=jobs", "'=jobs'")] {
        assert!(Mapping::parse(text).unwrap_err().to_string().contains(named), "{text}");
    }
    let wrong = Mapping::parse("zz=jobs").unwrap().check(&[table]).unwrap_err().to_string();
    assert!(wrong.contains("'zz'") && wrong.contains("'a b'"), "{wrong}");
}
