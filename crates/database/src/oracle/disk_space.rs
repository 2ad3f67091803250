//! Free space for tables, and what is known of the log's. Never run against a live server, like all of this
//! module.

use super::session::{NO_PRIVILEGE, NO_VIEW, OraSession};
use crate::error::TargetError;
use crate::role::{FreeSpace, LogSpace};

/// The tablespace of the user's tables and its free space.
const FREE: &str = "SELECT u.DEFAULT_TABLESPACE, (SELECT SUM(f.BYTES) FROM USER_FREE_SPACE f WHERE f.TABLESPACE_NAME = \
     u.DEFAULT_TABLESPACE) FROM USER_USERS u";
/// Number of its files, and of those that extend themselves. Needs a grant.
const FILES: &str = "SELECT COUNT(*), SUM(CASE AUTOEXTENSIBLE WHEN 'YES' THEN 1 ELSE 0 END) FROM DBA_DATA_FILES WHERE \
     TABLESPACE_NAME = (SELECT DEFAULT_TABLESPACE FROM USER_USERS)";
/// Whether full redo logs are archived.
const ARCHIVED: &str = "SELECT LOG_MODE FROM V$DATABASE";

/// Free space in the files of the user's tablespace at their present size. They may grow, unless DBA_DATA_FILES
/// shows that they do not. Ignores quotas.
pub(super) fn free(session: &mut dyn OraSession) -> Result<Option<FreeSpace>, TargetError> {
    let rows = session.query(FREE, &[])?;
    let Some(mut row) = rows.into_iter().next().map(Vec::into_iter) else { return Ok(None) };
    let name = row.next().flatten().unwrap_or_default();
    // A full tablespace has no row of free space.
    let bytes = row.next().flatten().and_then(|b| b.trim().parse().ok()).unwrap_or(0);
    let may_grow = match session.query(FILES, &[]) {
        Ok(rows) => {
            let numbers: Vec<u64> = rows.into_iter().flatten().filter_map(|n| n?.trim().parse().ok()).collect();
            match numbers[..] {
                [files, 0] if files > 0 => None,
                [files, extending] if files > 0 => Some(format!("{extending} of its {files} files extend themselves")),
                _ => Some("its files are not in DBA_DATA_FILES".to_owned()),
            }
        }
        Err(e) if e.is(&[NO_VIEW, NO_PRIVILEGE]) => Some(
            "it is unknown whether its files extend themselves: GRANT SELECT ON SYS.DBA_DATA_FILES TO the user"
                .to_owned(),
        ),
        Err(e) => return Err(e.into()),
    };
    Ok(Some(FreeSpace { bytes, place: format!("the files of the tablespace {name}"), may_grow }))
}

/// Redo logs have a fixed size. If they are archived, the free space for that is unknown.
pub(super) fn log(session: &mut dyn OraSession) -> Result<LogSpace, TargetError> {
    let unknown = match session.value(ARCHIVED) {
        Ok(Some(mode)) if mode.trim() == "NOARCHIVELOG" => None,
        Err(e) if !e.is(&[NO_VIEW, NO_PRIVILEGE]) => return Err(e.into()),
        _ => Some("the free space for archived redo is unknown: it takes about as much as data and indexes".to_owned()),
    };
    Ok(LogSpace { unknown, ..LogSpace::default() })
}

#[cfg(test)]
mod tests {
    use super::super::fake::{FakeServer, row};
    use super::super::session::OraError;
    use super::*;

    fn server(files: Result<&'static [&'static str], u32>, mode: &'static str) -> FakeServer {
        FakeServer::new(move |sql, _| match sql {
            FREE => Ok(vec![row(&["USERS", "1048576"])]),
            FILES => files.map(|f| vec![row(f)]).map_err(|code| OraError::numbered(code, "ORA")),
            ARCHIVED if mode.is_empty() => Err(OraError::numbered(NO_VIEW, "ORA-00942")),
            ARCHIVED => Ok(vec![row(&[mode])]),
            _ => Ok(Vec::new()),
        })
    }

    #[test]
    fn a_tablespace_is_full_only_if_its_files_cannot_grow() {
        let grows = |files| free(&mut server(files, "")).unwrap().unwrap();
        assert_eq!(grows(Ok(&["2", "0"])).may_grow, None);
        assert_eq!(grows(Ok(&["2", "0"])).bytes, 1 << 20);
        assert!(grows(Ok(&["2", "1"])).may_grow.unwrap().contains("1 of its 2 files"));
        assert!(grows(Err(NO_VIEW)).may_grow.unwrap().contains("DBA_DATA_FILES"));
        assert!(grows(Ok(&["0", "∅"])).may_grow.is_some());
        assert!(free(&mut server(Err(3113), "")).is_err(), "a lost session is an error");
    }

    #[test]
    fn free_space_for_archived_redo_is_reported_as_unknown() {
        assert_eq!(log(&mut server(Ok(&[]), "NOARCHIVELOG")).unwrap(), LogSpace::default());
        for mode in ["ARCHIVELOG", ""] {
            assert!(log(&mut server(Ok(&[]), mode)).unwrap().unknown.unwrap().contains("archived redo"));
        }
    }
}
