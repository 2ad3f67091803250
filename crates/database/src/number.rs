//! The result of a query for one whole number.

use crate::error::TargetError;

/// A number, or NULL (the query found no rows to add up).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// The number, summed over all nodes that returned one.
    sum: i64,
    /// Whether a node returned NULL, or no row.
    is_null: bool,
}

impl Number {
    /// The result of one database.
    #[must_use]
    pub fn new(found: Option<i64>) -> Number {
        Number { sum: found.unwrap_or(0), is_null: found.is_none() }
    }

    /// Parses the result of one database.
    ///
    /// # Errors
    /// When it is not a whole number.
    pub(crate) fn read(text: Option<String>) -> Result<Number, TargetError> {
        let parse = |text: String| {
            let no_number =
                || TargetError::Statement(format!("the query returned '{text}', which is not a whole number"));
            text.parse().map_err(|_| no_number())
        };
        text.map(parse).transpose().map(Number::new)
    }

    /// The sum of the results of all nodes.
    ///
    /// # Errors
    /// The first result that is not a whole number.
    pub(crate) fn of_all(found: impl IntoIterator<Item = Option<String>>) -> Result<Number, TargetError> {
        found.into_iter().try_fold(Number { sum: 0, is_null: false }, |all, text| {
            let one = Number::read(text)?;
            Ok(Number { sum: all.sum.saturating_add(one.sum), is_null: all.is_null || one.is_null })
        })
    }

    /// The number; NULL counts as 0.
    #[must_use]
    pub fn or_zero(self) -> i64 {
        self.sum
    }

    /// The number; NULL is an error, because it proves nothing.
    ///
    /// # Errors
    /// When it was NULL.
    pub fn required(self) -> Result<i64, TargetError> {
        if self.is_null {
            return Err(TargetError::Statement(
                "the query returned NULL or no row instead of a number: it found no rows to add up (if that is allowed, \
                 write COALESCE)"
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
    fn null_is_zero_only_on_request() {
        let of = |found: &[Option<&str>]| Number::of_all(found.iter().map(|t| t.map(str::to_owned)));
        let both = of(&[Some("7"), Some("-3")]).unwrap();
        assert_eq!((both.or_zero(), both.required().unwrap()), (4, 4));
        for nulls in [of(&[None]).unwrap(), of(&[None, Some("0")]).unwrap(), Number::new(None)] {
            assert_eq!(nulls.or_zero(), 0);
            assert!(nulls.required().unwrap_err().to_string().contains("NULL"));
        }
        assert_eq!(of(&[Some("7"), None]).unwrap().or_zero(), 7, "NULL of one node does not hide the others");
        assert!(of(&[Some("1.5")]).unwrap_err().to_string().contains("'1.5'"));
        assert_eq!(Number::new(Some(0)).required().unwrap(), 0);
    }
}
