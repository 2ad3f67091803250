//! What a statement does, by its first word: all that a script needs to know of SQL.

/// What a statement does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    /// Returns rows.
    Returns,
    /// Changes a row; the tag of its answer.
    Changes(&'static str),
    /// Begins a transaction.
    Begins,
    /// Commits it or rolls it back; the tag of its answer.
    Ends(&'static str),
    /// Changes the session.
    Sets,
    /// Nothing: it is empty.
    Nothing,
    /// Something that has no script.
    Unknown,
}

impl Does {
    /// Of `sql`.
    pub(super) fn of(sql: &[u8]) -> Does {
        let Some(word) = first_word(sql) else { return Does::Unknown };
        let is = |words: &[&str]| words.iter().any(|w| word.eq_ignore_ascii_case(w.as_bytes()));
        match () {
            () if word.is_empty() => Does::Nothing,
            () if is(&["SELECT", "SHOW", "WITH", "VALUES", "TABLE"]) => Does::Returns,
            () if is(&["UPDATE"]) => Does::Changes("UPDATE 1"),
            () if is(&["INSERT"]) => Does::Changes("INSERT 0 1"),
            () if is(&["DELETE"]) => Does::Changes("DELETE 1"),
            () if is(&["BEGIN", "START"]) => Does::Begins,
            () if is(&["COMMIT", "END"]) => Does::Ends("COMMIT"),
            () if is(&["ROLLBACK", "ABORT"]) => Does::Ends("ROLLBACK"),
            () if is(&["SET", "DISCARD", "RESET"]) => Does::Sets,
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
            ("update t set n = 1", Does::Changes("UPDATE 1")),
            ("BEGIN", Does::Begins),
            ("begin;", Does::Begins),
            ("COMMIT", Does::Ends("COMMIT")),
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
