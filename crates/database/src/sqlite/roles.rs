//! The roles of [`crate::role`] for SQLite.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loadline_model::manifest::TargetInfo;
use loadline_model::{Column, Driver, Finding, Severity, column};
use loadline_workload::{Commit, RowCount};
use rusqlite::ErrorCode;

use super::connect::{pragma, set_pragma};
use super::loading::{self, create_table, table_name};
use super::session::{self, SqliteSession};
use super::{KIND, LogObserver, PAGE_SIZE, Sqlite, TRANSACTION_BYTES, checkpoint, failed, files, small_cache_kib};
use crate::data_set::{self, LoadProgress, Loader};
use crate::error::TargetError;
use crate::facts::Facts;
use crate::loading::table_stem;
use crate::number::Number;
use crate::role::{
    Administration, BlockCache, Checkpoints, ClientDriver, ClientSession, Doctor, LogSpace, Observation, Observer,
    Queries, RunLock,
};
use crate::target::{Abilities, Target};
use crate::work::Work;
use crate::workload_tables::{LoadedTables, LoadsTables, workload_tables};

impl Target for Sqlite {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn info(&self) -> Result<TargetInfo, TargetError> {
        let db = self.connector.connect(Commit::Wait)?;
        let mut settings = std::collections::BTreeMap::new();
        let stated = ["page_size", "journal_mode", "wal_autocheckpoint", "cache_size", "mmap_size", "locking_mode"];
        // Also where large sorts and groupings are stored, and how many helper threads a sort has.
        for name in stated.into_iter().chain(["temp_store", "threads"]) {
            settings.insert(name.to_owned(), pragma(&db, name)?);
        }
        settings.insert("synchronous".into(), "FULL for commits that wait, NORMAL for those that do not".into());
        settings.insert("busy_handler".into(), session::WAIT_DESCRIPTION.into());
        let directory = self.connector.files.directory().display().to_string();
        let mut notes = vec![
            "SQLite has one writer at a time: jobs wait for each other, and this wait is part of their transaction time"
                .to_owned(),
        ];
        if !self.log_given {
            notes.push(checkpoint::NOTE.to_owned());
        }
        if self.page_size == PAGE_SIZE {
            notes.push("pages of 1 KiB instead of SQLite's usual 4 KiB, so that LGWR-LAT1 logs 1–2 KiB; --setting page_size=4096 changes it".into());
        }
        Ok(TargetInfo {
            in_process: true,
            kind: "sqlite".into(),
            product: KIND.product.into(),
            version: rusqlite::version().into(),
            url: self.connector.files.url(),
            nodes: 1,
            local: true,
            settings,
            log_dir: Some(directory.clone()),
            data_dir: Some(directory),
            notes,
            ..TargetInfo::default()
        })
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities {
            queries: Some(self),
            data_set: Some(self),
            block_cache: Some(self),
            checkpoints: Some(self),
            statistics_views: Some(self),
            ..Abilities::default()
        }
    }
}

impl Administration for Sqlite {
    fn lock(&self) -> Result<RunLock, TargetError> {
        self.connector.files.lock().map(RunLock::new)
    }

    fn create(&self, work: &Work) -> Result<(), TargetError> {
        let db = self.connector.connect(Commit::Nowait)?;
        self.loaded.forget(work);
        for table in workload_tables(work) {
            let drop = format!("DROP TABLE IF EXISTS {}; ", table_name(work, &table.name));
            db.execute_batch(&format!("{drop}{}", create_table(work, table)))
                .map_err(failed(&db, "creating the tables"))?;
        }
        Ok(())
    }

    fn load_watched(&self, work: &Work, jobs: u32, progress: &LoadProgress) -> Result<(), TargetError> {
        self.load_missing(work, jobs, progress)
    }

    /// The log's space is reused after a checkpoint, and each loading transaction is followed by one. A transaction
    /// loads rows, or creates all indexes of a table.
    fn log_space(&self, data: u64, indexes: u64) -> Result<LogSpace, TargetError> {
        let given = self.connector.settings.iter().find(|(name, _)| *name == "wal_autocheckpoint");
        let never = given.is_some_and(|(_, pages)| pages.parse::<i64>().is_ok_and(|pages| pages <= 0));
        let rows = if never { data } else { data.min(TRANSACTION_BYTES) };
        Ok(LogSpace { bytes: rows.saturating_add(indexes), ..LogSpace::default() })
    }

    fn reset(&self, work: &Work, _: Driver) -> Result<(), TargetError> {
        let db = self.connector.connect(Commit::Nowait)?;
        for table in work.workload.tables.iter().filter(|t| t.rows == RowCount::Empty) {
            db.execute_batch(&format!("DELETE FROM {}", table_name(work, &table.name)))
                .map_err(failed(&db, "emptying a table"))?;
        }
        Ok(())
    }

    fn settle(&self) -> Result<Option<String>, TargetError> {
        let db = self.connector.connect(Commit::Wait)?;
        let blocked = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        let blocked = blocked.map_err(failed(&db, "the checkpoint"))?;
        self.counters.data.checkpoints.fetch_add((!blocked).into(), Ordering::Relaxed);
        Ok(blocked
            .then(|| "another program reads the database: its log could not be emptied before the test".to_owned()))
    }

    fn drop_tables(&self, work: &Work) -> Result<(), TargetError> {
        self.loaded.forget(work);
        let stems: Vec<String> = workload_tables(work).map(|t| table_stem(work, &t.name)).collect();
        loading::drop_tables(&mut self.loader()?, |name| stems.iter().any(|s| s == name)).map(drop)
    }

    fn clean(&self) -> Result<Vec<String>, TargetError> {
        let lock = self.connector.files.lock()?;
        let removed = self.connector.files.remove()?;
        drop(lock);
        Ok(removed)
    }

    fn clean_after_run(&self, keep_data: bool) -> Result<Vec<String>, TargetError> {
        let lock = self.connector.files.lock()?;
        let mut loader = self.loader()?;
        let kept = data_set::kept(&mut loader, keep_data)?;
        if kept.is_empty() {
            drop((loader, lock));
            return self.clean();
        }
        loading::drop_tables(&mut loader, |name| !kept.contains(name))
    }
}

impl Doctor for Sqlite {
    fn doctor(&self) -> Result<Vec<Finding>, TargetError> {
        let db = self.connector.connect(Commit::Wait)?;
        let mut out = vec![
            Finding::new("version", Severity::Ok, "version", rusqlite::version(), ""),
            Finding::new("journal-mode", Severity::Ok, "journal_mode", pragma(&db, "journal_mode")?, ""),
            Finding::new("synchronous", Severity::Ok, "synchronous", "FULL for commits that wait", ""),
        ];
        let (severity, advice) = if self.page_size == 1024 {
            (Severity::Ok, "")
        } else {
            (
                Severity::Warning,
                "SQLite logs whole pages: LGWR-LAT1 needs pages of at most 1024 bytes and is invalid with larger ones",
            )
        };
        out.push(Finding::new("page-size", severity, "page_size", self.page_size.to_string(), advice));
        match db.execute_batch("BEGIN IMMEDIATE; ROLLBACK") {
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {
                let why = files::held_by_others(&db).to_string();
                out.push(Finding::new("writer", Severity::Impossible, "writer", "locked", why));
            }
            done => done.map_err(failed(&db, "an empty transaction"))?,
        }
        out.push(files::filesystem(self.connector.files.directory()));
        Ok(out)
    }
}

impl ClientDriver for Sqlite {
    fn client_session(&self, work: &Work, _job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        let mut db = self.connector.connect(work.program.commit)?;
        self.ready_cache(&db, work)?;
        if let Some(pages) = checkpoint::log_pages(work, self.page_size).filter(|_| !self.log_given) {
            set_pragma(&db, "wal_autocheckpoint", &pages.to_string())?;
        }
        checkpoint::make_by_length(&mut db, checkpoint::others_write(work), &self.counters)?;
        Ok(Box::new(SqliteSession::new(db, work, Arc::clone(&self.counters), Arc::clone(&self.file))?))
    }
}

impl Observation for Sqlite {
    fn observer(&self) -> Result<Box<dyn Observer>, TargetError> {
        Ok(Box::new(LogObserver { counters: Arc::clone(&self.counters), page_size: self.page_size }))
    }

    fn evidence(&self, work: &Work) -> Result<Option<i64>, TargetError> {
        self.evidence_query(work)
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        let why = |what: &str| format!("SQLite does not count {what}");
        vec![(column::COMMITS_DATABASE, why("its commits; the rows changed are counted instead"))]
    }
}

impl Queries for Sqlite {
    fn number(&self, work: &Work, query: &str) -> Result<Number, TargetError> {
        let sql = work.query(query, |table| table_name(work, table))?;
        let db = self.connector.connect(Commit::Wait)?;
        Ok(Number::new(db.query_row(&sql, [], |r| r.get(0)).map_err(failed(&db, "a query"))?))
    }

    fn table_bytes(&self, work: &Work, table: &str) -> Result<Option<u64>, TargetError> {
        let name = format!("loadline_{}", table_stem(work, table));
        let db = self.connector.connect(Commit::Wait)?;
        let bytes: Option<i64> = db
            .query_row("SELECT SUM(pgsize) FROM dbstat WHERE name = ?1", [name], |r| r.get(0))
            .map_err(failed(&db, "the query for a table's size"))?;
        Ok(bytes.map(|b| b as u64))
    }
}

impl LoadsTables for Sqlite {
    const ONE_WRITER: bool = true;

    fn open_loader(&self) -> Result<Box<dyn Loader + '_>, TargetError> {
        Ok(Box::new(self.loader()?))
    }

    fn loaded(&self) -> &LoadedTables {
        &self.loaded
    }
}

impl BlockCache for Sqlite {
    fn set_cache(&self, data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        Ok((!self.cache_given && data_bytes.is_some()).then_some(small_cache_kib(data_bytes.unwrap_or(0)) << 10))
    }
}

impl Checkpoints for Sqlite {
    fn checkpoint(&self) -> Result<(), TargetError> {
        checkpoint::make(&self.connector.connect(Commit::Wait)?, &self.file, &self.counters, checkpoint::TIMEOUT)
    }
}
