//! Every column, defined once: terminal, CSV, HTML, Markdown and docs are drawn from this table.

use crate::format::{self, Format};
use crate::record::TestRecord;

mod base;
mod log;
mod storage;
mod tables;
mod work;

pub use tables::*;

/// One column of a result table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Stable id, the same in `tests.jsonl`, CSV and `--columns`. It carries its unit last.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// Unit as shown, empty if it has none.
    pub unit: &'static str,
    /// How it is shown.
    pub format: Format,
    /// What it means, one sentence.
    pub meaning: &'static str,
    /// Where it comes from, by target kind; `*` is any other.
    pub sources: &'static [(&'static str, &'static str)],
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A number in the column's own unit.
    Number(f64),
    /// Not measured.
    Absent,
}

const NOT: &[(&str, &str)] = &[];
const OWN: &[(&str, &str)] = &[("*", "the jobs' own clocks and counts")];

macro_rules! define {
    ($id:literal, $title:literal, $unit:literal, $format:expr, $meaning:literal, $sources:expr) => {
        Column { id: $id, title: $title, unit: $unit, format: $format, meaning: $meaning, sources: $sources }
    };
}
use define;

const PARTS: [&[Column]; 4] = [base::COLUMNS, log::COLUMNS, work::COLUMNS, storage::COLUMNS];
const COUNT: usize = PARTS[0].len() + PARTS[1].len() + PARTS[2].len() + PARTS[3].len();

/// The parts one after the other.
const fn joined() -> [Column; COUNT] {
    let mut all = [PARTS[0][0]; COUNT];
    let (mut part, mut next) = (0, 0);
    while part < PARTS.len() {
        let mut i = 0;
        while i < PARTS[part].len() {
            all[next] = PARTS[part][i];
            next += 1;
            i += 1;
        }
        part += 1;
    }
    all
}

/// All columns.
pub static COLUMNS: &[Column] = &joined();

/// Column `id`.
#[must_use]
pub fn column(id: &str) -> Option<&'static Column> {
    COLUMNS.iter().find(|c| c.id == id)
}

impl Column {
    /// This column's cell of `record`.
    #[must_use]
    pub fn cell(&self, record: &TestRecord) -> Cell {
        let text = |t: &str| Cell::Text(t.to_owned());
        match self.id {
            "platform" => text(&record.platform),
            "workload" => text(&record.workload),
            "run" => text(&record.run),
            "test" => Cell::Number(f64::from(record.test)),
            "nodes" => Cell::Number(f64::from(record.nodes)),
            "jobs" => Cell::Number(f64::from(record.jobs)),
            "target" => text(&record.target),
            "driver" => text(record.driver.name()),
            "valid" => text(if record.valid { "true" } else { "false" }),
            "invalid_reason" => record.invalid_reason.as_deref().map_or(Cell::Absent, text),
            "forced" => record.forced.as_deref().map_or(Cell::Absent, text),
            "repetition" => Cell::Number(f64::from(record.repetition)),
            "started_at" => text(&record.started_at),
            "data_source" => record.data_source.as_deref().map_or(Cell::Absent, text),
            id => {
                // What was swept is known, whether or not somebody made a figure of it.
                let swept = || record.parameters.get(id).filter(|_| record.swept.as_deref() == Some(id));
                record.figure(id).or_else(|| swept().map(|v| *v as f64)).map_or(Cell::Absent, Cell::Number)
            }
        }
    }

    /// The cell as people see it.
    #[must_use]
    pub fn shown(&self, record: &TestRecord) -> String {
        match (self.cell(record), self.format) {
            (Cell::Absent, _) => format::ABSENT.to_owned(),
            (Cell::Text(t), Format::YesNo) => if t == "true" { "yes" } else { "NO" }.to_owned(),
            (Cell::Text(t), _) => t,
            (Cell::Number(n), Format::Integer) => format::whole(n),
            (Cell::Number(n), Format::Fixed(d)) => format::number(n, d),
            (Cell::Number(n), Format::NsAsMs) => format::number(n / 1e6, 3),
            (Cell::Number(n), _) => n.to_string(),
        }
    }

    /// The cell as files hold it: full precision, empty when absent.
    #[must_use]
    pub fn plain(&self, record: &TestRecord) -> String {
        match self.cell(record) {
            Cell::Absent => String::new(),
            Cell::Text(t) => t,
            Cell::Number(n) => n.to_string(),
        }
    }

    /// Heading with its unit: `Redo data [MiB/s]`.
    #[must_use]
    pub fn heading(&self) -> String {
        if self.unit.is_empty() { self.title.to_owned() } else { format!("{} [{}]", self.title, self.unit) }
    }

    /// Where the figure comes from on target kind `kind`.
    #[must_use]
    pub fn source(&self, kind: &str) -> Option<&'static str> {
        // A private server is read like any other of its kind.
        let kind = kind.strip_suffix("-temp").unwrap_or(kind);
        let find = |k: &str| self.sources.iter().find(|(s, _)| *s == k).map(|(_, text)| *text);
        find(kind).or_else(|| find("*"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_tables_name_known_columns() {
        for (i, c) in COLUMNS.iter().enumerate() {
            assert!(!COLUMNS[..i].iter().any(|d| d.id == c.id), "{} is defined twice", c.id);
            assert!(c.meaning.ends_with('.'), "{}: the meaning is a sentence", c.id);
        }
        for table in TABLES {
            for id in table.shown.iter().chain(table.also_in_files) {
                assert!(column(id).is_some(), "{} is no column", id);
            }
            let in_files: Vec<_> = table.file_columns().map(|c| c.id).collect();
            for id in table.shown.iter().chain(table.also_in_files) {
                assert_eq!(in_files.iter().filter(|f| f == &id).count(), 1, "{id} stands once in files");
            }
        }
    }

    #[test]
    fn loads_begin_as_their_published_study_does() {
        let published = "platform,workload,run,test,nodes,jobs,threads,rows_per_tx,cpu_busy_pct,rows_per_s,tx_per_s,\
            sql_service_time_s,physical_writes_per_s,physical_written_blocks_per_s,physical_written_mib_per_s,\
            redo_mib_per_s,redo_writes_per_s,redo_write_time_us,redo_syncs,redo_sync_time_us,elapsed_s,\
            target,driver,valid,invalid_reason,errors,";
        let ids: Vec<_> = DATA_LOAD.file_columns().map(|c| c.id).collect();
        assert!(ids.join(",").starts_with(published), "{}", ids.join(","));
    }

    #[test]
    fn every_column_is_in_the_files_of_some_group() {
        for c in COLUMNS {
            assert!(TABLES.iter().any(|t| t.file_columns().any(|f| f.id == c.id)), "{} is in no file", c.id);
        }
    }

    #[test]
    fn every_group_has_its_table() {
        let groups: Vec<_> = TABLES.iter().map(|t| t.group).collect();
        for (i, g) in groups.iter().enumerate() {
            assert!(!groups[..i].contains(g) && Table::of(g).group == *g, "{g}");
        }
        assert_eq!(groups.len(), 8);
    }

    #[test]
    fn file_columns_begin_as_the_published_studies_do() {
        let published = "platform,workload,run,test,nodes,jobs,cpu_busy_pct,cpu_user_pct,cpu_sys_pct,cpu_idle_pct,\
            cpu_iowait_pct,commit_throughput_tps,commit_latency_ms,redo_blocks_per_s,redo_writes_per_s,\
            redo_sync_writes_per_s,redo_mib_per_s,redo_kib_per_tx,log_file_sync_ms,flash_cache_write_pct,elapsed_s,\
            target,driver,valid,invalid_reason,errors,commit_time_ns_p50";
        let ids: Vec<_> = LOG_WRITER.file_columns().map(|c| c.id).collect();
        assert!(ids.join(",").starts_with(published), "{}", ids.join(","));
    }
}
