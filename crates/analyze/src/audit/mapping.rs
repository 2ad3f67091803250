//! What the user says that columns are: `tps=commit_throughput_tps,lat=commit_latency_ms`.

use loadline_model::format::did_you_mean;

use super::header::{find_column, known};
use super::table::Table;

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
        let (mut all, mut open) = (Mapping::default(), String::new());
        for part in text.split(',') {
            open += part;
            let Some((header, id)) = open.rsplit_once('=') else {
                open.push(',');
                continue;
            };
            let (header, id) = (header.trim(), id.trim());
            let unknown = || MappingError::Unknown { id: id.to_owned(), near: did_you_mean(id, known()) };
            let found = find_column(id).ok_or_else(unknown)?;
            let twice = [(all.id(header).is_some(), header), (all.0.iter().any(|(_, i)| *i == found), id)];
            if let Some((_, what)) = twice.into_iter().find(|(is_known, _)| *is_known) {
                return Err(MappingError::Twice(what.to_owned()));
            } else if header.is_empty() {
                return Err(MappingError::Form(part.to_owned()));
            }
            all.0.push((header.to_owned(), found));
            open.clear();
        }
        if open.is_empty() { Ok(all) } else { Err(MappingError::Form(open.trim_end_matches(',').to_owned())) }
    }

    /// Checks that each header is in one of `tables`.
    ///
    /// # Errors
    /// A header that none has.
    pub fn check(&self, tables: &[Table]) -> Result<(), MappingError> {
        let there = || tables.iter().flat_map(|t| t.headers.iter());
        let Some((header, _)) = self.0.iter().find(|(header, _)| !there().any(|h| is_same(h, header))) else {
            return Ok(());
        };
        let there = there().map(|h| format!("'{h}'")).collect();
        Err(MappingError::NoHeader { header: header.clone(), there })
    }

    pub(crate) fn id(&self, header: &str) -> Option<&'static str> {
        self.0.iter().find(|(h, _)| is_same(h, header)).map(|(_, id)| *id)
    }
}

/// Whether two names are the same but for case and spaces around them.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    a.trim().to_lowercase() == b.trim().to_lowercase()
}
