//! `fjall` and `raft-engine`, with a sync at each commit.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use raft_engine::env::DefaultFileSystem;
use raft_engine::{Config, Engine, LogBatch, ReadableSize};

use crate::harness::{Contender, Job, Outcome};

struct Fjall(Database, Keyspace);

/// fjall: a batch of one insert, durable with fdatasync when `commit` returns.
pub(crate) fn fjall(dir: &Path) -> Outcome<Box<dyn Contender>> {
    // Nothing is flushed to tables within a run: it is the journal that is compared.
    let db = Database::builder(dir).max_journaling_size(8 << 30).open()?;
    let keyspace = db.keyspace("redo", || KeyspaceCreateOptions::default().max_memtable_size(4 << 30))?;
    Ok(Box::new(Fjall(db, keyspace)))
}

impl Contender for Fjall {
    fn jobs(&self, count: usize) -> Outcome<Vec<Job>> {
        let job = |job| {
            let (db, keyspace, key) = (self.0.clone(), self.1.clone(), (job as u64).to_be_bytes());
            Box::new(move |record: &[u8]| {
                let mut batch = db.batch().durability(Some(PersistMode::SyncData));
                batch.insert(&keyspace, key, record);
                Ok(batch.commit()?)
            }) as Job
        };
        Ok((0..count).map(job).collect())
    }
}

struct RaftEngine {
    engine: Arc<Engine<DefaultFileSystem>>,
    written: Arc<AtomicU64>,
    purge: Option<JoinHandle<()>>,
}

/// Tells the purge to end.
const OVER: u64 = u64::MAX;

/// raft-engine as TiKV runs it: log files recycled and written before, synced writes, a thread that
/// purges.
pub(crate) fn raft_engine(dir: &Path) -> Outcome<Box<dyn Contender>> {
    let config = Config {
        dir: dir.display().to_string(),
        target_file_size: ReadableSize::mb(64),
        purge_threshold: ReadableSize::mb(256),
        enable_log_recycle: true,
        prefill_for_recycle: true,
        ..Config::default()
    };
    let engine = Arc::new(Engine::open(config)?);
    let written = Arc::new(AtomicU64::new(0));
    let (its_engine, its_written) = (Arc::clone(&engine), Arc::clone(&written));
    let purge = std::thread::spawn(move || {
        let mut purged = 0;
        loop {
            std::thread::park();
            let written = its_written.load(Ordering::SeqCst);
            if written == OVER {
                return;
            }
            if written - purged >= 32 << 20 {
                purged = written;
                if let Err(e) = its_engine.purge_expired_files() {
                    eprintln!("raft-engine cannot purge its files: {e}");
                    return;
                }
            }
        }
    });
    Ok(Box::new(RaftEngine { engine, written, purge: Some(purge) }))
}

impl Contender for RaftEngine {
    fn jobs(&self, count: usize) -> Outcome<Vec<Job>> {
        let purge = self.purge.as_ref().ok_or("raft-engine was closed")?.thread();
        let job = |job| {
            let (engine, written, purge) = (Arc::clone(&self.engine), Arc::clone(&self.written), purge.clone());
            let mut batch = LogBatch::with_capacity(1);
            Box::new(move |record: &[u8]| {
                // Each job is a Raft group of its own, with one key.
                batch.put(job as u64 + 1, b"redo".to_vec(), record.to_vec())?;
                let bytes = engine.write(&mut batch, true)? as u64;
                let before = written.fetch_add(bytes, Ordering::SeqCst);
                // Once every 32 MiB.
                if before >> 25 != (before + bytes) >> 25 {
                    purge.unpark();
                }
                Ok(())
            }) as Job
        };
        Ok((0..count).map(job).collect())
    }
}

impl Drop for RaftEngine {
    fn drop(&mut self) {
        self.written.store(OVER, Ordering::SeqCst);
        if let Some(purge) = self.purge.take() {
            purge.thread().unpark();
            // If it panicked, it said so.
            let _ = purge.join();
        }
    }
}
