//! The database's own report of a test, where the user asked for one.

use loadline_database::kind_of;
use loadline_store::NativeFile;

use super::Context;

/// The moment before a test from which its report is made; `None` where none is asked for.
pub(super) type Mark = Result<Option<i64>, String>;

impl Context {
    /// Marks it.
    pub(super) fn native_mark(&self) -> Mark {
        let reports = self.target.abilities().native_reports.filter(|_| self.manifest.plan.native_report);
        reports.map(|r| r.native_mark().map_err(|e| e.to_string())).transpose()
    }

    /// The report since `mark`, or why it is missing.
    pub(super) fn native_report(&self, mark: Mark) -> Result<Option<NativeFile>, String> {
        let Some(mark) = mark? else { return Ok(None) };
        let kind = kind_of(&self.manifest.plan.target).map_err(|e| e.to_string())?;
        let report = kind.native_report.ok_or_else(|| format!("{} makes none", kind.product))?;
        let reports = self.target.abilities().native_reports.ok_or("this target makes no reports of its own")?;
        let text = reports.native_report(mark).map_err(|e| e.to_string())?;
        Ok(Some(NativeFile { folder: report.folder.to_owned(), extension: report.extension.to_owned(), text }))
    }
}
