//! `series/<test>.csv`: a header of column ids, one row a second, empty cells for missing values, numbers at full precision
//! (they read back bit by bit).

use loadline_model::Series;

/// `series` as CSV. A value that is not finite becomes an empty cell.
/// Fails if an id would need quoting, or a row has more cells than there are columns.
pub(crate) fn write(series: &Series) -> Result<String, String> {
    let plain = |id: &String| !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-:".contains(&b));
    if let Some(id) = series.columns.iter().find(|id| !plain(id)) {
        return Err(format!("'{id}' cannot be the id of a series column"));
    }
    let width = series.columns.len();
    let mut out = series.columns.join(",");
    out.push('\n');
    for (n, row) in series.rows.iter().enumerate() {
        if row.len() > width {
            return Err(format!("row {} of its series has {} cells for {width} columns", n + 1, row.len()));
        }
        let value = |at: usize| row.get(at).copied().flatten().filter(|v| v.is_finite());
        // The shortest text that reads back as the same number.
        let cells = (0..width).map(|at| value(at).map_or(String::new(), |value| value.to_string()));
        out.push_str(&cells.collect::<Vec<_>>().join(","));
        out.push('\n');
    }
    Ok(out)
}

/// Reads what [`write`] wrote. The error has the line (from 1) and what is wrong with it.
pub(crate) fn read(text: &str) -> Result<Series, (usize, String)> {
    let Some(body) = text.strip_suffix('\n') else {
        return Err((text.lines().count().max(1), "the last line is incomplete: the file was cut off".to_owned()));
    };
    let mut lines = body.split('\n').enumerate();
    let header = lines.next().map_or("", |(_, h)| h);
    let columns: Vec<String> =
        if header.is_empty() { Vec::new() } else { header.split(',').map(str::to_owned).collect() };
    if columns.iter().any(String::is_empty) {
        return Err((1, "a column has no name".to_owned()));
    }
    let mut rows = Vec::new();
    for (n, line) in lines {
        let cells: Vec<&str> = line.split(',').collect();
        if cells.len() != columns.len() {
            return Err((n + 1, format!("it has {} cells, but there are {} columns", cells.len(), columns.len())));
        }
        let row = cells.iter().map(|cell| number(cell)).collect::<Result<_, _>>().map_err(|what| (n + 1, what))?;
        rows.push(row);
    }
    Ok(Series { columns, rows })
}

fn number(cell: &str) -> Result<Option<f64>, String> {
    if cell.is_empty() {
        return Ok(None);
    }
    match cell.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Some(value)),
        _ => Err(format!("'{cell}' is not a number")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn it_looks_as_documented() {
        let series = Series {
            columns: vec!["t_s".to_owned(), "commit_throughput_tps".to_owned()],
            rows: vec![
                vec![Some(-1.0), None],
                vec![Some(0.0), Some(1234.5)],
                vec![Some(1.0)],
                vec![None, Some(f64::NAN)],
            ],
        };
        assert_eq!(write(&series).unwrap(), "t_s,commit_throughput_tps\n-1,\n0,1234.5\n1,\n,\n");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let series =
            |columns: &[&str], rows| Series { columns: columns.iter().map(|c| (*c).to_owned()).collect(), rows };
        assert!(write(&series(&["a,b"], vec![])).unwrap_err().contains("'a,b'"));
        assert!(write(&series(&["a"], vec![vec![None, None]])).unwrap_err().contains("2 cells for 1"));
    }

    #[test]
    fn damage_is_named_by_line() {
        for (text, line, what) in [
            ("a,b\n1,2\n3", 3, "cut off"),
            ("", 1, "cut off"),
            ("a,b\n1,2\n3\n", 3, "1 cells"),
            ("a,b\n1,x\n", 2, "'x'"),
            ("a,b\n1,inf\n", 2, "'inf'"),
            ("a,,b\n", 1, "no name"),
        ] {
            let (at, said) = read(text).unwrap_err();
            assert!(at == line && said.contains(what), "{text:?}: line {at}: {said}");
        }
    }

    proptest! {
        #[test]
        fn every_number_reads_back(width in 1usize..4, cells in prop::collection::vec(prop::option::of(any::<f64>()), 0..24)) {
            let row = |row: &[Option<f64>]| row.iter().map(|c| c.filter(|v| v.is_finite())).collect();
            let rows: Vec<Vec<Option<f64>>> = cells.chunks_exact(width).map(row).collect();
            let series = Series { columns: (0..width).map(|i| format!("c{i}")).collect(), rows };
            prop_assert_eq!(read(&write(&series).unwrap()), Ok(series));
        }

        #[test]
        fn no_text_panics(text in ".{0,60}") {
            let _ = read(&text);
        }
    }
}
