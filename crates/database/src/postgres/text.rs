//! Texts of statements in the simple query protocol, as pgbench sends them, and how many transactions they commit.
//!
//! The server counts each transaction that ends in a commit in `xact_commit`, also one that only read. Which there were
//! follows from the command tags and from the state that `ReadyForQuery` says: statements outside a block share one
//! implicit transaction until the text ends or COMMIT does.

use postgres_protocol::message::frontend;

use super::protocol::{self, ServerError};
use super::wire::Connection;
use crate::error::TargetError;
use crate::role::{Results, TextDone, TextResult};

/// Statements that, outside a block, may commit while they run.
const COMMIT_BY_THEMSELVES: [&str; 11] = [
    "CALL", "DO", "VACUUM", "ANALYZE", "REINDEX", "CLUSTER", "CREATE INDEX", "DROP INDEX", "PREPARE TRANSACTION",
    "COMMIT PREPARED", "ROLLBACK PREPARED",
];

/// Counts the commits of a text from its command tags.
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
    c.put(|out| frontend::query(text, out))?;
    c.send()?;
    let (mut error, mut current) = (None, TextResult::default());
    loop {
        let incoming = c.next()?;
        let body = c.body(incoming);
        match incoming.tag {
            b'Z' => {
                c.ready(incoming);
                break;
            }
            b'E' => {
                let failed = ServerError::parse(body);
                let mut e = if failed.is_fatal() { c.server_error(incoming)? } else { failed.failure() };
                if reads_only && failed.code == "25006" {
                    e = e.with(": scripts may only read, unless --allow-writes is given");
                }
                error.get_or_insert(e);
            }
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
            // COPY FROM STDIN waits for rows.
            b'G' => {
                error.get_or_insert_with(|| {
                    TargetError::Statement("COPY FROM STDIN: a script has no rows for it".into())
                });
                c.put(|out| frontend::copy_fail("a script has no rows", out))?;
                c.send()?;
            }
            b'H' => {
                error.get_or_insert_with(|| {
                    TargetError::Statement("COPY TO STDOUT: scripts do not take its rows".into())
                });
            }
            _ => {}
        }
    }
    done.open = !c.is_idle();
    count.end(done.open, error.is_some());
    done.commits = count.commits;
    done.uncertain = count.uncertain;
    error.map_or(Ok(()), Err)
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
