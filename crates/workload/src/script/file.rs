//! A script as commands. Source: PostgreSQL 15, `ParseScript` and `process_backslash_command` of
//! `src/bin/pgbench/pgbench.c`.

use crate::script::expression::Expression;
use crate::script::parse::expression;
use crate::script::split::{Ending, statement};
use crate::script::value::{Value, is_name, is_name_char};
use crate::source::UserError;

/// Which results of a statement become variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gather {
    /// `\gset`: the last result, of exactly one row; each column is a variable with this prefix.
    Last(String),
    /// `\aset`: of each statement joined by `\;` the last row, if it has any.
    All(String),
}

impl Gather {
    /// Whether every result of the statement is kept, not only the last.
    pub fn all(&self) -> bool {
        matches!(self, Self::All(_))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    Statement {
        sql: String,
        gather: Option<Gather>,
    },
    Set(String, Expression),
    /// A length, and nanoseconds per unit.
    Sleep(Expression, u64),
    /// Goes on at the index unless the condition holds.
    Unless(Expression, usize),
    Goto(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    pub(crate) name: String,
    pub(crate) commands: Vec<Command>,
    /// The byte of the text at which each of them begins.
    begins: Vec<usize>,
    text: String,
}

/// An `\if` that is still open: the condition's command, the jumps to its end, where it began. No condition is left once ELSE came.
struct Open {
    unless: Option<usize>,
    ends: Vec<usize>,
    at: usize,
}

impl Script {
    /// Reads a script; `name` is for messages.
    pub fn read(name: &str, text: &str) -> Result<Self, UserError> {
        let failed = |(at, what): (usize, String)| UserError::at(name, text, at, what);
        let mut reader = Reader::default();
        let (mut begins, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let begin = at + blank(&text[at..]);
            let (sql, length, ending) = statement(&text[at..])
                .map_err(|n| failed((at + n, "a quote or comment that begins here never ends".to_owned())))?;
            at += length;
            if !sql.is_empty() {
                reader.commands.push(Command::Statement { sql, gather: None });
                reader.after_statement = true;
                begins.push(begin);
            }
            if ending == Ending::Backslash {
                let end = line_end(text, at);
                reader.meta(at, &text[at + 1..end]).map_err(failed)?;
                reader.after_statement = false;
                begins.resize(reader.commands.len(), at);
                at = end;
            }
        }
        if let Some(open) = reader.open.last() {
            return Err(failed((open.at, "\\if without \\endif".to_owned())));
        }
        if reader.commands.is_empty() {
            return Err(failed((0, "the script has no command".to_owned())));
        }
        Ok(Self { name: name.to_owned(), commands: reader.commands, begins, text: text.to_owned() })
    }

    /// `file:line:column` at which its command number `index` begins; the first place for one that it does not have.
    pub(crate) fn place(&self, index: usize) -> String {
        let UserError { file, line, column, .. } =
            UserError::at(&self.name, &self.text, self.begins.get(index).copied().unwrap_or_default(), "");
        format!("{file}:{line}:{column}")
    }

    /// Whether a statement or an expression uses the variable `name`.
    pub(crate) fn uses(&self, name: &str) -> bool {
        let in_text = |sql: &str| {
            sql.match_indices(&format!(":{name}")).any(|(at, found)| {
                let ends = !sql[at + found.len()..].starts_with(is_name_char);
                ends && !sql[..at].ends_with(':')
            })
        };
        self.commands.iter().any(|command| match command {
            Command::Statement { sql, .. } => in_text(sql),
            Command::Set(_, of) | Command::Unless(of, _) | Command::Sleep(of, _) => of.uses(name),
            Command::Goto(_) => false,
        })
    }
}

/// The bytes of blanks and line comments at the start of `text`.
fn blank(text: &str) -> usize {
    let mut rest = text.trim_start();
    while rest.starts_with("--") {
        rest = rest.find('\n').map_or("", |end| &rest[end..]).trim_start();
    }
    text.len() - rest.len()
}

/// The end of the line of a meta command; a backslash at its end continues it.
fn line_end(text: &str, at: usize) -> usize {
    let mut from = at;
    while let Some(n) = text[from..].find('\n') {
        let end = from + n;
        if !text[at..end].trim_end_matches('\r').ends_with('\\') {
            return end;
        }
        from = end + 1;
    }
    text.len()
}

#[derive(Default)]
struct Reader {
    commands: Vec<Command>,
    open: Vec<Open>,
    /// Whether the last command is a statement, and not one of another kind, such as `\endif`.
    after_statement: bool,
}

impl Reader {
    /// A meta command: `line` is what follows the backslash at byte `at`.
    fn meta(&mut self, at: usize, line: &str) -> Result<(), (usize, String)> {
        let word = line.split(|c: char| c.is_ascii_whitespace()).next().unwrap_or_default();
        let rest = &line[word.len()..];
        let word = &*word.to_ascii_lowercase();
        let start = at + 1 + word.len();
        let parsed = |text: &str, from: usize| {
            if text.trim().is_empty() {
                return Err((at, format!("\\{word} needs an expression")));
            }
            expression(text).map_err(|(n, what)| (from + n, what))
        };
        match word {
            "set" => {
                let blank = rest.len() - rest.trim_start().len();
                let name = rest.split_ascii_whitespace().next().unwrap_or_default();
                if !is_name(name) {
                    return Err((start + blank, format!("\\set needs a variable's name, not {name:?}")));
                }
                let skipped = blank + name.len();
                let value = parsed(&rest[skipped..], start + skipped)?;
                self.commands.push(Command::Set(name.to_owned(), value));
            }
            "sleep" => self.commands.push(sleep(rest).map_err(|what| (at, what))?),
            "gset" | "aset" => {
                let prefix = rest.trim();
                if !prefix.is_empty() && !is_name(prefix) {
                    return Err((start, format!("\\{word} takes a prefix of names, not {prefix:?}")));
                }
                let gathers = if word == "gset" { Gather::Last } else { Gather::All };
                match self.commands.last_mut() {
                    Some(Command::Statement { gather, .. }) if self.after_statement => {
                        *gather = Some(gathers(prefix.to_owned()));
                    }
                    _ => return Err((at, format!("\\{word} must follow a statement"))),
                }
            }
            "if" | "elif" => {
                let condition = parsed(rest, start)?;
                if word == "if" {
                    self.open.push(Open { unless: None, ends: Vec::new(), at });
                } else {
                    self.branch(at, word)?;
                }
                if let Some(open) = self.open.last_mut() {
                    open.unless = Some(self.commands.len());
                }
                self.commands.push(Command::Unless(condition, 0));
            }
            "else" | "endif" if !rest.trim().is_empty() => {
                return Err((at, format!("\\{word} takes no argument, not {:?}", rest.trim())));
            }
            "else" => self.branch(at, word)?,
            "endif" => {
                let open = self.open.pop().ok_or_else(|| (at, "\\endif without \\if".to_owned()))?;
                let here = self.commands.len();
                open.ends.into_iter().chain(open.unless).for_each(|jump| self.lead(jump, here));
            }
            _ => return Err((at, refused(word))),
        }
        Ok(())
    }

    /// Ends a branch: it goes to the end, and a condition that does not hold comes here.
    fn branch(&mut self, at: usize, word: &str) -> Result<(), (usize, String)> {
        let end = self.commands.len();
        let open = self.open.last_mut().ok_or_else(|| (at, format!("\\{word} without \\if")))?;
        let unless = open.unless.take().ok_or_else(|| (at, format!("\\{word} after \\else")))?;
        open.ends.push(end);
        self.commands.push(Command::Goto(0));
        self.lead(unless, end + 1);
        Ok(())
    }

    fn lead(&mut self, jump: usize, here: usize) {
        if let Some(Command::Unless(_, to) | Command::Goto(to)) = self.commands.get_mut(jump) {
            *to = here;
        }
    }
}

fn refused(word: &str) -> String {
    match word {
        "shell" | "setshell" => {
            format!("\\{word} is refused: a program started in a transaction would be timed as the database")
        }
        "startpipeline" | "endpipeline" | "syncpipeline" => {
            format!("\\{word} is refused: statements are sent one by one here")
        }
        _ => format!("unknown command \\{word}; there are set, gset, aset, if, elif, else, endif, sleep"),
    }
}

/// `\sleep NUMBER|:VARIABLE [us|ms|s]`; seconds unless said.
fn sleep(arguments: &str) -> Result<Command, String> {
    let words: Vec<&str> = arguments.split_ascii_whitespace().collect();
    let (length, unit) = match words.as_slice() {
        [both] if !both.starts_with(':') => {
            let digits = both.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            (digits, both.get(digits.len()..).unwrap_or_default())
        }
        [length] => (*length, ""),
        [length, unit] => (*length, *unit),
        _ => return Err("\\sleep takes a number and a unit (us, ms, s)".to_owned()),
    };
    let ns = match unit.to_ascii_lowercase().as_str() {
        "us" => 1_000,
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        _ => return Err(format!("\\sleep knows the units us, ms and s, not {unit:?}")),
    };
    let length = match length.strip_prefix(':') {
        Some(name) if is_name(name) => Expression::Variable(name.to_owned()),
        Some(name) => return Err(format!("\\sleep: {name:?} is no variable's name")),
        None => {
            let number = length.parse().map_err(|_| format!("\\sleep takes an integer, not {length:?}"))?;
            Expression::Constant(Value::Int(number))
        }
    };
    Ok(Command::Sleep(length, ns))
}
