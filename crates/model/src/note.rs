//! Notes of a test for its reader. A note is a value with its data, stored by its name; its text is made where it is printed.

use std::fmt;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};

use crate::check::CheckId;
use crate::format::{bytes, counted, number};

/// Declares each note once: its data and its text.
macro_rules! notes {
    ($($(#[doc = $when:literal])* $note:ident { $($field:ident: $of:ty),* } $text:expr;)+) => {
        /// Notes on a test beside its figures and checks. Units are in the names of the fields.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "note", rename_all = "kebab-case")]
        pub enum Note {
            $($(#[doc = $when])* $note { $($field: $of),* },)+
            /// A text of another tool, or of a record of an older version, which stored notes as texts.
            #[serde(untagged)]
            Text(String),
        }

        impl fmt::Display for Note {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Note::$note { $($field),* } => f.write_str(AsRef::<str>::as_ref(&$text)),)+
                    Note::Text(text) => f.write_str(text),
                }
            }
        }
    };
}

notes! {
    ScriptCommits { commits: f64 } format!(
        "a transaction is one execution of a pgbench script, from its first command to its end; the mean one committed {} times",
        number(*commits, 2)
    );
    FewCommitsTimed { timed: u64, transactions: u64 } format!(
        "commit times (including the longest) are from {timed} of the {transactions} transactions: timing the commit of a \
         single-statement transaction costs the client an extra wake-up"
    );
    NotRead { problem: String } problem;
    WindowRepeated { by: CheckId, pct: f64, tx_per_s: f64 } format!(
        "others disturbed a window before this one, of the same jobs, which went on running ({by}: {} %; {} transactions per second)",
        number(*pct, 0),
        number(*tx_per_s, 1)
    );
    ReadLate { off_s: f64, window_s: f64 } format!(
        "the database's counters were read {off_s:.2} s after window start and window end (sum), when the last job had passed them: \
         figures from them may be off by up to {:.0} %; use a longer window",
        off_s / window_s * 100.0
    );
    CountsLate {}
        "the server counts late: its counters are those of the whole test, with warm-up, at the rate of the window";
    Checkpoints { made: f64 }
        format!("the database made {made:.0} checkpoints in the window: their writes are part of the figures");
    MoreCheckpoints { more: f64 } format!(
        "the database made {more:.0} more checkpoints in the window: they count as outside the checkpoint that loadline requested"
    );
    NewLogFiles { pct: f64 } format!(
        "sessions made new files of the log in {pct:.0} % of the jobs' time: a server that has run for a while uses old ones again, \
         as the next tests of this run do"
    );
    LogSyncSampled { samples: u32 }
        format!("log file sync is estimated from {samples} samples of the sessions' wait events");
    BufferWaitsSampled { samples: u32, with_log: bool } format!(
        "buffer waits are estimated from {samples} samples of the sessions' wait events{}",
        if *with_log { ", including waits for the log, because no commit waits for it" } else { "" }
    );
    ReadsTimedByTransactions { blocks_per_tx: f64, mean_is_counted: bool } format!(
        "median, p99 and share of reads are computed from transaction times, with {blocks_per_tx:.2} blocks read per transaction; {}",
        if *mean_is_counted { "the mean is the database's own" } else { "so is the mean" }
    );
    GrowthIsWritten { how: String } how;
    CachedAtMost { bound: String } bound;
    NotKeptOut { why: String } format!("the data files were not kept out of the page cache: {why}");
    StayedCached { left_bytes: u64, bytes: u64, files: u64 } format!(
        "{} of {} in {files} data files stayed in the page cache when it was emptied",
        self::bytes(*left_bytes as f64),
        self::bytes(*bytes as f64)
    );
    HashedPart { read_bytes: u64, bytes: u64 } format!(
        "identical blocks were counted in {} of the {} of data and log files: at most 64 MiB of each, those that were changed last first",
        self::bytes(*read_bytes as f64),
        self::bytes(*bytes as f64)
    );
    KeptOut {
        only_written: bool,
        passes: u64,
        files: u64,
        longest_ms: f64,
        cpu_pct: f64,
        unreadable: u64,
        beyond_limit: u64
    } format!(
        "{}changed blocks were written to the device at once, by at least {passes} passes over {files} data files during the test \
         (the longest took {longest_ms:.0} ms), at a cost of {cpu_pct:.1} % of a CPU{}",
        if *only_written { "" } else { "what was read was dropped from the operating system's page cache, and " },
        missed_files(*unreadable, *beyond_limit)
    );
    DeviceReadMore { ratio: f64 } format!(
        "the data device read {ratio:.1} bytes for each byte that the database read: others use the device, or what the operating \
         system reads ahead is dropped from its cache before it is used, which costs throughput; with a --size of 512MiB or more it \
         stays until then"
    );
    DeviceReadOften { ratio: f64 } format!(
        "the data device made {ratio:.1} reads for each read of the database: others use the device, which weakens the proof that \
         reads came from it, or the operating system reads ahead"
    );
    OtherIoUnread { process: String, cpu_pct: f64 } format!(
        "Other I/O: leaves out the I/O of '{process}', which this machine shows to nobody; it and what it waited for had {cpu_pct:.0} % \
         of a CPU"
    );
    LimitLeavesOut { parts: Vec<String> }
        format!("the limit leaves out what cannot be measured from here: {}", parts.join("; "));
    Outliers { outliers: u64, samples: u64 } format!(
        "{outliers} of {samples} samples are outliers and excluded: their redo differs from that of their size (a checkpoint or \
         another session)"
    );
    SizesByRedo { statements_per_row: f64 } format!(
        "sizes are measured by the target's redo counter; a transaction changes as many rows as its size needs, with \
         {statements_per_row:.0} statement per row"
    );
    OwnRate { given_tps: f64, parameter: String, value: i64 } format!(
        "the rate of {given_tps} per second does not apply to this workload, which has its own: {parameter} = {value}"
    );
    MostWorkers { workers: u32, because: String } format!(
        "the maximum is {workers} parallel processes per query on this server ({because}): a sweep over workers ends there"
    );
    LongerWindow { window_s: f64, planned_s: f64 }
        format!("the window is {window_s:.1} s instead of {planned_s} s, because transactions are long");
    FewTransactions { transactions: f64, error_pct: f64 } format!(
        "{transactions:.0} transactions completed in the window: rates are accurate to about {error_pct:.0} %; use a longer \
         window (--duration)"
    );
    DisturbedLooks { disturbed: usize, windows: usize } format!(
        "others disturbed {disturbed} of the {windows} windows in which the highest rate was searched: it may be too low, and its \
         interval too wide"
    );
    ObjectiveMissed { of: String, ms: f64, objective_ms: f64 } format!(
        "{of} of this window is {} ms, above the {objective_ms} ms asked for: the highest rate is an estimate, which about half of all \
         windows at it miss; rate_low_tps is on the safe side",
        number(*ms, 3)
    );
    UnboundedRate {} "the looks do not bound the highest rate, so it says little: use a longer window (--duration)";
    NoNativeReport { test: u32, why: String } format!("the database's own report of test {test} is missing: {why}");
    Unsettled { why: String } why;
    NodesLost { lost: String } lost;
    SettingsChanged { changes: String } format!("settings have changed since the run began: {changes}");
    /// Fate of the sessions of a lost agent: so many were ended; `None` if they are unknown, or could not be ended for what
    /// `failed` says.
    LostAgent { agent: String, host: String, ended: Option<u64>, failed: Option<String> }
        lost_agent(&format!("agent {agent} on {host}"), *ended, failed.as_deref());
}

fn lost_agent(who: &str, ended: Option<u64>, failed: Option<&str>) -> String {
    match (failed, ended) {
        (Some(why), _) => format!("the sessions that {who} left on the database could not be ended: {why}"),
        (None, None) => format!("the sessions that {who} left are unknown: they end with its process or its lease"),
        (None, Some(0)) => format!("{who} left no sessions on the database"),
        (None, Some(n)) => format!("ended {} that {who} left on the database", counted(n as usize, "session")),
    }
}

/// Files whose blocks may stay in the page cache, and why.
fn missed_files(unreadable: u64, beyond_limit: u64) -> String {
    let mut out = String::new();
    if unreadable > 0 {
        out += &format!("; {unreadable} more could not be opened by this user");
    }
    if beyond_limit > 0 {
        out += &format!(
            "; {beyond_limit} more, the smallest, exceed the number of files that loadline may open (half of ulimit -n)"
        );
    }
    out
}

impl From<String> for Note {
    fn from(text: String) -> Note {
        Note::Text(text)
    }
}

impl From<&str> for Note {
    fn from(text: &str) -> Note {
        Note::Text(text.to_owned())
    }
}

/// Reads notes; of one that only another version makes it is said that there was one.
pub(crate) fn known_notes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Note>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Known(Note),
        Other(IgnoredAny),
    }
    let read = |stored| match stored {
        Stored::Known(note) => note,
        Stored::Other(_) => Note::from("a note that only another version of loadline can read"),
    };
    Ok(Vec::deserialize(deserializer)?.into_iter().map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::TestRecord;

    #[test]
    fn notes_are_read_as_values_or_as_the_texts_of_older_versions() {
        let read = |stored: &str| {
            let mut json = serde_json::to_value(TestRecord::blank("X")).unwrap();
            json["notes"] = serde_json::from_str(stored).unwrap();
            serde_json::from_value::<TestRecord>(json).unwrap().notes
        };
        let longer = Note::LongerWindow { window_s: 12.5, planned_s: 5.0 };
        let stored = r#"["a text", {"note":"counts-late"}, {"note":"longer-window","window_s":12.5,"planned_s":5.0}, {"note":"of-the-future","x":1}]"#;
        let notes = read(stored);
        let future = "a note that only another version of loadline can read";
        assert_eq!(notes, ["a text".into(), Note::CountsLate {}, longer.clone(), future.into()]);
        assert_eq!(read(&serde_json::to_string(&notes).unwrap()), notes);
        assert_eq!(longer.to_string(), "the window is 12.5 s instead of 5 s, because transactions are long");
    }

    #[test]
    fn missed_files_are_named_with_the_reason() {
        let (longest_ms, cpu_pct) = (1.0, 1.0);
        let missed = |unreadable, beyond_limit| {
            let only_written = true;
            Note::KeptOut { only_written, passes: 1, files: 1, longest_ms, cpu_pct, unreadable, beyond_limit }
                .to_string()
        };
        let none = missed(0, 0);
        assert!(none.starts_with("changed blocks") && none.ends_with("1.0 % of a CPU"), "{none}");
        let beyond = missed(0, 3);
        assert!(beyond.contains("ulimit -n") && !beyond.contains("user"), "{beyond}");
        assert!(missed(2, 0).contains("2 more could not be opened by this user"));
    }
}
