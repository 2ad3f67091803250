//! The roles of [`crate::role`] for SQLite.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use loadline_workload::Commit;

use super::connect::{pragma, set_pragma};
use super::session::{self, SqliteSession};
use super::{KNOWLEDGE, Sqlite, TRANSACTION_BYTES, checkpoint, failed, small_cache_kib};
use crate::data_set::LoadSession;
use crate::dialect::Dialect;
use crate::embedded::{Base, Engine};
use crate::error::TargetError;
use crate::role::{BlockCache, ClientDriver, ClientSession, LogSpace, RunLock};
use crate::work::Work;
use crate::workload_tables::{Kept, LoadedTables, LoadsTables};

impl Engine for Sqlite {
    fn base(&self) -> &Base {
        &self.base
    }

    fn examine(&self) -> Result<BTreeMap<&'static str, String>, TargetError> {
        let db = self.connector.connect(Commit::Wait)?;
        match db.execute_batch("BEGIN IMMEDIATE; ROLLBACK").map_err(failed(&db, "an empty transaction")) {
            Err(TargetError::Refused(held)) => Ok([("writer", held)].into()),
            done => done.map(|()| BTreeMap::new()),
        }
    }

    fn shown_settings(&self) -> Result<BTreeMap<String, String>, TargetError> {
        let db = self.connector.connect(Commit::Wait)?;
        let value = |name: &String| Ok((name.clone(), pragma(&db, name)?));
        let mut settings: BTreeMap<_, _> = KNOWLEDGE.defaults.keys().map(value).collect::<Result<_, TargetError>>()?;
        settings.insert("synchronous".into(), "FULL for commits that wait, NORMAL for those that do not".into());
        settings.insert("busy_handler".into(), session::WAIT_DESCRIPTION.into());
        Ok(settings)
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
        &self.base.loaded
    }

    fn lock_tables(&self) -> Result<RunLock, TargetError> {
        self.base.files.lock().map(RunLock::new)
    }

    /// The log's space is reused after a checkpoint, and each loading transaction is followed by one. A transaction
    /// loads rows, or creates all indexes of a table.
    fn space_for_log(&self, data: u64, indexes: u64) -> Result<LogSpace, TargetError> {
        let given = self.base.settings.value("wal_autocheckpoint");
        let never = given.is_some_and(|pages| pages.parse::<i64>().is_ok_and(|pages| pages <= 0));
        let rows = if never { data } else { data.min(TRANSACTION_BYTES) };
        Ok(LogSpace { bytes: rows.saturating_add(indexes), ..LogSpace::default() })
    }

    fn settled(&self) -> Result<Option<String>, TargetError> {
        let db = self.connector.connect(Commit::Wait)?;
        let blocked = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        let blocked = blocked.map_err(failed(&db, "the checkpoint"))?;
        self.base.counters.data.checkpoints.fetch_add((!blocked).into(), Ordering::Relaxed);
        Ok(blocked
            .then(|| "another program reads the database: its log could not be emptied before the test".to_owned()))
    }

    fn remove(&self, kept: &dyn Fn() -> Result<Kept, TargetError>) -> Result<Vec<String>, TargetError> {
        let _lock = self.base.files.lock()?;
        self.remove_but(kept)
    }
}

impl ClientDriver for Sqlite {
    fn client_session(&self, work: &Work, _job: u32) -> Result<Box<dyn ClientSession>, TargetError> {
        let mut db = self.connector.connect(work.program.commit)?;
        self.ready_cache(&db, work)?;
        let pages = checkpoint::log_pages(work, self.base.facts.block_bytes.unwrap_or_default());
        if let Some(pages) = pages
            && !self.base.settings.is_given("wal_autocheckpoint")
        {
            set_pragma(&db, "wal_autocheckpoint", &pages.to_string())?;
        }
        checkpoint::make_by_length(&mut db, checkpoint::others_write(work), &self.base.counters)?;
        Ok(Box::new(SqliteSession::new(db, work, Arc::clone(&self.base.counters), Arc::clone(&self.base.file))?))
    }
}

impl BlockCache for Sqlite {
    fn set_cache(&self, data_bytes: Option<u64>) -> Result<Option<u64>, TargetError> {
        Ok((!self.base.settings.is_given("cache_size") && data_bytes.is_some())
            .then_some(small_cache_kib(data_bytes.unwrap_or(0)) << 10))
    }

    fn checkpoint(&self) -> Result<(), TargetError> {
        let db = self.connector.connect(Commit::Wait)?;
        checkpoint::make(&db, &self.base.file, &self.base.counters, checkpoint::TIMEOUT)
    }
}
