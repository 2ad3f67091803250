//! The roles of [`crate::role`] for SQLite.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loadline_model::manifest::TargetInfo;
use loadline_model::{Column, Finding, Severity, column};
use loadline_workload::Commit;
use rusqlite::ErrorCode;

use super::connect::{pragma, set_pragma};
use super::knowledge::KNOWLEDGE;
use super::session::{self, SqliteSession};
use super::{KIND, PAGE_SIZE, Sqlite, TRANSACTION_BYTES, checkpoint, failed, files, small_cache_kib};
use crate::data_set::LoadSession;
use crate::dialect::Dialect;
use crate::error::TargetError;
use crate::facts::Facts;
use crate::file_counters::FileObserver;
use crate::role::{
    BlockCache, Checkpoints, ClientDriver, ClientSession, Doctor, LogSpace, Observation, Observer, Queries, RunLock,
};
use crate::target::{Abilities, Target};
use crate::work::Work;
use crate::workload_tables::{Kept, LoadedTables, LoadsTables};

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
        Ok(TargetInfo { settings, notes, ..self.connector.files.info(KIND.product, rusqlite::version()) })
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

impl LoadsTables for Sqlite {
    const ONE_WRITER: bool = true;

    fn dialect(&self) -> &'static Dialect {
        &KNOWLEDGE.dialect
    }

    fn load_session(&self) -> Result<Box<dyn LoadSession + '_>, TargetError> {
        Ok(Box::new(self.connector.connect(Commit::Nowait)?))
    }

    fn loaded(&self) -> &LoadedTables {
        &self.loaded
    }

    fn lock_tables(&self) -> Result<RunLock, TargetError> {
        self.connector.files.lock().map(RunLock::new)
    }

    /// The log's space is reused after a checkpoint, and each loading transaction is followed by one. A transaction
    /// loads rows, or creates all indexes of a table.
    fn space_for_log(&self, data: u64, indexes: u64) -> Result<LogSpace, TargetError> {
        let given = self.connector.settings.iter().find(|(name, _)| *name == "wal_autocheckpoint");
        let never = given.is_some_and(|(_, pages)| pages.parse::<i64>().is_ok_and(|pages| pages <= 0));
        let rows = if never { data } else { data.min(TRANSACTION_BYTES) };
        Ok(LogSpace { bytes: rows.saturating_add(indexes), ..LogSpace::default() })
    }

    fn settled(&self) -> Result<Option<String>, TargetError> {
        let db = self.connector.connect(Commit::Wait)?;
        let blocked = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        let blocked = blocked.map_err(failed(&db, "the checkpoint"))?;
        self.counters.data.checkpoints.fetch_add((!blocked).into(), Ordering::Relaxed);
        Ok(blocked
            .then(|| "another program reads the database: its log could not be emptied before the test".to_owned()))
    }

    fn remove(&self, kept: &dyn Fn() -> Result<Kept, TargetError>) -> Result<Vec<String>, TargetError> {
        let lock = self.connector.files.lock()?;
        let kept: Vec<String> = kept()?.iter().map(|stem| self.dialect().plain_name(stem)).collect();
        if !kept.is_empty() {
            let removed = self.with_loader(|loader| loader.drop_tables(|name| !kept.iter().any(|k| k == name)))?;
            return Ok(removed.into_iter().map(|name| format!("table {name}")).collect());
        }
        let removed = self.connector.files.remove()?;
        drop(lock);
        Ok(removed)
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
        out.push(self.connector.files.filesystem());
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
        Ok(Box::new(FileObserver { counters: Arc::clone(&self.counters), page_size: self.page_size }))
    }

    fn evidence(&self, work: &Work) -> Result<Option<i64>, TargetError> {
        self.evidence_query(work)
    }

    fn absent_columns(&self) -> Vec<(&'static Column, String)> {
        let why = |what: &str| format!("SQLite does not count {what}");
        const NO_UNDO: &str = "SQLite keeps no undo: its log holds the new pages, and the database the old ones";
        vec![
            (column::COMMITS_DATABASE, why("its commits; the rows changed are counted instead")),
            (column::UNDO_KIB_PER_TX, NO_UNDO.to_owned()),
            (column::OLD_ROWS_PER_TX, NO_UNDO.to_owned()),
        ]
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
