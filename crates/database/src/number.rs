//! What a query for one whole number returned.

use crate::error::TargetError;

/// A number, or NULL: there was nothing to add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// The number, summed over all nodes that returned one.
    sum: i64,
    /// Whether a node returned NULL, or no row.
    is_null: bool,
}

impl Number {
    /// What one database returned.
    #[must_use]
    pub fn new(found: Option<i64>) -> Number {
        Number { sum: found.unwrap_or(0), is_null: found.is_none() }
    }

    /// The same as text.
    ///
    /// # Errors
    /// When it is no whole number.
    pub(crate) fn read(text: Option<String>) -> Result<Number, TargetError> {
        let parse = |text: String| {
            let no_number = || TargetError::Statement(format!("the query returned «{text}», which is no whole number"));
            text.parse().map_err(|_| no_number())
        };
        text.map(parse).transpose().map(Number::new)
    }

    /// The sum of what all nodes returned, each of which may fail.
    ///
    /// # Errors
    /// The first of theirs.
    pub(crate) fn of_all(found: impl IntoIterator<Item = Option<String>>) -> Result<Number, TargetError> {
        found.into_iter().try_fold(Number { sum: 0, is_null: false }, |all, text| {
            let one = Number::read(text)?;
            Ok(Number { sum: all.sum.saturating_add(one.sum), is_null: all.is_null || one.is_null })
        })
    }

    /// The number, where NULL means that there was nothing to count.
    #[must_use]
    pub fn or_zero(self) -> i64 {
        self.sum
    }

    /// The number, where one must be there: NULL is not 0, and proves nothing.
    ///
    /// # Errors
    /// When it was NULL.
    pub fn required(self) -> Result<i64, TargetError> {
        if self.is_null {
            return Err(TargetError::Statement(
                "the query returned NULL or no row, which is no number: the rows that it adds up are not there (where none \
                 may be there, write COALESCE)"
                    .into(),
            ));
        }
        Ok(self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn null_is_zero_only_where_that_was_asked_for() {
        let of = |found: &[Option<&str>]| Number::of_all(found.iter().map(|t| t.map(str::to_owned)));
        let both = of(&[Some("7"), Some("-3")]).unwrap();
        assert_eq!((both.or_zero(), both.required().unwrap()), (4, 4));
        for nulls in [of(&[None]).unwrap(), of(&[None, Some("0")]).unwrap(), Number::new(None)] {
            assert_eq!(nulls.or_zero(), 0);
            assert!(nulls.required().unwrap_err().to_string().contains("NULL"));
        }
        assert_eq!(of(&[Some("7"), None]).unwrap().or_zero(), 7, "what the others have counts");
        assert!(of(&[Some("1.5")]).unwrap_err().to_string().contains("«1.5»"));
        assert_eq!(Number::new(Some(0)).required().unwrap(), 0);
    }
}
