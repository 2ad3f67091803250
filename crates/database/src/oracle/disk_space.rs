//! Free space for tables, and what is known of the log's. Never run against a live server, like all of this
//! module.

use super::cluster::Oracle;
use super::session::{NO_VIEW, OraError, number, text};
use crate::error::TargetError;
use crate::role::{DiskSpace, FreeSpace, LogSpace};

/// The tablespace of the user's tables and its free space.
const FREE: &str = "SELECT u.DEFAULT_TABLESPACE, (SELECT SUM(f.BYTES) FROM USER_FREE_SPACE f WHERE f.TABLESPACE_NAME = \
     u.DEFAULT_TABLESPACE) FROM USER_USERS u";
/// Number of its files, and of those that extend themselves. Needs a grant.
const FILES: &str = "SELECT COUNT(*), SUM(CASE AUTOEXTENSIBLE WHEN 'YES' THEN 1 ELSE 0 END) FROM DBA_DATA_FILES WHERE \
     TABLESPACE_NAME = (SELECT DEFAULT_TABLESPACE FROM USER_USERS)";
/// Whether full redo logs are archived.
const ARCHIVED: &str = "SELECT LOG_MODE FROM V$DATABASE";

fn is_forbidden(e: &OraError) -> bool {
    e.is(NO_VIEW) || e.lacks_privilege()
}

impl DiskSpace for Oracle {
    /// Free space in the files of the user's tablespace at their present size. They may grow, unless DBA_DATA_FILES
    /// shows that they do not. Ignores quotas.
    fn free_space(&self) -> Result<Option<FreeSpace>, TargetError> {
        let mut session = self.admin()?;
        let Some(row) = session.query(FREE, &[])?.into_iter().next() else { return Ok(None) };
        let files = match session.query(FILES, &[]) {
            Ok(rows) => rows.first().and_then(|row| Some((number::<u64>(row, 0)?, number::<u64>(row, 1)?))),
            Err(e) if is_forbidden(&e) => None,
            Err(e) => return Err(e.into()),
        };
        let may_grow = match files.filter(|(files, _)| *files > 0) {
            Some((_, 0)) => None,
            Some((files, extending)) => Some(format!("{extending} of its {files} files extend themselves")),
            None => Some(
                "it is unknown whether its files extend themselves: GRANT SELECT ON SYS.DBA_DATA_FILES TO the user"
                    .to_owned(),
            ),
        };
        let place = format!("the files of the tablespace {}", text(&row, 0).unwrap_or_default());
        // A full tablespace has no row of free space.
        Ok(Some(FreeSpace { bytes: number(&row, 1).unwrap_or(0), place, may_grow }))
    }
}

impl Oracle {
    /// Redo logs have a fixed size. If they are archived, the free space for that is unknown.
    pub(super) fn archived_log_space(&self) -> Result<LogSpace, TargetError> {
        let unknown = match self.admin()?.value(ARCHIVED) {
            Ok(Some(mode)) if mode.trim() == "NOARCHIVELOG" => None,
            Err(e) if !is_forbidden(&e) => return Err(e.into()),
            _ => Some(
                "the free space for archived redo is unknown: it takes about as much as data and indexes".to_owned(),
            ),
        };
        Ok(LogSpace { unknown, ..LogSpace::default() })
    }
}
