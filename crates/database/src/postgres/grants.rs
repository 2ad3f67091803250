//! The privileges that loadline uses, and which of them the role has.

use super::knowledge::KNOWLEDGE;
use super::wire::Connection;
use crate::error::TargetError;
use crate::role::{GrantSql, Privilege, Use};

/// All of them, with statements for this role and database.
#[expect(clippy::too_many_lines)]
pub(super) fn privileges(c: &mut Connection) -> Result<Vec<Privilege>, TargetError> {
    let parameters = c.version.has_parameter_privileges();
    let rows = c.query(&format!(
        "SELECT quote_ident(current_user), quote_ident(current_database()), \
         has_database_privilege(current_database(), 'CREATE') \
         OR EXISTS (SELECT FROM pg_namespace WHERE nspname = 'loadline' AND pg_has_role(nspowner, 'USAGE')), \
         pg_has_role('pg_monitor', 'USAGE'), ({}), ({}), \
         has_function_privilege('pg_catalog.pg_read_file(text)', 'EXECUTE') AND pg_has_role('pg_read_server_files', 'USAGE'), \
         current_setting('track_wal_io_timing') = 'on', \
         EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_stat_statements'), \
         EXISTS (SELECT FROM pg_database WHERE datname = current_database() AND pg_has_role(datdba, 'USAGE')), \
         (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)",
        KNOWLEDGE.texts.may_checkpoint.at(c.version).unwrap_or_default().trim_start_matches("SELECT "),
        KNOWLEDGE.texts.reads_are_timed.at(c.version).unwrap_or_default()
    ))?;
    let row = rows.into_iter().next().unwrap_or_default();
    let text = |i: usize| row.get(i).cloned().flatten().unwrap_or_default();
    let (role, database) = (text(0), text(1));
    let granted = |i: usize| text(i) == "t";
    let mut create = GrantSql::of(&format!("CREATE ON DATABASE {database}"), &role);
    // An owner has it without a grant.
    create.revoke.take_if(|_| granted(9));
    let mut all = vec![
        Privilege {
            sql: vec![create],
            gives: "the schema 'loadline' with all its tables",
            granted: granted(2),
            used: Use::Needed,
        },
        Privilege {
            sql: vec![GrantSql::of("pg_monitor", &role)],
            gives: "settings, the directories of data and log, sessions of other roles",
            granted: granted(3),
            used: Use::Figures,
        },
        Privilege {
            sql: vec![if parameters {
                GrantSql::of("SET ON PARAMETER track_io_timing", &role)
            } else {
                let role = |does: &str| format!("ALTER ROLE {role} {does}");
                GrantSql::change(role("SET track_io_timing = on"), role("RESET track_io_timing"))
            }],
            gives: "read times by the server's clock (or track_io_timing = on for the whole server, as in a cloud's parameters)",
            granted: granted(5),
            used: Use::Figures,
        },
    ];
    if c.version.has_checkpoint_role() {
        all.push(Privilege {
            sql: vec![GrantSql::of("pg_checkpoint", &role)],
            gives: "a checkpoint before each test, in DBWR-CKPT, and after a test as the proof that its writes reached storage",
            granted: granted(4),
            used: Use::Figures,
        });
    }
    all.extend([
        Privilege {
            sql: vec![
                GrantSql::change("ALTER SYSTEM SET track_wal_io_timing = on", "ALTER SYSTEM RESET track_wal_io_timing"),
                GrantSql::change("SELECT pg_reload_conf()", "SELECT pg_reload_conf()"),
            ],
            gives: "times of the log's writes and syncs; it is a setting of the whole server, in a cloud one of its parameters",
            granted: granted(7),
            used: Use::Setting,
        },
        Privilege {
            sql: vec![GrantSql::change("CREATE EXTENSION IF NOT EXISTS pg_stat_statements", "DROP EXTENSION IF EXISTS pg_stat_statements")],
            gives: "what each statement cost, on the pages of tests; the server must also have it in shared_preload_libraries",
            granted: granted(8),
            used: Use::Setting,
        },
        Privilege {
            sql: vec![
                GrantSql::of("pg_read_server_files", &role),
                GrantSql::of("EXECUTE ON FUNCTION pg_catalog.pg_read_file(text)", &role),
            ],
            gives: "CPU figures and memory of the server's machine, and any file that the server can read; clouds do not grant it",
            granted: granted(6),
            used: Use::Machine,
        },
    ]);
    // A superuser has them all without a grant.
    for privilege in all.iter_mut().filter(|p| p.used != Use::Setting && granted(10)) {
        privilege.sql.iter_mut().for_each(|sql| sql.revoke = None);
    }
    Ok(all)
}
