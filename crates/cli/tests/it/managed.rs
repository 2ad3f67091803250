//! Servers whose machine loadline cannot enter, and roles without privileges: what bounds their figures, and what is missing.

use crate::common::*;

fn statements(script: &str) -> impl Iterator<Item = &str> {
    script.lines().filter(|line| !line.starts_with("--") && !line.is_empty())
}

/// Subjects and advice of the doctor's findings that are not fine.
fn findings(target: &str) -> Vec<[String; 3]> {
    let ran = far(&["doctor", "--target", target, "--format", "json"]);
    let rows: Vec<Value> = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}: {}", ran.said()));
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let bad = rows.iter().filter(|row| row["verdict"] != "ok");
    bad.map(|row| ["subject", "value", "advice"].map(|key| text(row, key))).collect()
}

/// Privileges give all that `target` lacks, but for the operating system's figures and what the
/// product does not have.
fn only_the_machine_is_missing(target: &str) {
    for [subject, _, advice] in findings(target) {
        assert_ne!(subject, "privilege", "{advice}");
        if subject.starts_with("figure") {
            let known = [
                "for the whole server",
                "another machine",
                "has no flash cache",
                "from version 18 on",
                "does not count the blocks of its log",
                "in a circle",
            ];
            assert!(known.iter().any(|why| advice.contains(why)), "{subject}: {advice}");
        }
    }
}

/// Runs workloads on three times the memory that the server is said to have.
fn bounded(target: &str, results: &Path, workloads: &str) -> Ran {
    let line = format!("run --target {target} --results {} --workload {workloads}", results.display());
    far(&words(&format!("{line} --server-memory 16MiB --jobs 2 --duration 600ms --warmup 200ms --size 48MiB")))
}

#[test]
fn a_plain_role_on_a_postgres_elsewhere() {
    let server = Server::start(&["shared_buffers=8MB"]);
    server.sql("CREATE ROLE \"o'ann\" LOGIN PASSWORD 'x'; REVOKE CREATE ON DATABASE postgres FROM PUBLIC").unwrap();
    let target = server.tcp("o'ann", Some("x"));
    let missing = || findings(&target).into_iter().filter(|[subject, ..]| subject == "privilege").count();
    assert_eq!(missing(), 4, "CREATE, pg_monitor, pg_checkpoint, SET");
    let script = ok_far(&["doctor", "--target", &target, "--grants"]);
    let changes = |sql: &str| sql.contains("ALTER SYSTEM") || sql.contains("EXTENSION");
    assert!(script.lines().any(changes) && !statements(&script).any(changes), "{script}");
    statements(&script).for_each(|sql| drop(server.sql(sql).unwrap()));
    only_the_machine_is_missing(&target);
    assert_eq!(statements(&ok_far(&["doctor", "--target", &target, "--grants"])).count(), 0);

    // The memory is not that of this machine: what counts here is what follows from it.
    let dir = results();
    let read = &sound_tests(&bounded(&target, dir.path(), "STO-READ"))[0];
    let bound = figure(read, "cached_pct_max");
    assert!(bound > 16.0 / 48.0 * 100.0 && bound < 100.0 && read["data_source"] == "bounded", "{read:#}");
    assert!(check(read, "data-source")["detail"].as_str().unwrap().contains("16.0 MiB (--server-memory)"));

    // Who may not read the server's files has no CPU figures, and why.
    assert!(read.get("cpu_busy_pct").is_none() && read["absent"]["cpu_busy_pct"].is_string(), "{read:#}");

    let back = ok_far(&["doctor", "--target", &target, "--revoke"]);
    ok_far(&["clean", "--target", &target]);
    statements(&back).for_each(|sql| drop(server.sql(sql).unwrap()));
    assert_eq!(missing(), 4, "{back}");
    assert!(figure(read, "read_time_us_mean") > 0.0, "timed by the server");
    assert_eq!(read["limit"]["name"], "empty statements", "{}", read["absent"]["limit_tps"]);

    // Who may read them has those of the server, through the database, and none of its devices.
    let line = format!("run --target {} --results {}", server.tcp("boss", Some("tops3cret")), dir.path().display());
    let ran = far(&words(&format!("{line} --workload LGWR-LAT1 --jobs 2 --duration 600ms --warmup 200ms")));
    let log = &sound_tests(&ran)[0];
    assert!(figure(log, "cpu_busy_pct") > 0.0 && log["absent"]["device_util_pct"].is_string(), "{log:#}");
    assert_eq!(manifest_of(&ran.folder())["target"]["local"], false);

    run(&["run", "--target", &server.url(), "--server-memory", "16MiB"])
        .fails(2, &["16.0 MiB is too small: the machine"]);
}

#[test]
fn doctor_and_dry_run_say_the_same_size_for_storage_workloads() {
    let server = Server::start(&["shared_buffers=16MB"]);
    server.sql("CREATE ROLE ann LOGIN PASSWORD 'x'").unwrap();
    let dry = |target: &str, more: &str| format!("run --target {target} --plan storage --dry-run {more}");
    let said = |out: &str, before: &str| {
        let line = out.lines().find_map(|line| line.split_once(before)).unwrap_or_else(|| panic!("{before}: {out}"));
        line.1.to_owned()
    };
    // One that may see the data directory, one that may not, and one elsewhere.
    let [boss, ann] = [server.url(), server.tcp("ann", Some("x"))];
    let here = [&boss, &ann].map(|target| {
        let doctor = command(&format!("doctor --target {target}")).out;
        let size = said(&doctor, "--size for storage workloads = ");
        assert_eq!(said(&printed(&dry(target, "")), "needs a --size of "), size);
        size
    });
    assert_ne!(here[0], here[1]);
    let times = |size: &str, number: &str, of: &str| assert!(size.starts_with(number) && size.contains(of), "{size}");
    times(&here[0], "192MiB or more", "12 times the database's cache of 16.0 MiB");
    let given = said(&ok_far(&words(&dry(&ann, "--server-memory 128GiB"))), "needs a --size of ");
    times(&given, "1280GiB or more", "10 times the memory of its machine (128.0 GiB)");
    // Who does not reach the server reads the rule, and why.
    let nobody = said(&printed(&dry("postgres://ann@127.0.0.1:1/x", "")), "needs a --size of ");
    times(&nobody, "12 times the database's cache", "cannot be asked: 127.0.0.1:1");
    // A database that is a file is not made.
    let dir = results();
    let file = dir.path().join("x.db");
    let said = printed(&dry(&format!("sqlite:{}", file.display()), ""));
    assert!(!said.contains("needs a --size") && !file.exists(), "{said}");
}

#[test]
#[ignore = "nightly: a checkpoint that others hold up takes longer than the window, and commits change their speed"]
fn writes_to_a_postgres_elsewhere_are_bounded() {
    let server = Server::start(&["shared_buffers=8MB"]);
    // A superuser reads the memory of the server's machine, which is this one: 16 MiB would be refused.
    server.sql("CREATE ROLE ann LOGIN PASSWORD 'x'").unwrap();
    let (dir, target) = (results(), server.tcp("ann", Some("x")));
    let script = ok_far(&["doctor", "--target", &target, "--grants"]);
    statements(&script).for_each(|sql| drop(server.sql(sql).unwrap()));
    let tests = sound_tests(&bounded(&target, dir.path(), "DBWR-THR,LGWR-LAT1"));
    let [log, write] = &tests[..] else { panic!("{} tests", tests.len()) };
    let synced = check(write, "data-written")["detail"].as_str().unwrap();
    assert!(synced.contains("a page cache lent at most") && figure(write, "cached_pct_max") <= 50.0, "{synced}");
    assert_eq!(log["limit"]["name"], "smallest commits", "{}", log["absent"]["limit_tps"]);
}

fn ok_far(args: &[&str]) -> String {
    let ran = far(args);
    assert_eq!(ran.code, 0, "unshare needs root: {}", ran.said());
    ran.out
}

#[test]
fn a_plain_user_on_a_mariadb_elsewhere() {
    let server = Maria::start(&["--innodb-buffer-pool-size=32M"]);
    server.sql("CREATE USER 'o\\'ann'@'%' IDENTIFIED BY 'x'").unwrap();
    let target = server.tcp("o'ann:x", "").replace("localhost", "127.0.0.1");
    assert!(
        findings(&target).iter().any(|[subject, _, advice]| subject == "privilege" && advice.contains("loadline.*"))
    );
    let script = ok_far(&["doctor", "--target", &target, "--grants"]);
    statements(&script).for_each(|sql| drop(server.sql(sql).unwrap()));
    only_the_machine_is_missing(&target);

    let dir = results();
    let on_maria = |more: &str| {
        let results = dir.path().display();
        far(&words(&format!("run --target {target} --workload STO-READ --results {results} --no-probe {more}")))
    };
    on_maria("--server-memory 16MiB").fails(2, &["the database's own cache has 32.0 MiB"]);
    let window = "--jobs 1 --duration 500ms --warmup 300ms --size 96MiB --server-memory 33MiB";
    let test = &tests_of(&on_maria(window).folder())[0];
    assert!(sound(test), "{}", test["invalid_reason"]);
    assert!(figure(test, "cached_pct_max") > 33.0 / 96.0 * 100.0 && test["data_source"] == "bounded", "{test:#}");
    let back = ok_far(&["doctor", "--target", &target, "--revoke"]);
    statements(&back).for_each(|sql| drop(server.sql(sql).unwrap()));
    let granted = server.sql("SHOW GRANTS FOR 'o\\'ann'@'%'").unwrap();
    assert_eq!(granted.lines().count(), 1, "that of every user: {granted}");
}
