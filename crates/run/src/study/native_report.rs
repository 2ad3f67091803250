//! The database's own report of a test (Oracle: AWR), if the user asked for one.

use loadline_database::kind_of;
use loadline_store::NativeFile;

use super::Context;

/// Start of the report, taken before a test; `None` if no report was asked for.
pub(super) type Mark = Result<Option<i64>, String>;

impl Context {
    /// Takes the mark.
    pub(super) fn native_mark(&self) -> Mark {
        let reports = self.side.target.abilities().native_reports.filter(|_| self.manifest.plan.native_report);
        reports.map(|r| r.native_mark().map_err(|e| e.to_string())).transpose()
    }

    /// The report since `mark`, or why it is missing.
    pub(super) fn native_report(&self, mark: Mark) -> Result<Option<NativeFile>, String> {
        let Some(mark) = mark? else { return Ok(None) };
        let kind = kind_of(&self.manifest.plan.target).map_err(|e| e.to_string())?;
        let report = kind.native_report.ok_or_else(|| format!("{} has no such report", kind.product))?;
        let reports = self.side.target.abilities().native_reports.ok_or("this target has no reports of its own")?;
        let text = reports.native_report(mark).map_err(|e| e.to_string())?;
        Ok(Some(NativeFile { folder: report.folder.to_owned(), extension: report.extension.to_owned(), text }))
    }
}
