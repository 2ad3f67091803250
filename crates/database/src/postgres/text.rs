//! Texts of statements in the simple query protocol, as pgbench sends them, and how many transactions they commit: also those that only
//! read, as in `xact_commit`. That follows from the command tags and the state that `ReadyForQuery` says: statements outside a block
//! share one implicit transaction until the text ends or COMMIT does.

use postgres_protocol::message::frontend;

use super::protocol;
use super::wire::Connection;
use crate::error::TargetError;
use crate::role::{Results, TextDone, TextResult};

/// Statements that, outside a block, may commit while they run.
const COMMIT_BY_THEMSELVES: [&str; 11] = [
    "CALL", "DO", "VACUUM", "ANALYZE", "REINDEX", "CLUSTER", "CREATE INDEX", "DROP INDEX", "PREPARE TRANSACTION",
    "COMMIT PREPARED", "ROLLBACK PREPARED",
];

const ONLY_READS: &str = ": scripts may only read, unless --allow-writes is given";

#[derive(Debug, Default)]
struct Commits {
    block: bool,
    /// In the implicit transaction of statements outside a block.
    implicit: bool,
    commits: u64,
    uncertain: Option<String>,
}

impl Commits {
    /// A statement is done; `tag` is empty for an empty text.
    fn tag(&mut self, tag: &str) {
        // `UPDATE 3`, `INSERT 0 3`.
        let name = tag.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
        match name {
            "BEGIN" | "START TRANSACTION" => (self.block, self.implicit) = (true, false),
            // Outside a transaction it warns, and the server counts it.
            "COMMIT" => {
                self.commits += 1;
                (self.block, self.implicit) = (false, false);
            }
            // That to a savepoint has the same tag; then the state at the end says that the block is open.
            "ROLLBACK" => (self.block, self.implicit) = (false, false),
            _ => {
                self.implicit |= !self.block;
                // A session that listens takes each notification in a transaction of its own.
                if name == "LISTEN" || !self.block && COMMIT_BY_THEMSELVES.contains(&name) {
                    self.uncertain.get_or_insert_with(|| name.to_owned());
                }
            }
        }
    }

    /// The text is done, and the server says whether a block is `open`.
    fn end(&mut self, open: bool, failed: bool) {
        if self.implicit && !failed && !open {
            self.commits += 1;
        }
    }
}

/// Sends `text` and reads all results. `reads_only`: the session may not write, and says so if the text wants to.
pub(super) fn send(
    c: &mut Connection,
    text: &str,
    keep: Results,
    reads_only: bool,
    done: &mut TextDone,
) -> Result<(), TargetError> {
    if text.as_bytes().contains(&0) {
        return Err(TargetError::Statement("the statement has a zero byte, which the protocol cannot send".into()));
    }
    let mut count = Commits { block: !c.is_idle(), ..Commits::default() };
    done.results.clear();
    c.is_scripted = true;
    c.put(|out| frontend::query(text, out))?;
    c.send()?;
    let (mut copies, mut current) = (None, TextResult::default());
    let sent = c.until_ready(|tag, body| match tag {
        b'T' if keep != Results::None => current.columns = protocol::names(body),
        b'D' if keep != Results::None => current.rows.push(protocol::texts(body)),
        b'C' | b'I' => {
            count.tag(std::str::from_utf8(body.strip_suffix(&[0]).unwrap_or(body)).unwrap_or_default());
            if keep != Results::None {
                if keep == Results::Last {
                    done.results.clear();
                }
                done.results.push(std::mem::take(&mut current));
            }
        }
        b'G' => copies = Some("COPY FROM STDIN: a script has no rows for it"),
        b'H' => copies = Some("COPY TO STDOUT: scripts do not take its rows"),
        _ => {}
    });
    if sent.as_ref().is_err_and(TargetError::is_lost) {
        return sent;
    }
    done.open = !c.is_idle();
    count.end(done.open, sent.is_err() || copies.is_some());
    (done.commits, done.uncertain) = (count.commits, count.uncertain);
    let is_write = |e: &TargetError| matches!(e, TargetError::Server(refusal) if refusal.code == "25006");
    match copies {
        Some(copy) => Err(TargetError::Statement(copy.into())),
        None if reads_only => sent.map_err(|e| if is_write(&e) { e.with(ONLY_READS) } else { e }),
        None => sent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::cases;

    #[test]
    fn commits_and_what_may_commit_by_itself_follow_from_the_tags() {
        type Case = (bool, Vec<String>, bool, bool, u64, String);
        for (before, tags, after, failed, commits, uncertain) in cases::<Case>("postgres-commits") {
            let mut count = Commits { block: before, ..Commits::default() };
            tags.iter().for_each(|tag| count.tag(tag));
            count.end(after, failed);
            assert_eq!((count.commits, count.uncertain.unwrap_or_default()), (commits, uncertain), "{tags:?}");
        }
    }
}
