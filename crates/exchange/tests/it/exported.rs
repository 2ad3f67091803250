//! Tables that go out hold what came in, cell by cell.

use loadline_exchange::table::{TABLES, Table, TestData};
use loadline_exchange::{Form, Tool};
use loadline_model::column::TX_PER_S;
use loadline_model::{Detail, InPair, Latencies, Letter, Series, TestRecord};
use serde_json::{Value, json};

use crate::one;

fn data() -> Vec<TestData> {
    let sysbench = one(Tool::Sysbench, &["sysbench-rw.txt"]);
    let record = TestRecord {
        run: "r, \"1\"".to_owned(),
        details: vec![Detail::Imported(Default::default())],
        ..sysbench.record
    };
    let mut own = TestRecord { run: "own".to_owned(), test: 2, ..TestRecord::blank("LGWR-LAT1") };
    own.set(TX_PER_S, 0.1 + 0.2);
    let kinds = json!([
        {"name": "a.sql", "weight": 3, "transactions": 9, "tps": 7.5, "transaction_ns": [2e6, 1e6, 5e6], "p95_ns": 4e6},
        {"name": "b, \"2\".sql", "weight": 1, "tps": 7.5},
    ]);
    own.details.push(Detail::Kinds(serde_json::from_value(kinds).unwrap()));
    let series =
        Series { columns: vec!["t_s".to_owned(), "x".to_owned()], rows: vec![vec![Some(-1.0), None], vec![Some(0.0)]] };
    let mut latencies = Latencies::new();
    [1_000, 1_000, 5_000_000].into_iter().for_each(|ns| latencies.record(ns));
    vec![
        TestData { record, series: sysbench.series, histograms: sysbench.histograms },
        TestData { record: own, series, histograms: vec![("commit".to_owned(), latencies)] },
    ]
}

fn column(table: &Table, name: &str) -> Vec<Value> {
    let at = table.columns.iter().position(|(known, _)| known == name).unwrap_or_else(|| panic!("no {name}"));
    table.rows.iter().map(|row| row[at].clone()).collect()
}

#[test]
fn every_table_has_a_row_for_each() {
    let data = data();
    let tests = Table::new("tests", &data).unwrap();
    assert_eq!(column(&tests, "valid"), [Value::Null, json!(true)], "imported: neither");
    assert_eq!(column(&tests, "tx_per_s"), [json!(148.39), json!(0.1 + 0.2)]);
    assert_eq!(column(&tests, "jobs"), [json!(2), json!(1)]);
    let series = Table::new("series", &data).unwrap();
    assert_eq!(column(&series, "x"), vec![Value::Null; 4]);
    assert_eq!(column(&series, "commit_throughput_tps"), [json!(220.7), json!(107.01), Value::Null, Value::Null]);
    let buckets = Table::new("histograms", &data).unwrap();
    let counts = column(&buckets, "count").into_iter().zip(column(&buckets, "kind"));
    let commits = counts.filter(|(_, kind)| kind == "commit").map(|(n, _)| n.as_u64().unwrap());
    assert_eq!((commits.sum::<u64>(), Table::new("other", &data)), (3, None));
    let kinds = Table::new("kinds", &data).unwrap();
    let rows = [
        json!(["own", 2, "a.sql", 3, 9, 7.5, 2.0, 1.0, 5.0, 4.0]),
        json!(["own", 2, "b, \"2\".sql", 1, null, 7.5, null, null, null, null]),
    ];
    assert_eq!(json!(kinds.rows), json!(rows));
    assert_eq!(column(&kinds, "p99_ms"), [json!(5.0), Value::Null]);
}

#[test]
fn a_window_of_a_says_beside_which_of_several_arms_it_stands() {
    let window = |arm, beside| {
        let variant = Some(InPair { beside, ..InPair::of_two(arm) });
        let record = TestRecord { variant, ..TestRecord::blank("LGWR-LAT1") };
        TestData { record, series: Series::default(), histograms: Vec::new() }
    };
    let [a, b, c] = [Letter::A, Letter::B, Letter::nth(2)];
    let two = Table::new("tests", &[window(a, b), window(b, b)]).unwrap();
    assert!(two.columns.iter().all(|(name, _)| name != "beside"), "of two arms the other one is meant");
    let three = Table::new("tests", &[window(a, b), window(b, b), window(a, c), window(c, c)]).unwrap();
    assert_eq!(column(&three, "beside"), ["B", "B", "C", "C"]);
    assert_eq!(column(&three, "arm"), ["A", "B", "A", "C"]);
}

#[test]
fn csv_and_json_read_back_as_the_same_numbers() {
    let table = Table::new("tests", &data()).unwrap();
    let csv = String::from_utf8(table.write(Form::Csv).unwrap()).unwrap();
    let mut lines = csv.lines();
    let at = lines.next().unwrap().split(',').position(|c| c == "tx_per_s").unwrap();
    let own = lines.find(|line| line.starts_with(",LGWR-LAT1,own,2,")).unwrap();
    assert_eq!(own.split(',').nth(at).unwrap().parse::<f64>(), Ok(0.1 + 0.2));
    assert!(csv.contains("\"r, \"\"1\"\"\""), "quoted");
    let json: Value = serde_json::from_slice(&table.write(Form::Json).unwrap()).unwrap();
    assert_eq!((&json[1]["tx_per_s"], &json[0]["valid"]), (&json!(0.1 + 0.2), &Value::Null));
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_reads_back_cell_by_cell() {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;
    for name in TABLES {
        let table = Table::new(name, &data()).unwrap();
        let file = SerializedFileReader::new(bytes::Bytes::from(table.write(Form::Parquet).unwrap())).unwrap();
        for (row, read) in table.rows.iter().zip(file.get_row_iter(None).unwrap()) {
            for (cell, (_, field)) in row.iter().zip(read.unwrap().get_column_iter()) {
                let value = match field {
                    Field::Null => Value::Null,
                    Field::Str(text) => json!(text),
                    Field::Double(n) => json!(n),
                    Field::Long(n) => json!(n),
                    Field::Bool(truth) => json!(truth),
                    other => panic!("{other}"),
                };
                assert_eq!(*cell, value, "{name}");
            }
        }
        assert_eq!(file.get_row_iter(None).unwrap().count(), table.rows.len());
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_is_refused_without_its_library() {
    assert!(TABLES.map(|name| Table::new(name, &data()).unwrap().write(Form::Parquet)).iter().all(Result::is_err));
}
