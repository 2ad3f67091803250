//! The text of a workload file, as values that know their places.
//!
//! Whoever reads a [`Node`] says what it must be: [`Node::text`], [`Node::number`], [`Node::fields`], [`Node::kind`]. What is wrong
//! becomes an error at its place, with what is allowed.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use loadline_model::column::{self, COLUMNS, Column};
use loadline_model::format::did_you_mean;
use serde::de::DeserializeOwned;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::script::no_keyword;

/// Longest name of a parameter, variable or statement.
pub(crate) const MAX_WORD: usize = 30;
pub(crate) const ANY: RangeInclusive<i64> = i64::MIN..=i64::MAX;
pub(crate) const SALTS: RangeInclusive<i64> = 0..=999;
/// Sizes of a payload, bytes: it fits a column of every database.
pub(crate) const PAYLOADS: RangeInclusive<i64> = 1..=2000;
pub(crate) const MAX_ROWS: i64 = 1 << 40;

/// An error in a workload file or in a script.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct UserError {
    pub file: String,
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// Fault, and what is allowed.
    pub message: String,
}

impl UserError {
    #[cold]
    pub(crate) fn at(file: &str, text: &str, at: usize, message: impl Into<String>) -> UserError {
        let before = text.get(..at).unwrap_or(text);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        UserError { file: file.to_owned(), line, column, message: message.into() }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    pub(crate) file: String,
    pub(crate) text: String,
    pub(crate) is_own: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'n> {
    pub(crate) source: &'n Source,
    /// The key that it is the value of, or in whose list it is.
    pub(crate) key: &'n str,
    value: &'n Spanned<DeValue<'n>>,
}

impl Source {
    fn error(&self, at: usize, message: impl Into<String>) -> UserError {
        UserError::at(&self.file, &self.text, at, message)
    }

    /// Values. What is missing in the file as a whole is missing at its start.
    pub(crate) fn document(&self) -> Result<Spanned<DeValue<'_>>, UserError> {
        let table = DeTable::parse(&self.text);
        let table = table.map_err(|e| self.error(e.span().map_or(0, |at| at.start), e.message()))?;
        Ok(Spanned::new(0..0, DeValue::Table(table.into_inner())))
    }

    pub(crate) fn root<'n>(&'n self, document: &'n Spanned<DeValue<'n>>) -> Node<'n> {
        Node { source: self, key: "file", value: document }
    }
}

impl<'n> Node<'n> {
    pub(crate) fn error(self, message: impl Into<String>) -> UserError {
        self.source.error(self.value.span().start, message)
    }

    pub(crate) fn line(self) -> usize {
        self.error("").line
    }

    #[cold]
    pub(crate) fn must_be(self, what: &str) -> UserError {
        self.error(format!("'{}' must be {what}, and is of type {}", self.key, self.value.get_ref().type_str()))
    }

    /// The error for a name that is none of `known`.
    #[cold]
    pub(crate) fn unknown<'k>(
        self,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'k str, IntoIter: Clone>,
    ) -> UserError {
        let known = known.into_iter();
        let near = did_you_mean(name, known.clone());
        let known: Vec<&str> = known.collect();
        let known = if known.is_empty() { "there is none".to_owned() } else { format!("known: {}", known.join(", ")) };
        self.error(format!("{what} '{name}' is not known{near} ({known})"))
    }

    /// The value of a key, if it is a table that has it.
    pub(crate) fn get(self, key: &'n str) -> Option<Node<'n>> {
        let DeValue::Table(table) = self.value.get_ref() else { return None };
        table.get(key).map(|value| Node { key, value, ..self })
    }

    pub(crate) fn need(self, key: &'n str) -> Result<Node<'n>, UserError> {
        self.get(key).ok_or_else(|| self.error(format!("the key '{key}' is missing")))
    }

    /// Reads the value of a key, if it is there.
    pub(crate) fn opt<T>(
        self,
        key: &'n str,
        read: impl FnOnce(Node<'n>) -> Result<T, UserError>,
    ) -> Result<Option<T>, UserError> {
        self.get(key).map(read).transpose()
    }

    /// Reads each value of a key's list; none if the key is not there.
    pub(crate) fn all<T>(
        self,
        key: &'n str,
        read: impl FnMut(Node<'n>) -> Result<T, UserError>,
    ) -> Result<Vec<T>, UserError> {
        self.get(key).map_or_else(|| Ok(Vec::new()), |list| list.items()?.into_iter().map(read).collect())
    }

    /// Reads each value of a key's list. All must have different names.
    pub(crate) fn all_named<T>(
        self,
        key: &'n str,
        mut read: impl FnMut(Node<'n>) -> Result<T, UserError>,
        name_of: fn(&T) -> &str,
    ) -> Result<Vec<T>, UserError> {
        let mut names: Vec<String> = Vec::new();
        self.all(key, |node| {
            let one = read(node)?;
            let name = name_of(&one).to_owned();
            if names.contains(&name) {
                let text = format!("the {key} '{name}' is defined twice: remove or rename one");
                return Err(node.get("name").unwrap_or(node).error(text));
            }
            names.push(name);
            Ok(one)
        })
    }

    pub(crate) fn items(self) -> Result<Vec<Node<'n>>, UserError> {
        let DeValue::Array(all) = self.value.get_ref() else { return Err(self.must_be("a list [ … ]")) };
        Ok(all.iter().map(|value| Node { value, ..self }).collect())
    }

    /// The values of a list of so many; `what` is what they are.
    pub(crate) fn list_of<const N: usize>(self, what: &str) -> Result<[Node<'n>; N], UserError> {
        let items = self.items().unwrap_or_default();
        items.try_into().map_err(|_| self.error(format!("'{}' must be {what}, a list of {N}", self.key)))
    }

    /// Checks that it is a table with no keys but these.
    pub(crate) fn fields(self, known: &[&str]) -> Result<Node<'n>, UserError> {
        let DeValue::Table(table) = self.value.get_ref() else { return Err(self.must_be("a table of keys")) };
        let odd = table.keys().find(|key| !known.contains(&key.get_ref().as_ref()));
        odd.map_or(Ok(self), |key| Err(self.unknown_key(key, known)))
    }

    #[cold]
    fn unknown_key(self, key: &Spanned<Cow<'_, str>>, known: &[&str]) -> UserError {
        let why = self.unknown("the key", key.get_ref(), known.iter().copied()).message;
        self.source.error(key.span().start, why)
    }

    /// Which of several things it is: one of `words`, or a table that has one of `kinds` among its keys, and no other keys but those
    /// that go with it.
    pub(crate) fn kind(
        self,
        words: &[&'static str],
        kinds: &[(&'static str, &[&str])],
    ) -> Result<&'static str, UserError> {
        let tables = kinds.iter().map(|(kind, _)| format!("{{ {kind} = … }}"));
        let all: Vec<String> = words.iter().map(|word| (*word).to_owned()).chain(tables).collect();
        let table = match self.value.get_ref() {
            DeValue::Table(table) => table,
            DeValue::String(_) => {
                let text = self.text()?;
                let word = words.iter().copied().find(|word| *word == text);
                return word.ok_or_else(|| self.unknown("the word", text, all.iter().map(String::as_str)));
            }
            _ => return Err(self.must_be(&all.join(" or "))),
        };
        if let Some((kind, others)) = kinds.iter().find(|(kind, _)| table.contains_key(*kind)) {
            let mut known = others.to_vec();
            known.insert(0, kind);
            return self.fields(&known).map(|_| *kind);
        }
        let odd = table.keys().filter(|key| !kinds.iter().any(|(_, others)| others.contains(&key.get_ref().as_ref())));
        let known: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
        let first = odd.min_by_key(|key| key.span().start);
        Err(first.map_or_else(|| self.must_be(&all.join(" or ")), |key| self.unknown_key(key, &known)))
    }

    pub(crate) fn raw_text(self) -> Result<&'n str, UserError> {
        let DeValue::String(text) = self.value.get_ref() else { return Err(self.must_be("a string in quotes")) };
        Ok(text)
    }

    /// A text without blanks around it, which is not empty.
    pub(crate) fn text(self) -> Result<&'n str, UserError> {
        match self.raw_text()?.trim() {
            "" => Err(self.error("this text is empty")),
            text => Ok(text),
        }
    }

    pub(crate) fn owned(self) -> Result<String, UserError> {
        self.text().map(str::to_owned)
    }

    /// A type that reads itself, such as words. An error of the library names what is given, then what is allowed, in backquotes.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, UserError> {
        T::deserialize(ValueDeserializer::from(self.trimmed()?)).map_err(|e| {
            let mut names = e.message().split('`').skip(1).step_by(2);
            let near = names.next().map_or(String::new(), |given| did_you_mean(given, names));
            let at = e.span().unwrap_or_else(|| self.value.span()).start;
            self.source.error(at, format!("{}{near}", e.message()))
        })
    }

    /// The value, with each text in it as [`Node::text`] gives it.
    fn trimmed(self) -> Result<Spanned<DeValue<'n>>, UserError> {
        let of = |value| Node { value, ..self }.trimmed();
        let trimmed = match self.value.get_ref() {
            DeValue::String(_) => DeValue::String(self.text()?.into()),
            DeValue::Array(all) => DeValue::Array(all.iter().map(of).collect::<Result<_, _>>()?),
            DeValue::Table(all) => {
                let all = all.iter().map(|(key, value)| Ok((key.clone(), of(value)?)));
                DeValue::Table(all.collect::<Result<_, _>>()?)
            }
            other => other.clone(),
        };
        Ok(Spanned::new(self.value.span(), trimmed))
    }

    pub(crate) fn column(self) -> Result<&'static Column, UserError> {
        let id = self.text()?;
        column::column(id).ok_or_else(|| {
            let near = did_you_mean(id, COLUMNS.iter().map(|c| c.id));
            self.error(format!("there is no column '{id}'{near} (`loadline columns` lists all)"))
        })
    }

    pub(crate) fn flag(self) -> Result<bool, UserError> {
        self.value.get_ref().as_bool().ok_or_else(|| self.must_be("true or false"))
    }

    /// A whole number, if it is one.
    pub(crate) fn integer(self) -> Option<i64> {
        let number = self.value.get_ref().as_integer()?;
        i64::from_str_radix(number.as_str(), number.radix()).ok()
    }

    /// A number with or without decimals.
    pub(crate) fn real(self) -> Result<f64, UserError> {
        let real = self.value.get_ref().as_float().and_then(|of| of.as_str().parse().ok());
        real.or_else(|| self.integer().map(|n| n as f64)).ok_or_else(|| self.must_be("a number"))
    }

    pub(crate) fn number(self, range: RangeInclusive<i64>) -> Result<i64, UserError> {
        let number = self.integer().ok_or_else(|| self.must_be("a whole number"))?;
        self.within(number, "", range)
    }

    /// Checks a number of this value; `from` says what it follows from.
    pub(crate) fn within(self, number: i64, from: &str, range: RangeInclusive<i64>) -> Result<i64, UserError> {
        if range.contains(&number) {
            return Ok(number);
        }
        let (least, most) = range.into_inner();
        Err(self.error(format!("'{}' is {number}{from}, but must be between {least} and {most}", self.key)))
    }

    /// A name that needs no quotes in any database: letters a–z, digits and `also`, a letter first.
    pub(crate) fn name(self, also: char, most: usize) -> Result<String, UserError> {
        self.new_name(self.owned()?, also, most)
    }

    /// Such a name that follows from this value.
    pub(crate) fn new_name(self, name: String, also: char, most: usize) -> Result<String, UserError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == also;
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
            return Err(self.error(format!(
                "the name '{name}' is not allowed: use letters a to z, digits and '{also}', a letter first, so that no \
                 database needs quotes"
            )));
        }
        match name.len() {
            long if long > most => {
                Err(self.error(format!("the name '{name}' has {long} characters, but the limit is {most}")))
            }
            _ => Ok(name),
        }
    }

    /// Such a name for expressions.
    pub(crate) fn operand(self, name: String) -> Result<String, UserError> {
        no_keyword(&name).map(|()| name).map_err(|why| self.error(why))
    }

    /// The one of `all` that has this name, with its number; the name is that of this value.
    pub(crate) fn find<'t, T>(
        self,
        what: &str,
        name: &str,
        all: &'t [T],
        name_of: fn(&T) -> &str,
    ) -> Result<(usize, &'t T), UserError> {
        let found = all.iter().enumerate().find(|(_, one)| name_of(one) == name);
        found.ok_or_else(|| self.unknown(what, name, all.iter().map(name_of)))
    }
}
