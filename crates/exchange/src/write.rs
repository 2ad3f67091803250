//! The forms of a table as a file.

use loadline_model::format::csv_line;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::table::Table;

/// A form of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// RFC 4180 with LF: a header, then a line for each row.
    Csv,
    /// An array with an object for each row.
    Json,
    /// One group of rows, not compressed.
    Parquet,
}

/// A table could not be written.
#[derive(Debug, Error)]
pub enum TableError {
    /// This loadline lacks the form.
    #[error("this loadline was built without Parquet: build it with --features parquet, or export --format csv")]
    WithoutParquet,
    /// A bug in loadline.
    #[error("the table could not be encoded; this is a bug in loadline, please report it: {0}")]
    Encoding(Box<dyn std::error::Error + Send + Sync>),
}

impl Table {
    /// The table as a file.
    ///
    /// # Errors
    /// [`TableError`].
    pub fn write(&self, form: Form) -> Result<Vec<u8>, TableError> {
        match form {
            Form::Csv => {
                let mut out = csv_line(self.columns.iter().map(|(name, _)| name));
                self.rows.iter().for_each(|row| out.push_str(&csv_line(row.iter().map(plain))));
                Ok(out.into_bytes())
            }
            Form::Json => {
                let names = || self.columns.iter().map(|(name, _)| name.clone());
                let row = |row: &Vec<Value>| names().zip(row.iter().cloned()).collect::<Map<_, _>>();
                let text = serde_json::to_vec_pretty(&self.rows.iter().map(row).collect::<Vec<_>>());
                text.map_err(|e| TableError::Encoding(e.into()))
            }
            #[cfg(feature = "parquet")]
            Form::Parquet => crate::parquet::encoded(self).map_err(|e| TableError::Encoding(e.into())),
            #[cfg(not(feature = "parquet"))]
            Form::Parquet => Err(TableError::WithoutParquet),
        }
    }
}

/// A cell as text that reads back as the same value; empty if it is missing.
fn plain(cell: &Value) -> String {
    match cell {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(n) if n.is_f64() => n.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}
