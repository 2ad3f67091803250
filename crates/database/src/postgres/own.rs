//! Marks loadline's own queries.

/// Beginning of loadline's own queries while something is watched: they are left out of the statements. (The server cuts off
/// comments before a statement.)
pub(super) const OWN: &str = "SELECT /* loadline */";

/// `sql` with that beginning.
pub(super) fn own(sql: &str) -> String {
    sql.replacen("SELECT", OWN, 1)
}
