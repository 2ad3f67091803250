//! Pages: of every test of a run, and of a running database that is watched without any load.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::common::{ONE_JOB, Server, ok, results, run, signal, sound_tests, start, wait_for};

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
    let (watched, ended) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                server.sql(work).unwrap();
            }
        });
        let watched = run(&["snapshot", "--target", &url, "--for", "2s", "--results", folder, "--format", "text"]);
        // A second one, ended by the user, keeps what it saw.
        let second = start(&["snapshot", "--target", &url, "--for", "5m", "--results", folder]);
        wait_for("its session", watches);
        std::thread::sleep(std::time::Duration::from_millis(2500));
        signal(&second, nix::sys::signal::Signal::SIGINT);
        let ended = second.wait_with_output().unwrap();
        over.store(true, Relaxed);
        (watched, ended)
    });
    assert_eq!(ended.status.code(), Some(130), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(watched.code, 0, "{}", watched.said());
    let page = watched.out;
    assert_eq!(objects(), before, "nothing is made");
    assert!(value(&page, "Transactions  ") > 10.0 && value(&page, "Redo syncs") > 10.0, "{page}");
    assert!(page.contains("Top waits") && page.contains("Top statements"), "{page}");
    assert!(page.contains("public.<b>t") && page.contains("What the sampling cost"), "{page}");
    assert!(!page.contains("/* loadline */") && !page.contains("geheim"), "{page}");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    let of =
        |extension: &str| files.iter().filter(|f| f.extension().is_some_and(|e| e == extension)).collect::<Vec<_>>();
    let [first, second] = of("json")[..] else { panic!("{files:?}") };
    let both =
        ok(&["snapshot", first.to_str().unwrap(), second.to_str().unwrap(), "--format", "md", "--output", "-"]).out;
    assert!(both.contains("B / A") && both.contains("ended by the user after"), "{both}");
    let html = std::fs::read_to_string(of("html")[0]).unwrap();
    assert!(html.contains("&lt;b&gt;t") && !html.contains("<b>t"), "names are escaped");

    // A server that goes away: what was seen until then is kept, and it does not watch on.
    let third = start(&["snapshot", "--target", &url, "--for", "5m", "--results", folder]);
    wait_for("its session", watches);
    std::thread::sleep(std::time::Duration::from_millis(2500));
    server.kill();
    let ended = third.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.code() == Some(1) && said.contains("the database went away after"), "{said}");
    let kept = |extension: &str| {
        let all = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path());
        all.filter(|f| f.extension().is_some_and(|e| e == extension)).count()
    };
    assert_eq!((kept("json"), kept("html")), (3, 2), "{said}");
}

#[test]
fn every_test_has_a_page_with_its_figures() {
    let dir = results();
    let folder = dir.path().to_str().unwrap();
    let args = ["run", "--workload", "LGWR-LAT1,TP-LOOKUP", "--results", folder, "--size", "1MiB"];
    let ran = run(&[&args[..], &ONE_JOB].concat());
    let (tests, run) = (sound_tests(&ran), ran.folder());
    let index = std::fs::read_to_string(run.join("report/index.html")).unwrap();
    for (test, number) in tests.iter().zip(1..) {
        let link = format!("<a href=\"test-{number}.html\">");
        assert!(index.contains(&link) && run.join(format!("report/test-{number}.html")).exists(), "{link}");
        let page = ok(&["report", run.to_str().unwrap(), "--test", &number.to_string(), "--format", "text"]).out;
        let tps = test["commit_throughput_tps"].as_f64().unwrap();
        assert!((value(&page, "Transactions  ") / tps - 1.0).abs() < 0.01, "{tps}: {page}");
        assert!(page.contains("SQLite") && page.contains("Latencies"), "{page}");
    }
    let two = ok(&["report", run.to_str().unwrap(), "--test", "1,2", "--format", "text"]).out;
    assert!(two.contains("· B: TP-LOOKUP, 1 job"), "{two}");
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let run_of = |args: &[&str]| {
        let ran = run(args);
        (ran.code, ran.err)
    };
    for (args, says) in [
        (&["snapshot"][..], "--target is missing"),
        (&["snapshot", "--target", "postgres-temp:"], "loadline makes this server"),
        (&["snapshot", "--target", "sqlite:"], "loadline makes this server"),
        (&["snapshot", "--target", "postgres://x@127.0.0.1:1/x", "--for", "0.1s"], "1s to 24h"),
        (&["snapshot", "--target", "postgres://x@127.0.0.1:1/x", "--for", "soon"], "'soon'"),
        (&["snapshot", "nothing.json"], "nothing.json does not exist"),
        (&["report", "nothing", "--test", "1"], "'nothing' does not exist"),
    ] {
        let (code, err) = run_of(args);
        assert!(code == 2 && err.contains(says), "{args:?}: {code}, {err}");
    }
    assert_eq!(run_of(&["snapshot", "--target", "postgres://x@127.0.0.1:1/x"]).0, 3);
}
