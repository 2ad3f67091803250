//! PostgreSQL as a user has it: passwords, privileges, limits, settings that spoil figures.

use crate::common::*;

#[test]
fn a_users_server_is_measured_checked_and_left_clean() {
    let server = Server::start(&["max_connections=20", "superuser_reserved_connections=3"]);
    let spoiled = Server::start(&["synchronous_commit=off", "fsync=off"]);
    server.sql("CREATE ROLE ann LOGIN PASSWORD 'tops3cret'; GRANT CREATE ON DATABASE postgres TO ann").unwrap();
    let [url, role, bad] = [server.url(), server.tcp("ann", Some("tops3cret")), spoiled.url()];
    hold_runs(include_str!("data/demands/users.toml"), &[("{url}", &url)]);
    let names = [("{url}", url.as_str()), ("{role}", &role), ("{spoiled}", &bad)];
    hold_runs(include_str!("data/demands/postgres.toml"), &names);
    assert!(!server.has_schema());

    run(&["doctor", "--target", &bad]).fails(3, &[]);
    // Nothing can be written where all is read only: refused, with --force as well.
    spoiled.sql("ALTER DATABASE postgres SET default_transaction_read_only = on").unwrap();
    let dir = results();
    lat1(&bad, dir.path(), "--no-probe --force").fails(3, &["default_transaction_read_only"]);
}
