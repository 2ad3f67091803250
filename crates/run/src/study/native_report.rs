//! The database's own report of a test (Oracle: AWR), if the user asked for one.

use loadline_database::{NativeReports, TargetKind};
use loadline_store::NativeFile;

/// Start of the report, taken before a test; `None` if no report was asked for.
pub(super) type Mark = Result<Option<i64>, String>;

pub(super) fn mark(reports: Option<&dyn NativeReports>) -> Mark {
    reports.map(|reports| reports.native_mark().map_err(|e| e.to_string())).transpose()
}

/// The report of a target of `kind` since `mark`, or why it is missing.
pub(super) fn report(
    reports: Option<&dyn NativeReports>,
    kind: &dyn TargetKind,
    mark: Mark,
) -> Result<Option<NativeFile>, String> {
    let Some((mark, reports)) = mark?.zip(reports) else { return Ok(None) };
    let of = kind.native_report.as_ref().ok_or_else(|| format!("{} has no such report", kind.product))?;
    let text = reports.native_report(mark).map_err(|e| e.to_string())?;
    Ok(Some(NativeFile { folder: of.folder.clone(), extension: of.extension.clone(), text }))
}

#[cfg(test)]
mod tests {
    use loadline_database::{TargetError, kind_of};

    use super::*;

    /// Why it takes no mark, and makes no report, if so.
    struct Reporting([Option<&'static str>; 2]);

    impl NativeReports for Reporting {
        fn native_mark(&self) -> Result<i64, TargetError> {
            self.0[0].map_or(Ok(7), |why| Err(TargetError::Refused(why.into())))
        }

        fn native_report(&self, from: i64) -> Result<String, TargetError> {
            self.0[1].map_or(Ok(format!("from {from}")), |why| Err(TargetError::Refused(why.into())))
        }
    }

    #[test]
    fn a_test_has_its_report_or_a_reason_if_one_was_asked_for() {
        let kind = kind_of("oracle://u@h/s").unwrap();
        let made = |all: &Reporting| report(Some(all), kind, mark(Some(all)));
        let file = made(&Reporting([None; 2])).unwrap().unwrap();
        assert_eq!((file.folder.as_str(), file.extension.as_str(), file.text.as_str()), ("awr", "html", "from 7"));
        assert!(report(None, kind, mark(None)).unwrap().is_none());
        for refused in [[Some("no grant"), None], [None, Some("no grant")]] {
            assert!(made(&Reporting(refused)).unwrap_err().contains("no grant"));
        }
    }
}
