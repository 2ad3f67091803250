//! Rows of a table in memory, as the loops of [`crate::Loop`] read them.

use loadline_model::plan::Payload;

use crate::params::Params;
use crate::pool::Pool;
use crate::table::{Datum, Fill, Table, Typed};

/// Rows of a table with all columns, one after the other in records of a fixed number of 8-byte words: a number is one
/// word, a byte string as many as it needs.
#[derive(Debug)]
pub(crate) struct Records {
    words: Vec<i64>,
    width: usize,
}

/// Words of a record of `table`, whose columns must have fixed sizes.
pub(crate) fn width(table: &Table) -> usize {
    let words = |fill: &Fill| if let Fill::PayloadOf(bytes) = fill { bytes.div_ceil(8) as usize } else { 1 };
    table.columns.iter().map(|column| words(&column.fill)).sum()
}

impl Records {
    /// The first rows of `table`, up to about `max_bytes`, exactly as a database gets them.
    pub(crate) fn new(table: &Table, params: &Params, seed: u64, payload: Payload, max_bytes: u64) -> Records {
        let width = width(table);
        let most = max_bytes / (width as u64 * 8);
        let rows = table.total_rows(params, 0).min(most);
        let mut words = Vec::with_capacity(rows as usize * width);
        for batch in 0..rows.div_ceil(table.batch_rows(params).max(1)) {
            let (pool, mut row) = (Pool::new(seed, batch as u32, payload), Vec::new());
            for (index, key) in table.batch(params, 0, batch).take_while(|key| (*key as u64) < rows).enumerate() {
                table.row(key, index as u64, params, &pool, &mut row);
                for datum in &row {
                    match datum {
                        Datum::Int(number) | Datum::Typed(Typed { number, .. }) => words.push(*number),
                        Datum::Bytes(bytes) => words.extend(bytes.chunks(8).map(word)),
                    }
                }
            }
        }
        Records { words, width }
    }

    /// Records, if they have `WIDTH` words; else none.
    pub(crate) fn rows<const WIDTH: usize>(&self) -> &[[i64; WIDTH]] {
        if self.width == WIDTH { self.words.as_chunks().0 } else { &[] }
    }

    pub(crate) fn words(&self) -> &[i64] {
        &self.words
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len() / self.width.max(1)
    }
}

fn word(bytes: &[u8]) -> i64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(word)
}
