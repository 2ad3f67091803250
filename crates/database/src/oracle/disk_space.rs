//! Space that is free for tables, and what is known of the log's. Never run against a live server, as all of
//! Oracle's module.

use super::session::{NO_PRIVILEGE, NO_VIEW, OraSession};
use crate::error::TargetError;
use crate::role::{FreeSpace, LogSpace};

/// The tablespace of the user's tables, and what is free in it.
const FREE: &str = "SELECT u.DEFAULT_TABLESPACE, (SELECT SUM(f.BYTES) FROM USER_FREE_SPACE f WHERE f.TABLESPACE_NAME = \
     u.DEFAULT_TABLESPACE) FROM USER_USERS u";
/// Its files, and how many of them extend themselves: for administrators.
const FILES: &str = "SELECT COUNT(*), SUM(CASE AUTOEXTENSIBLE WHEN 'YES' THEN 1 ELSE 0 END) FROM DBA_DATA_FILES WHERE \
     TABLESPACE_NAME = (SELECT DEFAULT_TABLESPACE FROM USER_USERS)";
/// Whether full redo logs are archived.
const ARCHIVED: &str = "SELECT LOG_MODE FROM V$DATABASE";

/// What is free in the files of the user's tablespace as they are. They grow, unless it is seen that they do not. A
/// quota is not looked at.
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
            "whether its files extend themselves is not seen: GRANT SELECT ON SYS.DBA_DATA_FILES to the user"
                .to_owned(),
        ),
        Err(e) => return Err(e.into()),
    };
    Ok(Some(FreeSpace { bytes, place: format!("the files of the tablespace {name}"), may_grow }))
}

/// Redo logs have a fixed size. Where they are archived, the space for that is unknown.
pub(super) fn log(session: &mut dyn OraSession) -> Result<LogSpace, TargetError> {
    let unknown = match session.value(ARCHIVED) {
        Ok(Some(mode)) if mode.trim() == "NOARCHIVELOG" => None,
        Err(e) if !e.is(&[NO_VIEW, NO_PRIVILEGE]) => return Err(e.into()),
        _ => {
            Some("whether there is room for archived redo, about as much as data and indexes, is not known".to_owned())
        }
    };
    Ok(LogSpace { unknown, ..LogSpace::default() })
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Paper, row};
    use super::super::session::OraError;
    use super::*;

    fn server(files: Result<&'static [&'static str], u32>, mode: &'static str) -> Paper {
        Paper::new(move |sql, _| match sql {
            FREE => Ok(vec![row(&["USERS", "1048576"])]),
            FILES => files.map(|f| vec![row(f)]).map_err(|code| OraError::numbered(code, "ORA")),
            ARCHIVED if mode.is_empty() => Err(OraError::numbered(NO_VIEW, "ORA-00942")),
            ARCHIVED => Ok(vec![row(&[mode])]),
            _ => Ok(Vec::new()),
        })
    }

    #[test]
    fn a_tablespace_is_full_only_where_its_files_are_seen_not_to_grow() {
        let grows = |files| free(&mut server(files, "")).unwrap().unwrap();
        assert_eq!(grows(Ok(&["2", "0"])).may_grow, None);
        assert_eq!(grows(Ok(&["2", "0"])).bytes, 1 << 20);
        assert!(grows(Ok(&["2", "1"])).may_grow.unwrap().contains("1 of its 2 files"));
        assert!(grows(Err(NO_VIEW)).may_grow.unwrap().contains("DBA_DATA_FILES"));
        assert!(grows(Ok(&["0", "∅"])).may_grow.is_some());
        assert!(free(&mut server(Err(3113), "")).is_err(), "a lost session is no answer");
    }

    #[test]
    fn room_for_archived_redo_is_not_known_and_said_so() {
        assert_eq!(log(&mut server(Ok(&[]), "NOARCHIVELOG")).unwrap(), LogSpace::default());
        for mode in ["ARCHIVELOG", ""] {
            assert!(log(&mut server(Ok(&[]), mode)).unwrap().unknown.unwrap().contains("archived redo"));
        }
    }
}
