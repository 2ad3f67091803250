//! What the user tells an audit: what columns are (`tps=commit_throughput_tps,lat=commit_latency_ms`), and claims about two rows
//! (`tps: new / old = 2.5`).

use loadline_model::format::did_you_mean;

use super::header::{find_column, known};
use super::number::{self, Cell, Style};
use super::table::Table;

/// Why a mapping or a claim cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum ToldError {
    #[error("'{0}' is no mapping of a column: write HEADER=ID, such as 'tps=commit_throughput_tps'")]
    NoMapping(String),
    #[error("there is no column '{id}'{near} (`loadline columns` lists them)")]
    Unknown { id: String, near: String },
    #[error("'{0}' is named twice")]
    Twice(String),
    #[error("no table has a column '{header}': there are {}", there.join(", "))]
    NoHeader { header: String, there: Vec<String> },
    #[error(
        "'{0}' is no claim: write COLUMN: ROW / ROW = FACTOR, such as 'tps: new / old = 2.5' or 'latency_ms: 4 / 1 = 6'"
    )]
    NoClaim(String),
    #[error(
        "'{0}': no table has that column with a figure in both rows; a row is a cell of the first column, or its number"
    )]
    NoRows(String),
}

pub(crate) fn is_same(a: &str, b: &str) -> bool {
    a.trim().to_lowercase() == b.trim().to_lowercase()
}

/// Headers and the ids of the columns that they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping(Vec<(String, &'static str)>);

impl Mapping {
    /// Parses `HEADER=ID,…`. A header may hold commas.
    ///
    /// # Errors
    /// A part is no mapping, an id does not exist, or something is named twice.
    pub fn parse(text: &str) -> Result<Mapping, ToldError> {
        let (mut all, mut open) = (Mapping::default(), String::new());
        for part in text.split(',') {
            open += part;
            let Some((header, id)) = open.rsplit_once('=') else {
                open.push(',');
                continue;
            };
            let (header, id) = (header.trim(), id.trim());
            let unknown = || ToldError::Unknown { id: id.to_owned(), near: did_you_mean(id, known()) };
            let found = find_column(id).ok_or_else(unknown)?;
            if header.is_empty() {
                return Err(ToldError::NoMapping(part.to_owned()));
            } else if all.id(header).is_some() {
                return Err(ToldError::Twice(header.to_owned()));
            } else if all.0.iter().any(|(_, known)| *known == found) {
                return Err(ToldError::Twice(id.to_owned()));
            }
            all.0.push((header.to_owned(), found));
            open.clear();
        }
        if open.is_empty() { Ok(all) } else { Err(ToldError::NoMapping(open.trim_end_matches(',').to_owned())) }
    }

    /// Checks that each header is in one of `tables`.
    ///
    /// # Errors
    /// A header that none has.
    pub fn check(&self, tables: &[Table]) -> Result<(), ToldError> {
        let there = || tables.iter().flat_map(|t| t.headers.iter());
        match self.0.iter().find(|(header, _)| !there().any(|h| is_same(h, header))) {
            Some((header, _)) => {
                let there = there().map(|h| format!("'{h}'")).collect();
                Err(ToldError::NoHeader { header: header.clone(), there })
            }
            None => Ok(()),
        }
    }

    /// The id that a header was said to be.
    pub(crate) fn id(&self, header: &str) -> Option<&'static str> {
        self.0.iter().find(|(h, _)| is_same(h, header)).map(|(_, id)| *id)
    }
}

/// The ratio of one column in two rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub(crate) text: String,
    pub(crate) column: String,
    pub(crate) rows: [String; 2],
    pub(crate) factor: f64,
    /// What the digits of the factor leave open, 1 % of it at most.
    pub(crate) tolerance: f64,
}

impl Claim {
    /// Parses `COLUMN: ROW / ROW = FACTOR`.
    ///
    /// # Errors
    /// It has another form, or the factor is no number above 0.
    pub fn parse(text: &str) -> Result<Claim, ToldError> {
        let parsed = || {
            let (left, factor) = text.rsplit_once('=')?;
            let (column, rows) = left.rsplit_once(": ")?;
            let (above, below) = rows.split_once(" / ")?;
            let Cell::Number(n) = number::read(factor.trim().trim_end_matches(['x', '×']), Some(Style::Point)) else {
                return None;
            };
            let [column, above, below] = [column, above, below].map(|part| part.trim().to_owned());
            let is_whole = n.value > 0.0 && n.unit.is_empty() && ![&column, &above, &below].contains(&&String::new());
            let tolerance = n.half.min(0.01 * n.value) * (1.0 + 1e-9);
            is_whole.then(|| Claim { text: text.to_owned(), column, rows: [above, below], factor: n.value, tolerance })
        };
        parsed().ok_or_else(|| ToldError::NoClaim(text.to_owned()))
    }
}
