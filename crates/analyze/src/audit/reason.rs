//! What findings say: a note and its values. Text is made where they are printed.

use std::fmt;

/// A shape of tables that is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum Shape {
    #[error("HTML is not read")]
    Html,
    #[error("columns set apart by spaces are not read")]
    Aligned,
    #[error("a table with two header rows of different cells is not read")]
    TwoHeaderRows,
    #[error("a table with a row per metric is read only if its metrics are known")]
    MetricsAsRows,
    #[error("an extract of an AWR report, per second and per transaction, is not read")]
    Awr,
    #[error("platforms side by side are not read: '{}'", .0.join("', '"))]
    SideBySide(Vec<String>),
}

/// Notes, and their texts with a place for each value.
macro_rules! notes {
    ($($note:ident $text:literal;)*) => {
        /// What a finding or a remark says.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the texts say it")]
        pub enum Note { $($note),* }

        impl Note {
            fn text(self) -> &'static str {
                match self { $(Note::$note => $text),* }
            }
        }
    };
}

notes! {
    TooManyCells "it has {} cells for {} columns: it was not used";
    TooFewCells "it has {} cells for {} columns: those at its end are taken as empty";
    HeaderAgain "it repeats the column names: it was not used";
    OpenQuote "a quote is opened in it and never closed: what follows is in that cell";
    Turned "a row per metric: read as {} tests, a row each";
    Changes "column '{}' holds changes, which are no test and no figure";
    Several "column '{}': several numbers in a cell are not used: {}, such as '{}'";
    Ambiguous "column '{}': numbers that can be read in two ways are not used: {}, such as '{}'";
    TakenFor "column '{}' was taken for {}{}";
    SecondColumn "column '{}' would be {} as well as '{}': it was not used";
    Unknown "no law knows {}: --columns says what columns are";
    NoLaw "no law covers its columns; known are: {}. --columns says what columns are";
    Refused "{}";
    Broken "{}: {}{}";
    Factor "{}: in {} of {} rows the left side is {} × the right: {}";
    Apart "{}: not in {} of {} rows, where the left side is {} to {} × the right: the columns are not what they were taken for, or of different tests";
    Cut "{}: digits were cut off rather than rounded in {} of {} rows";
    Kilobyte "fits in {} of {} rows with kilobytes of {} and megabytes of {}² bytes{}";
    Sessions "throughput × time fits in {} of {} rows if the jobs are {}";
    Think "jobs / throughput − time is {} ms in {} of {} rows: a think time, or time outside what was timed";
    OpenLoop "throughput × time is more than the jobs in {} of {} rows: times of an open loop count from when a transaction was due";
    Elapsed "it took {} s of nominal {} s, which dilutes its average; the rate was up to {}";
    AllElapsed "all tests took {} s of nominal {} s, which dilutes their averages";
    Usual "{} is {} in the other rows: other work, or a wrong digit";
    Blocks "blocks of {} B fit in {} of {} rows{}";
    Defined "the workload is defined by {} to {}";
    Peak "throughput falls: {} at {} jobs was its peak";
    Gap "tests {} to {} are missing";
    Copy "it is the same as row {}";
    Again "it is the same test with other figures as row {}";
    NotANumber "no number: a division by nothing, or one that is too long for its cell";
    Unread "not read as a number: text, or another unit";
    Negative "a negative figure: a counter that was reset, a wrong sign, or a change";
    NoJobs "0, and still there is work in the other cells";
    NoWork "no throughput, and still there were jobs: the test failed, or its figure is lost";
    Nines "all nines: it may be the largest number that its cell holds";
    Claim "{} is claimed, and the cells give {}";
    More "{} more rows have this finding";
}

/// A value of a note.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "a number or a text")]
pub enum Value {
    Number(f64),
    Text(String),
}

macro_rules! values {
    ($($type:ty, $make:expr;)*) => {
        $(impl From<$type> for Value {
            fn from(value: $type) -> Value {
                $make(value)
            }
        })*
    };
}

values! {
    f64, Value::Number;
    usize, |n| Value::Text(format!("{n}"));
    &str, |text: &str| Value::Text(text.to_owned());
    &String, |text: &String| Value::Text(text.clone());
    String, Value::Text;
}

/// A note with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// What it says.
    pub note: Note,
    /// Of what, in the order of its text.
    pub values: Vec<Value>,
    /// Whether the table itself calls the test invalid.
    pub invalid: bool,
}

/// Makes a [`Reason`].
macro_rules! reason {
    ($note:ident $(, $value:expr)* $(,)?) => {
        $crate::audit::reason::Reason {
            note: $crate::audit::reason::Note::$note,
            values: vec![$($value.into()),*],
            invalid: false,
        }
    };
}
pub(crate) use reason;

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.note.text().split("{}");
        f.write_str(parts.next().unwrap_or(""))?;
        for (part, value) in parts.zip(&self.values) {
            match value {
                Value::Number(number) => f.write_str(&shown(*number, 5))?,
                Value::Text(text) => f.write_str(text)?,
            }
            f.write_str(part)?;
        }
        f.write_str(if self.invalid { "; the table itself calls this test invalid" } else { "" })
    }
}

/// A number with `digits` significant digits, without zeros at the end of its fraction.
pub(crate) fn shown(value: f64, digits: i32) -> String {
    if !value.is_finite() {
        return "∞".to_owned();
    }
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    if magnitude > 15 {
        return format!("{value:.*e}", usize::try_from(digits - 1).unwrap_or(0));
    }
    let decimals = (digits - 1 - magnitude).clamp(0, 12);
    let text = format!("{value:.*}", usize::try_from(decimals).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
