//! What a statement does, by its first word: all that a script needs to know of SQL. And what a session does with a message.

/// What a session does with what it was sent.
pub(crate) enum Step {
    /// The message is not whole yet.
    Wait,
    /// It took this many bytes and has answered; `executed`: it was a statement, whose answer takes its time.
    Answered { used: usize, executed: bool },
    /// The session is one for the server behind.
    PassOn,
    /// The client ended it, or does not speak the protocol.
    Close,
}

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    /// Returns rows.
    Returns,
    /// Changes rows; the first word of its tag.
    Changes(&'static str),
    /// Begins a transaction.
    Begins,
    /// Commits it.
    Commits,
    /// Rolls it back.
    RollsBack,
    /// Changes the session.
    Sets,
    /// Nothing: it is empty.
    Nothing,
    /// Something that has no script.
    Unknown,
}

impl Does {
    /// Of `sql`.
    pub(crate) fn of(sql: &[u8]) -> Does {
        let Some(word) = first_word(sql) else { return Does::Unknown };
        let is = |words: &[&str]| words.iter().any(|w| word.eq_ignore_ascii_case(w.as_bytes()));
        match () {
            () if word.is_empty() => Does::Nothing,
            () if is(&["SELECT", "SHOW", "WITH", "VALUES", "TABLE"]) => Does::Returns,
            () if is(&["UPDATE"]) => Does::Changes("UPDATE"),
            () if is(&["INSERT", "REPLACE"]) => Does::Changes("INSERT"),
            () if is(&["DELETE"]) => Does::Changes("DELETE"),
            () if is(&["BEGIN", "START"]) => Does::Begins,
            () if is(&["COMMIT", "END"]) => Does::Commits,
            () if is(&["ROLLBACK", "ABORT"]) => Does::RollsBack,
            () if is(&["SET", "USE", "DISCARD", "RESET"]) => Does::Sets,
            () => Does::Unknown,
        }
    }
}

/// The first word, after blanks, comments and brackets; empty at the end of the text, `None` in a comment without an end.
fn first_word(sql: &[u8]) -> Option<&[u8]> {
    let mut rest = sql;
    loop {
        rest = rest.trim_ascii_start();
        rest = match rest {
            [b'/', b'*', inside @ ..] => {
                let end = inside.windows(2).position(|w| w == b"*/")?;
                inside.get(end + 2..)?
            }
            [b'-', b'-', line @ ..] => {
                line.iter().position(|b| *b == b'\n').and_then(|end| line.get(end..)).unwrap_or(&[])
            }
            [b'(' | b';', after @ ..] => after,
            _ => break,
        };
    }
    let end = rest.iter().position(|b| !b.is_ascii_alphabetic()).unwrap_or(rest.len());
    let word = rest.get(..end)?;
    // A text that begins with something else than a word has none.
    (!word.is_empty() || rest.is_empty()).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_known_by_their_first_word() {
        for (sql, does) in [
            ("SELECT 1", Does::Returns),
            (" /* a */ -- b\n (select 1)", Does::Returns),
            ("update t set n = 1", Does::Changes("UPDATE")),
            ("BEGIN", Does::Begins),
            ("begin;", Does::Begins),
            ("COMMIT", Does::Commits),
            ("SET a = 1", Does::Sets),
            ("", Does::Nothing),
            (" ; ", Does::Nothing),
            ("/* open", Does::Unknown),
            ("SELECTED", Does::Unknown),
            ("COPY t FROM STDIN", Does::Unknown),
            ("1", Does::Unknown),
        ] {
            assert_eq!(Does::of(sql.as_bytes()), does, "{sql}");
        }
    }
}
