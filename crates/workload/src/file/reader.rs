//! Reads values of a TOML document. Errors give line, column and what is allowed.

use std::ops::Range;

use loadline_model::format::did_you_mean;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::UserError;
use super::expression::Scope;
use super::words::Words;
use crate::params::Param;

pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// The file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl<'a> Source<'a> {
    /// An error at a position of the text.
    pub(super) fn error(&self, at: Range<usize>, message: impl Into<String>) -> UserError {
        let before = self.text.get(..at.start.min(self.text.len())).unwrap_or(self.text);
        let line = self.line(&at);
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        UserError { file: self.file.to_owned(), line, column, message: message.into() }
    }

    /// The line of a position of the text.
    pub(super) fn line(&self, at: &Range<usize>) -> usize {
        self.text.bytes().take(at.start).filter(|b| *b == b'\n').count() + 1
    }

    /// The fields of `value`, which must be a table with only `known` keys.
    pub(super) fn fields<'v>(
        &'v self,
        value: &'v Value<'a>,
        what: &str,
        known: &[&'static str],
    ) -> Result<Fields<'v, 'a>, UserError> {
        let Some(table) = value.get_ref().as_table() else {
            let form = format!("{{ {} }}", known.iter().map(|k| format!("{k} = …")).collect::<Vec<_>>().join(", "));
            let kind = value.get_ref().type_str();
            return Err(self.error(value.span(), format!("{what} must be {form}, not {}", article(kind))));
        };
        self.fields_of(table, value.span(), what, known)
    }

    /// The same for a table.
    pub(super) fn fields_of<'v>(
        &'v self,
        table: &'v DeTable<'a>,
        at: Range<usize>,
        what: &str,
        known: &[&'static str],
    ) -> Result<Fields<'v, 'a>, UserError> {
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let near = did_you_mean(name, known.iter().copied());
                let text = format!("{what} has no key '{name}'{near} (known: {})", known.join(", "));
                return Err(self.error(key.span(), text));
            }
        }
        Ok(Fields { source: self, table, at, what: what.to_owned() })
    }

    /// A non-empty string.
    pub(super) fn text<'v>(&self, value: &'v Value<'a>, what: &str) -> Result<&'v str, UserError> {
        match value.get_ref().as_str().map(str::trim) {
            Some("") => Err(self.error(value.span(), format!("{what} is empty"))),
            Some(text) => Ok(text),
            None => {
                let kind = article(value.get_ref().type_str());
                Err(self.error(value.span(), format!("{what} must be a string in quotes, not {kind}")))
            }
        }
    }

    /// One of `known`.
    pub(super) fn word(
        &self,
        value: &Value<'a>,
        what: &str,
        known: &[&'static str],
    ) -> Result<&'static str, UserError> {
        let text = self.text(value, what)?;
        known.iter().copied().find(|k| *k == text).ok_or_else(|| self.unknown(value, what, text, known.iter().copied()))
    }

    /// The error for a value that is none of `known`.
    pub(super) fn unknown<'k>(
        &self,
        value: &Value<'a>,
        what: &str,
        given: &str,
        known: impl Iterator<Item = &'k str> + Clone,
    ) -> UserError {
        let near = did_you_mean(given, known.clone());
        let known: Vec<&str> = known.collect();
        let known = if known.is_empty() { "there is none".to_owned() } else { format!("known: {}", known.join(", ")) };
        self.error(value.span(), format!("{what} '{given}' is not known{near} ({known})"))
    }

    /// An integer within `range`.
    pub(super) fn integer(&self, value: &Value<'a>, what: &str, range: (i64, i64)) -> Result<i64, UserError> {
        let parsed = value.get_ref().as_integer().map(|i| i64::from_str_radix(i.as_str(), i.radix()));
        let (least, most) = range;
        match parsed {
            Some(Ok(i)) if (least..=most).contains(&i) => Ok(i),
            Some(found) => {
                let found = found.map_or("larger than 64 bits".to_owned(), |i| i.to_string());
                let text = format!("{what} is {found}, but must be between {least} and {most}");
                Err(self.error(value.span(), text))
            }
            None => {
                let kind = article(value.get_ref().type_str());
                Err(self.error(value.span(), format!("{what} must be an integer, not {kind}")))
            }
        }
    }

    /// An integer, or what an expression gives.
    pub(super) fn number(&self, value: &Value<'a>, what: &str, scope: &Scope<'_>) -> Result<i128, UserError> {
        if !value.get_ref().is_str() {
            return self.integer(value, what, (i64::MIN, i64::MAX)).map(i128::from);
        }
        let text = self.text(value, what)?;
        scope.number(text).map_err(|e| self.error(value.span(), format!("{what}: {e}")))
    }

    /// An integer, or what an expression gives, within `range`.
    pub(super) fn amount(
        &self,
        value: &Value<'a>,
        what: &str,
        scope: &Scope<'_>,
        range: (i64, i64),
    ) -> Result<i64, UserError> {
        let number = self.number(value, what, scope)?;
        let (least, most) = range;
        i64::try_from(number).ok().filter(|n| (least..=most).contains(n)).ok_or_else(|| {
            let of = value.get_ref().as_str().map_or(String::new(), |text| format!(" ('{text}' with some parameters)"));
            self.error(value.span(), format!("{what} is {number}{of}, but must be between {least} and {most}"))
        })
    }

    /// The value of one of `words`.
    pub(super) fn one_of<T: Copy>(&self, value: &Value<'a>, what: &str, words: Words<T>) -> Result<T, UserError> {
        let text = self.text(value, what)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, of)| *of);
        found.ok_or_else(|| self.unknown(value, what, text, words.iter().map(|(word, _)| *word)))
    }

    /// The key by which `value` is one of `kinds`, and its fields, which must be those of its kind.
    pub(super) fn kind<'v>(
        &'v self,
        value: &'v Value<'a>,
        what: &str,
        kinds: &[(&'static str, &[&'static str])],
    ) -> Result<(&'static str, Fields<'v, 'a>), UserError> {
        let mut all: Vec<&'static str> = kinds.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        let any = self.fields(value, what, &all)?;
        let found: Vec<_> = kinds.iter().filter(|(kind, _)| any.optional(kind).is_some()).collect();
        let [(kind, keys)] = found.as_slice() else {
            let known = kinds.iter().map(|(kind, _)| *kind).collect::<Vec<_>>().join(", ");
            let text = format!("{what} needs exactly one of the keys {known}; this one has {}", found.len());
            return Err(self.error(value.span(), text));
        };
        Ok((kind, self.fields(value, &format!("{what} with '{kind}'"), keys)?))
    }

    /// A parameter with all values within `range`.
    pub(super) fn param<'p>(
        &self,
        value: &Value<'a>,
        what: &str,
        params: &'p [Param],
        range: (i64, i64),
    ) -> Result<&'p Param, UserError> {
        let name = self.text(value, what)?;
        let known = params.iter().map(|p| p.name);
        let Some(param) = params.iter().find(|p| p.name == name) else {
            return Err(self.unknown(value, &format!("{what}: the parameter"), name, known));
        };
        let (least, most) = range;
        if param.min < least || param.max > most {
            let text = format!(
                "{what} must be between {least} and {most}, but the parameter '{name}' can be {} to {}: narrow its min and max",
                param.min, param.max
            );
            return Err(self.error(value.span(), text));
        }
        Ok(param)
    }

    /// A name, given in `value`, that needs no quotes in any database: letters a–z, digits and `also`, a letter first.
    pub(super) fn name(
        &self,
        value: &Value<'a>,
        name: &str,
        what: &str,
        also: char,
        most: usize,
    ) -> Result<String, UserError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == also;
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(plain) {
            let text = format!(
                "{what} '{name}' is not allowed: use letters a to z, digits and '{also}', a letter first, so that no \
                 database needs quotes"
            );
            return Err(self.error(value.span(), text));
        }
        if name.len() > most {
            let text = format!("{what} '{name}' has {} characters, but the limit is {most}", name.len());
            return Err(self.error(value.span(), text));
        }
        Ok(name.to_owned())
    }

    /// `true` or `false`.
    pub(super) fn truth(&self, value: &Value<'a>, what: &str) -> Result<bool, UserError> {
        value.get_ref().as_bool().ok_or_else(|| self.error(value.span(), format!("{what} must be true or false")))
    }

    /// The elements of an array.
    pub(super) fn list<'v>(&self, value: &'v Value<'a>, what: &str) -> Result<Vec<&'v Value<'a>>, UserError> {
        match value.get_ref().as_array() {
            Some(array) => Ok(array.iter().collect()),
            None => {
                let kind = article(value.get_ref().type_str());
                Err(self.error(value.span(), format!("{what} must be a list in [ ], not {kind}")))
            }
        }
    }
}

/// The fields of one table.
pub(super) struct Fields<'v, 'a> {
    source: &'v Source<'a>,
    table: &'v DeTable<'a>,
    at: Range<usize>,
    what: String,
}

impl<'v, 'a> Fields<'v, 'a> {
    pub(super) fn optional(&self, key: &str) -> Option<&'v Value<'a>> {
        self.table.iter().find(|(k, _)| k.get_ref().as_ref() == key).map(|(_, v)| v)
    }

    pub(super) fn required(&self, key: &str) -> Result<&'v Value<'a>, UserError> {
        self.optional(key).ok_or_else(|| self.error(format!("{} needs the key '{key}'", self.what)))
    }

    /// A required string.
    pub(super) fn text(&self, key: &str) -> Result<&'v str, UserError> {
        self.source.text(self.required(key)?, &format!("'{key}' of {}", self.what))
    }

    /// The elements of an optional array.
    pub(super) fn list(&self, key: &str) -> Result<Vec<&'v Value<'a>>, UserError> {
        self.optional(key).map_or(Ok(Vec::new()), |v| self.source.list(v, &format!("'{key}' of {}", self.what)))
    }

    /// An error of the whole table.
    pub(super) fn error(&self, text: String) -> UserError {
        self.source.error(self.at.clone(), text)
    }
}

fn article(kind: &str) -> String {
    let an = kind.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {kind}", if an { "an" } else { "a" })
}
