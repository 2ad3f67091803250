//! Tables that go out hold what came in, cell by cell.

use loadline_exchange::Tool;
use loadline_exchange::table::{Form, Table, TestData, Values};
use loadline_model::column::{COMMIT_THROUGHPUT_TPS, TX_PER_S};
use loadline_model::{Latencies, Series, TestRecord};

use crate::one;

fn data() -> Vec<TestData> {
    let sysbench = one(Tool::Sysbench, &["sysbench-rw.txt"]);
    let record = TestRecord { run: "r, \"1\"".to_owned(), imported: Some(Default::default()), ..sysbench.record };
    let mut own = TestRecord { run: "own".to_owned(), test: 2, ..TestRecord::blank("LGWR-LAT1") };
    own.set(TX_PER_S, 0.1 + 0.2);
    let series =
        Series { columns: vec!["t_s".to_owned(), "x".to_owned()], rows: vec![vec![Some(-1.0), None], vec![Some(0.0)]] };
    let mut latencies = Latencies::new();
    [1_000, 1_000, 5_000_000].into_iter().for_each(|ns| latencies.record(ns));
    vec![
        TestData { record, series: sysbench.series, histograms: sysbench.histograms },
        TestData { record: own, series, histograms: vec![("commit".to_owned(), latencies)] },
    ]
}

fn column<'a>(table: &'a Table, name: &str) -> &'a Values {
    &table.columns.iter().find(|(known, _)| known == name).unwrap_or_else(|| panic!("no {name}")).1
}

#[test]
fn every_table_has_a_row_for_each() {
    let data = data();
    let tests = Table::new("tests", &data).unwrap();
    assert_eq!(column(&tests, "valid"), &Values::Truth(vec![None, Some(true)]), "imported: neither");
    assert_eq!(column(&tests, "tx_per_s"), &Values::Number(vec![Some(148.39), Some(0.1 + 0.2)]));
    assert_eq!(column(&tests, "jobs"), &Values::Whole(vec![Some(2), Some(1)]));
    let series = Table::new("series", &data).unwrap();
    assert_eq!(series.rows(), 4);
    assert_eq!(column(&series, "x"), &Values::Number(vec![None, None, None, None]));
    assert_eq!(column(&series, COMMIT_THROUGHPUT_TPS.id), &Values::Number(vec![Some(220.7), Some(107.01), None, None]));
    let buckets = Table::new("histograms", &data).unwrap();
    let (Values::Whole(counts), Values::Text(kinds)) = (column(&buckets, "count"), column(&buckets, "kind")) else {
        panic!("other types")
    };
    let of = |kind: &str| {
        counts.iter().zip(kinds).filter(|(_, k)| k.as_deref() == Some(kind)).filter_map(|(n, _)| *n).sum::<i64>()
    };
    assert_eq!((of("transaction"), of("commit")), (330, 3));
    assert!(Table::new("other", &data).is_none());
}

#[test]
fn csv_reads_back_as_the_same_numbers() {
    let csv = Table::new("tests", &data()).unwrap().write(Form::Csv).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let mut lines = csv.lines();
    let at = lines.next().unwrap().split(',').position(|c| c == "tx_per_s").unwrap();
    let own = lines.find(|line| line.starts_with(",LGWR-LAT1,own,2,")).unwrap();
    assert_eq!(own.split(',').nth(at).unwrap().parse::<f64>(), Ok(0.1 + 0.2));
    assert!(csv.contains("\"r, \"\"1\"\"\""), "quoted");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_reads_back_cell_by_cell() {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;
    for name in loadline_exchange::table::TABLES {
        let table = Table::new(name, &data()).unwrap();
        let bytes = table.write(Form::Parquet).unwrap();
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), table.rows(), "{name}");
        for (n, row) in rows.iter().enumerate() {
            for ((id, values), (read, field)) in table.columns.iter().zip(row.get_column_iter()) {
                let expected = match values {
                    Values::Text(all) => all[n].clone().map_or(Field::Null, Field::Str),
                    Values::Number(all) => all[n].map_or(Field::Null, Field::Double),
                    Values::Whole(all) => all[n].map_or(Field::Null, Field::Long),
                    Values::Truth(all) => all[n].map_or(Field::Null, Field::Bool),
                };
                assert_eq!((id, &expected), (read, field), "{name}, row {n}");
            }
        }
    }
}
