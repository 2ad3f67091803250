//! Pages: of every test of a run, and of a running database that is watched without any load.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::common::*;

/// The first number after `name` in its line.
fn value(page: &str, name: &str) -> f64 {
    let line = page.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {page}"));
    let number = line[name.len()..].split_whitespace().next().unwrap_or_default();
    number.replace(',', "").parse().unwrap_or_else(|_| panic!("{line}"))
}

#[test]
fn a_running_server_is_watched_and_left_as_it_was() {
    let mut server =
        Server::start(&["shared_preload_libraries=pg_stat_statements", "primary_conninfo='password=geheim'"]);
    for sql in [
        "CREATE EXTENSION pg_stat_statements",
        "CREATE TABLE \"<b>t\" (id int, v int)",
        "INSERT INTO \"<b>t\" VALUES (1, 0)",
        "CREATE ROLE watcher LOGIN",
        "GRANT pg_monitor TO watcher",
        "ALTER ROLE watcher SET default_transaction_read_only = on",
    ] {
        server.sql(sql).unwrap();
    }
    let (dir, url) = (results(), server.url().replacen("boss@", "watcher@", 1));
    let folder = dir.path().to_str().unwrap();
    let objects = || server.sql("SELECT count(*) FROM pg_class").unwrap();
    let before = objects();
    let watches = || {
        let sessions = server.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'watcher'").unwrap();
        sessions != "0"
    };
    // The server reports a session's counters when it is idle: many short statements. Ended before anything can panic.
    let work = "DO $$ BEGIN FOR i IN 1..100 LOOP UPDATE \"<b>t\" SET v = v + 1; COMMIT; END LOOP; END $$";
    let over = AtomicBool::new(false);
    let snapshot = format!("snapshot --target {url} --results {folder}");
    // One that goes on until it is ended.
    let begun = || {
        let child = start(&words(&format!("{snapshot} --for 5m")));
        wait_for("its session", watches);
        std::thread::sleep(Duration::from_millis(2500));
        child
    };
    let (watched, second) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                server.sql(work).unwrap();
            }
        });
        let watched = command(&format!("{snapshot} --for 2s --format text"));
        // A second one, ended by the user, keeps what it saw.
        let second = begun();
        signal(&second, Signal::SIGINT);
        let second = ended(second);
        over.store(true, Relaxed);
        (watched, second)
    });
    second.fails(130, &[]);
    assert_eq!(watched.code, 0, "{}", watched.said());
    let page = watched.out;
    assert_eq!(objects(), before, "nothing is made");
    assert!(value(&page, "Transactions  ") > 10.0 && value(&page, "Redo syncs") > 10.0, "{page}");
    assert!(page.contains("Top waits") && page.contains("Top statements"), "{page}");
    assert!(page.contains("public.<b>t") && page.contains("What the sampling cost"), "{page}");
    assert!(!page.contains("/* loadline */") && !page.contains("geheim"), "{page}");
    let of = |extension: &str| -> Vec<PathBuf> {
        let all = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
        all.filter(|f| f.extension().is_some_and(|e| e == extension)).collect()
    };
    let [first, second] = &of("json")[..] else { panic!("{:?}", of("json")) };
    let both = printed(&format!("snapshot {} {} --format md --output -", first.display(), second.display()));
    assert!(both.contains("B / A") && both.contains("ended by the user after"), "{both}");

    // A server that goes away: what was seen until then is kept, and it does not watch on.
    let third = begun();
    server.kill();
    ended(third).fails(1, &["the database went away after"]);
    assert_eq!([of("json").len(), of("html").len()], [3, 2]);
}
