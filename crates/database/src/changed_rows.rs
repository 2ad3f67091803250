//! Compares rows of the data set on a target with what they must be: their contents follow from seed and key.
//!
//! A sample, because a scan takes as long as a test: of 256 rows, one in a hundred changed ones is found in 92 % of the runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use loadline_workload::{Datum, Table, scatter};

use crate::data_set::{Loader, as_text};
use crate::dialect::Dialect;
use crate::error::TargetError;
use crate::loading::{Batch, rows, table_stem};
use crate::work::Work;

/// Batches, spread over the table, and rows drawn from each. Making a batch's payloads costs as much as reading its rows.
const BATCHES: u64 = 16;
const ROWS_OF_BATCH: u64 = 16;
/// Keeps the drawn rows apart from the values in them.
const SALT: u32 = 91;

/// Compares the sample of `table`, which is complete: [`TargetError::Refused`] names the first row that differs.
pub(crate) fn check(loader: &mut Loader<'_>, work: &Work, table: &Table) -> Result<(), TargetError> {
    if !loader.exists(&table_stem(work, &table.name))? {
        // Somebody dropped it: it is loaded again.
        return Ok(());
    }
    let found = loader.rows(&query(loader.dialect, work, table))?;
    let found: BTreeMap<i64, Vec<String>> =
        found.into_iter().filter_map(|row| Some((row.first()?.parse().ok()?, row))).collect();
    sample(work, table).iter().try_for_each(|row| {
        rows(work, table, row, |wanted| match difference(table, wanted, found.get(&row.keys.start)) {
            None => Ok(()),
            Some(what) => Err(TargetError::Refused(format!(
                "the data set was changed after it was loaded: in table '{}', {what}. Load it again with --reload, or \
                 remove it with `loadline clean`",
                table.name
            ))),
        })
    })
}

pub(crate) fn query(dialect: &Dialect, work: &Work, table: &Table) -> String {
    let columns: Vec<String> = table.columns.iter().map(|c| as_text(dialect, c)).collect();
    let keys: Vec<String> = sample(work, table).iter().map(|row| row.keys.start.to_string()).collect();
    let (name, key) = (dialect.table_name(work, &table.name), columns.first().map_or("", String::as_str));
    format!("SELECT {} FROM {name} WHERE {key} IN ({})", columns.join(", "), keys.join(", "))
}

fn sample(work: &Work, table: &Table) -> Vec<Batch> {
    let batches = table.batches(&work.params, 0);
    let spread = (0..batches.min(BATCHES)).map(|i| i * (batches - 1) / (BATCHES - 1).min(batches - 1).max(1));
    let of_batch = |number: u64| {
        let batch = Batch { number, skipped: 0, keys: table.batch(&work.params, 0, number) };
        let rows: BTreeSet<u64> =
            (0..ROWS_OF_BATCH as i64).map(|i| scatter(batch.keys.start + i, SALT, batch.len().max(1)) as u64).collect();
        rows.into_iter().map(move |row| batch.part(row, 1))
    };
    spread.flat_map(of_batch).collect()
}

/// How a row differs from what it must be, if it does.
fn difference(table: &Table, wanted: &[Datum<'_>], found: Option<&Vec<String>>) -> Option<String> {
    let key = table.columns.first().zip(wanted.first());
    let row = match key {
        Some((column, Datum::Int(key))) => format!("the row {} = {key}", column.name),
        _ => "a row".to_owned(),
    };
    let Some(found) = found else { return Some(format!("{row} is missing")) };
    let differs = |(i, wanted): (usize, &Datum<'_>)| {
        let found = found.get(i).map_or("", String::as_str);
        let what = match wanted {
            Datum::Int(wanted) if *found == wanted.to_string() => return None,
            Datum::Int(wanted) => format!("'{found}' instead of {wanted}"),
            Datum::Typed(wanted) if *found == wanted.text() => return None,
            Datum::Typed(wanted) => format!("'{found}' instead of '{}'", wanted.text()),
            Datum::Bytes(wanted) if found.eq_ignore_ascii_case(&hex(wanted)) => return None,
            Datum::Bytes(wanted) if found.len() == 2 * wanted.len() => "other bytes than it must".to_owned(),
            Datum::Bytes(wanted) => format!("{} bytes instead of {}", found.len() / 2, wanted.len()),
        };
        Some(format!("{row} has {what} in column '{}'", table.columns.get(i)?.name))
    };
    wanted.iter().enumerate().find_map(differs)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_spread_over_the_whole_table() {
        let work = Work::from_catalogue("DA-JOIN", &[]).unwrap();
        for table in work.workload.tables.iter().filter(|t| t.scope == loadline_workload::Scope::DataSet) {
            let (keys, total): (Vec<i64>, _) = (
                sample(&work, table).iter().map(|row| row.keys.start).collect(),
                table.total_rows(&work.params, 0) as i64,
            );
            assert!(keys.is_sorted_by(|a, b| a < b) && keys.iter().all(|key| *key < total), "{keys:?}");
            assert!(keys[0] < total / 3 && keys[keys.len() - 1] > total * 2 / 3, "{}: {keys:?}", table.name);
            let odd = keys.iter().filter(|key| *key % 2 == 1).count();
            assert!(keys.len() >= 15 && (1..keys.len()).contains(&odd), "{keys:?}");
        }
    }

    #[test]
    fn what_differs_is_named() {
        let table = loadline_workload::data::table("product").unwrap();
        let wanted = [Datum::Int(7), Datum::Int(3), Datum::Int(42), Datum::Bytes(&[0xab, 1])];
        let said = |found: [&str; 4]| difference(table, &wanted, Some(&found.map(str::to_owned).to_vec()));
        assert_eq!(said(["7", "3", "42", "AB01"]), None);
        for (found, what) in [
            (["7", "3", "42", ""], "the row id = 7 has 0 bytes instead of 2 in column 'payload'"),
            (["7", "3", "42", "ab02"], "the row id = 7 has other bytes than it must in column 'payload'"),
            (["7", "3", "41", "ab01"], "the row id = 7 has '41' instead of 42 in column 'price'"),
        ] {
            assert_eq!(said(found).as_deref(), Some(what));
        }
        assert_eq!(difference(table, &wanted, None).as_deref(), Some("the row id = 7 is missing"));
    }
}
