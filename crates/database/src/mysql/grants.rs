//! The privileges that loadline uses, and which of them the user has.

use super::knowledge::{Grant, KNOWLEDGE};
use super::wire::Connection;
use crate::descriptor::Release;
use crate::error::TargetError;
use crate::role::{GrantSql, Privilege};

/// The lines of SHOW GRANTS, in capitals, those of active roles included.
pub(super) fn lines(c: &mut Connection) -> Result<Vec<String>, TargetError> {
    // MariaDB shows the grants of the current role anyway.
    let roles =
        if c.version.mariadb { None } else { c.value("SELECT CURRENT_ROLE()")?.filter(|roles| roles != "NONE") };
    let using = roles.map_or(String::new(), |roles| format!(" FOR CURRENT_USER() USING {roles}"));
    let rows = c.query(&format!("SHOW GRANTS{using}"))?;
    Ok(rows.into_iter().flatten().flatten().map(|line| line.to_uppercase()).collect())
}

/// All of them, with statements for this account.
pub(super) fn privileges(c: &mut Connection) -> Result<Vec<Privilege>, TargetError> {
    let lines = lines(c)?;
    let account = c.value("SELECT CURRENT_USER()")?.unwrap_or_default();
    let on = c.number("SELECT @@GLOBAL.performance_schema")? == Some(1.0);
    let account = quoted_account(&account);
    Ok(granted(&lines, &account, Release::from(&c.version), on))
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

/// Privileges and place of a line of SHOW GRANTS. The account after them may have the name of a privilege.
pub(super) fn split_grant(line: &str) -> Option<(&str, &str)> {
    let (privileges, rest) = line.split_once(" ON ")?;
    Some((privileges, rest.split_once(" TO ")?.0))
}

/// `performance_schema`: whether the server has it, for which one of them is.
fn granted(lines: &[String], account: &str, release: Release, performance_schema: bool) -> Vec<Privilege> {
    let split = lines.iter().filter_map(|line| split_grant(line));
    let split: Vec<(&str, String)> = split.map(|(what, place)| (what, place.replace('`', ""))).collect();
    let privilege = |grant: &'static Grant| {
        let (_, place) = grant.sql.split_once(" ON ")?;
        let place = place.to_uppercase();
        let here = |of: &str| of == "*.*" || is_like(of.as_bytes(), place.as_bytes());
        let shows = |what: &str| grant.shown.iter().any(|name| what.contains(name)) || what.contains("ALL PRIVILEGES");
        // What comes from a wider grant, or from a role, cannot be taken back by itself.
        let by_itself =
            |(what, of): &(&str, String)| *of == place && grant.shown.first().is_some_and(|name| what.contains(name));
        let mut sql = GrantSql::for_role(&grant.sql, account);
        sql.revoke.take_if(|_| !split.iter().any(by_itself));
        // What is in the database may be others': `loadline clean` drops what is loadline's.
        let before = grant.before.clone().map(|grant| GrantSql { grant, revoke: None });
        Some(Privilege {
            sql: before.into_iter().chain([sql]).collect(),
            gives: &grant.gives,
            granted: split.iter().any(|(what, of)| here(of) && shows(what)),
            used: grant.used,
        })
    };
    let there = |grant: &&Grant| grant.versions.has(release) && (performance_schema || !grant.performance_schema);
    KNOWLEDGE.grants.iter().filter(there).filter_map(privilege).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor::Product;

    #[test]
    fn what_is_missing_follows_from_the_grants() {
        let missing = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|l| l.to_uppercase()).collect();
            let all = granted(&lines, "'ann'@'%'", Release { product: Product::Mariadb, number: [10, 11, 6] }, true);
            all.into_iter().filter(|p| !p.granted).map(|p| p.sql.into_iter().last().unwrap().grant).collect::<Vec<_>>()
        };
        assert_eq!(missing(&["GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost`"]), Vec::<String>::new());
        let plain = missing(&["GRANT USAGE ON *.* TO `ann`@`%`", "GRANT ALL PRIVILEGES ON `loadline`.* TO `ann`@`%`"]);
        assert_eq!(plain.len(), 4, "{plain:?}");
        let named = ["GRANT USAGE ON *.* TO `superprocess`@`%`", "GRANT ALL PRIVILEGES ON `loadline`.* TO `x`@`%`"];
        assert_eq!(missing(&named), plain, "a name is no privilege");
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
