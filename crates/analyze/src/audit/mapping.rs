//! What the user says that columns are: `tps=commit_throughput_tps,lat=commit_latency_ms`.

use loadline_model::format::did_you_mean;

use super::table::Table;
use super::words::{find_column, known};

/// Why a mapping cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum MappingError {
    #[error("'{0}' is no mapping of a column: write HEADER=ID, such as 'tps=commit_throughput_tps'")]
    Form(String),
    #[error("there is no column '{id}'{near} (`loadline columns` lists them)")]
    Unknown { id: String, near: String },
    #[error("'{0}' is named twice")]
    Twice(String),
    #[error("no table has a column '{header}': there are {}", there.join(", "))]
    NoHeader { header: String, there: Vec<String> },
}

/// Headers and the ids of the columns that they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mapping(Vec<(String, &'static str)>);

impl Mapping {
    /// Parses `HEADER=ID,…`. A header may hold commas.
    ///
    /// # Errors
    /// A part is no mapping, an id does not exist, or something is named twice.
    pub fn parse(text: &str) -> Result<Mapping, MappingError> {
        let (mut all, mut open): (Vec<(String, &'static str)>, String) = (Vec::new(), String::new());
        for part in text.split(',') {
            let Some((header, id)) = part.rsplit_once('=') else {
                open = format!("{open}{part},");
                continue;
            };
            let (header, id) = (format!("{open}{header}").trim().to_owned(), id.trim());
            open.clear();
            let unknown = || MappingError::Unknown { id: id.to_owned(), near: did_you_mean(id, known()) };
            let found = find_column(id).ok_or_else(unknown)?;
            if header.is_empty() {
                return Err(MappingError::Form(part.to_owned()));
            }
            if let Some((h, _)) = all.iter().find(|(h, i)| *h == header || *i == found) {
                return Err(MappingError::Twice(if *h == header { header } else { id.to_owned() }));
            }
            all.push((header, found));
        }
        if open.is_empty() { Ok(Mapping(all)) } else { Err(MappingError::Form(open.trim_end_matches(',').to_owned())) }
    }

    /// Checks that each header is in one of `tables`.
    ///
    /// # Errors
    /// A header that none has.
    pub fn check(&self, tables: &[Table]) -> Result<(), MappingError> {
        let there = || tables.iter().flat_map(|t| t.headers.iter());
        match self.0.iter().find(|(header, _)| !there().any(|h| same(h, header))) {
            None => Ok(()),
            Some((header, _)) => {
                let there = there().map(|h| format!("'{h}'")).collect();
                Err(MappingError::NoHeader { header: header.clone(), there })
            }
        }
    }

    /// The id that a header was said to be.
    pub(crate) fn id(&self, header: &str) -> Option<&'static str> {
        self.0.iter().find(|(h, _)| same(h, header)).map(|(_, id)| *id)
    }
}

fn same(a: &str, b: &str) -> bool {
    a.trim().to_lowercase() == b.trim().to_lowercase()
}
