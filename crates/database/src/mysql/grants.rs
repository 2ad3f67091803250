//! The privileges that loadline uses, and which of them the user has.

use super::wire::Connection;
use crate::error::TargetError;
use crate::role::{GrantSql, Privilege, Use};

/// The lines of SHOW GRANTS, in capitals, those of active roles included.
pub(super) fn lines(c: &mut Connection) -> Result<Vec<String>, TargetError> {
    // MariaDB shows the grants of the current role anyway.
    let roles =
        if c.version.mariadb { None } else { c.value("SELECT CURRENT_ROLE()")?.filter(|roles| roles != "NONE") };
    let using = roles.map_or(String::new(), |roles| format!(" FOR CURRENT_USER() USING {roles}"));
    let rows = c.query(&format!("SHOW GRANTS{using}"))?;
    let text = |row: &Vec<Option<Vec<u8>>>| Some(String::from_utf8_lossy(row.first()?.as_ref()?).to_uppercase());
    Ok(rows.iter().filter_map(text).collect())
}

/// All of them, with statements for this account.
pub(super) fn privileges(c: &mut Connection) -> Result<Vec<Privilege>, TargetError> {
    let lines = lines(c)?;
    let account = c.value("SELECT CURRENT_USER()")?.unwrap_or_default();
    let on = c.number("SELECT @@GLOBAL.performance_schema")? == Some(1.0);
    let account = quoted_account(&account);
    Ok(of(&lines, &account, c.version.mariadb, on))
}

/// `ann@%` as `'ann'@'%'`.
fn quoted_account(account: &str) -> String {
    let (user, host) = account.rsplit_once('@').unwrap_or((account, "%"));
    let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
    format!("{}@{}", quoted(user), quoted(host))
}

/// Whether the pattern of a grant (`load%`, `load\_line`) covers `text`.
fn is_like(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'%', rest @ ..], _) => (0..=text.len()).any(|from| text.get(from..).is_some_and(|text| is_like(rest, text))),
        ([b'\\', c, rest @ ..], [t, text @ ..]) => c == t && is_like(rest, text),
        ([b'_', rest @ ..], [_, text @ ..]) => is_like(rest, text),
        ([c, rest @ ..], [t, text @ ..]) => c == t && is_like(rest, text),
        _ => false,
    }
}

/// `statistics`: whether the server keeps the views that one of them is for.
fn of(lines: &[String], account: &str, mariadb: bool, statistics: bool) -> Vec<Privilege> {
    let place_of = |line: &str| {
        let (_, rest) = line.split_once(" ON ")?;
        Some(rest.split_once(" TO ")?.0.replace('`', ""))
    };
    let has = |place: &str, what: &str| {
        let here =
            |line: &&String| place_of(line).is_some_and(|of| of == "*.*" || is_like(of.as_bytes(), place.as_bytes()));
        lines.iter().filter(here).any(|line| line.contains(what) || line.contains("ALL PRIVILEGES"))
    };
    // What comes from a wider grant, or from a role, cannot be taken back by itself.
    let grant = |place: &str, what: &str, sql: &str| {
        let by_itself = lines.iter().any(|line| place_of(line).is_some_and(|of| of == place) && line.contains(what));
        let GrantSql { grant, revoke } = GrantSql::of(sql, account);
        GrantSql { grant, revoke: revoke.filter(|_| by_itself) }
    };
    let replica = if mariadb { "SLAVE MONITOR" } else { "REPLICATION CLIENT" };
    let mut all = vec![
        Privilege {
            sql: vec![
                // What is in it may be others': `loadline clean` drops what is loadline's.
                GrantSql { grant: "CREATE DATABASE IF NOT EXISTS loadline".to_owned(), revoke: None },
                grant("LOADLINE.*", "ALL PRIVILEGES", "ALL ON loadline.*"),
            ],
            gives: "the database 'loadline' with all its tables",
            granted: has("LOADLINE.*", "GRANT ALL")
                || has("LOADLINE.*", " CREATE,")
                || has("LOADLINE.*", "CREATE ROUTINE"),
            used: Use::Needed,
        },
        Privilege {
            sql: vec![grant("*.*", "PROCESS", "PROCESS ON *.*")],
            gives: "InnoDB's metrics in the snapshots, its transactions and locks, sessions of other users",
            granted: has("*.*", "PROCESS"),
            used: Use::Figures,
        },
    ];
    if statistics {
        all.push(Privilege {
            sql: vec![grant("PERFORMANCE_SCHEMA.*", "SELECT", "SELECT ON performance_schema.*")],
            gives: "statements, waits, files and tables by the server's clock, and log file sync where it is timed",
            granted: has("PERFORMANCE_SCHEMA.*", "SELECT"),
            used: Use::Figures,
        });
    }
    all.push(Privilege {
        sql: vec![grant("*.*", replica, &format!("{replica} ON *.*"))],
        gives: "how far the server is behind if it is a replica",
        granted: has("*.*", replica),
        used: Use::Figures,
    });
    if mariadb {
        all.push(Privilege {
            sql: vec![grant("*.*", "SUPER", "SUPER ON *.*")],
            gives: "a checkpoint before each test and in DBWR-CKPT, and much more; clouds do not grant it",
            granted: has("*.*", "SUPER"),
            used: Use::Machine,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_follows_from_the_grants() {
        let missing = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|l| l.to_uppercase()).collect();
            let all = of(&lines, "'ann'@'%'", true, true);
            all.into_iter().filter(|p| !p.granted).map(|p| p.sql.into_iter().last().unwrap().grant).collect::<Vec<_>>()
        };
        assert_eq!(missing(&["GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost`"]), Vec::<String>::new());
        let plain = missing(&["GRANT USAGE ON *.* TO `ann`@`%`", "GRANT ALL PRIVILEGES ON `loadline`.* TO `ann`@`%`"]);
        assert_eq!(plain.len(), 4, "{plain:?}");
        let none = missing(&["GRANT USAGE ON *.* TO `ann`@`%`", "GRANT ALL PRIVILEGES ON `other`.* TO `ann`@`%`"]);
        assert!(none.len() == 5 && none[0].contains("GRANT ALL ON loadline.* TO 'ann'@'%'"), "{none:?}");
        for (pattern, covers) in
            [("load%", true), ("load____", true), ("loa\\_line", false), ("%", true), ("loadlin", false)]
        {
            let lines = missing(&[&format!("GRANT ALL PRIVILEGES ON `{pattern}`.* TO `ann`@`%`")]);
            assert_eq!(!lines.iter().any(|l| l.contains("loadline.*")), covers, "{pattern}: {lines:?}");
        }
        let most = missing(&[
            "GRANT PROCESS, SLAVE MONITOR ON *.* TO `ann`@`%`",
            "GRANT ALL PRIVILEGES ON `loadline`.* TO `ann`@`%`",
            "GRANT SELECT ON `performance_schema`.* TO `ann`@`%`",
        ]);
        assert!(most.len() == 1 && most[0].contains("SUPER"), "{most:?}");
    }

    #[test]
    fn accounts_are_quoted() {
        assert_eq!(quoted_account("ann@10.%"), "'ann'@'10.%'");
        assert_eq!(quoted_account("o'brien@x@h"), "'o''brien@x'@'h'");
    }
}
