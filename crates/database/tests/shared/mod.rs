//! Equal duties of all servers: tests that every binary runs on its own.

use loadline_database::{
    ClientSession, DatabaseSession, LoadProgress, Observer, Scope, SessionTasks, Target, TargetError, Work,
};
use loadline_model::Severity;
use loadline_model::activity::View;
use loadline_model::plan::Payload;
use loadline_model::snapshot::counter;
use loadline_workload::{Arg, Execute};

/// Runs statements without loadline.
pub(crate) type Sql<'a> = &'a dyn Fn(&str) -> String;

/// Statements that commit at once, and when the last commit was seen to begin.
pub(crate) struct Autocommit<'a>(pub(crate) &'a mut dyn ClientSession, pub(crate) Option<u64>);

impl Execute for Autocommit<'_> {
    type Error = TargetError;

    fn execute(&mut self, statement: usize, args: &[Arg<'_>]) -> Result<u64, TargetError> {
        let (rows, done) = self.0.execute_and_commit(statement, args)?;
        self.1 = done;
        Ok(rows)
    }

    fn bulk(&mut self, table: usize, first: i64, rows: u32) -> Result<u64, TargetError> {
        self.0.bulk(table, first, rows)
    }
}

/// Demands that the database is refused, with all of `parts`.
#[track_caller]
pub(crate) fn assert_refused<T>(result: Result<T, TargetError>, parts: &[&str]) {
    match result.map(drop) {
        Err(TargetError::Refused(text)) if parts.iter().all(|part| text.contains(part)) => {}
        other => panic!("{parts:?}: {other:?}"),
    }
}

/// Demands that what was given is refused, with all of `parts`.
#[track_caller]
pub(crate) fn assert_usage<T>(result: Result<T, TargetError>, parts: &[&str]) {
    match result.map(drop) {
        Err(TargetError::Usage(text)) if parts.iter().all(|part| text.contains(part)) => {}
        other => panic!("{parts:?}: {other:?}"),
    }
}

/// Waits until `condition` holds. How long that may take is no claim.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "waited for {what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

pub(crate) fn work(code: &str, given: &[(&str, i64)]) -> Work {
    Work::from_catalogue(code, given).unwrap()
}

/// The work whose tables have the rows of so many jobs now.
pub(crate) fn loaded(target: &dyn Target, work: Work, jobs: u32) -> Work {
    target.create(&work).unwrap();
    target.load(&work, jobs).unwrap();
    work
}

pub(crate) fn prepare(target: &dyn Target, work: &Work, jobs: u32) {
    target.create(work).unwrap();
    target.load(work, jobs).unwrap();
    target.abilities().driver().unwrap().install(work).unwrap();
}

/// One transaction at the client, as the runner does it. Returns when a statement's own commit was seen to begin.
pub(crate) fn transact(
    stream: &mut loadline_workload::Stream,
    work: &Work,
    session: &mut dyn ClientSession,
) -> Option<u64> {
    if !work.program.is_single_statement() {
        session.begin().unwrap();
        stream.transaction(session).unwrap();
        session.commit().unwrap();
        return None;
    }
    let before = loadline_storage::now_ns();
    let mut autocommit = Autocommit(session, None);
    stream.transaction(&mut autocommit).unwrap();
    let seen = autocommit.1;
    assert!(seen.is_none_or(|at| before < at && at <= loadline_storage::now_ns()), "the commit began in between");
    seen
}

/// `contents`: a checksum of the workload's rows. Returns how many commits were seen to begin.
pub(crate) fn both_drivers_write_the_same_bytes(target: &dyn Target, contents: impl Fn(&Work) -> String) -> usize {
    let mut seen = 0;
    let of = |code: &str| Work::from_catalogue(code, &[]).unwrap();
    let skewed = |(accounts, keys): (i64, &str)| {
        let work = Work::from_catalogue("TP-LIGHT", &[("accounts", accounts)]).unwrap();
        Work::new(work.workload, work.params.with_keys(Some(keys.parse().unwrap())), 42, Default::default())
    };
    let skewed = [(1000, "zipf:1.1"), (7, "zipf:2"), (1000, "zipf:0.3"), (1000, "hot:10%:90%")].map(skewed);
    let alike = [
        of("LGWR-LAT1"),
        of("LGWR-LAT25"),
        of("LGWR-THR"),
        of("LGWR-MIXED"),
        // Of a thousand payloads five are new.
        Work { payload: Payload { compressibility: 0.0, duplicates: Some(0.995) }, ..of("LGWR-LAT1") },
    ];
    for work in alike.into_iter().chain(skewed) {
        // Jobs draw with another seed than the rows, as in every window of a run but the first.
        let work = Work { draws: 77, ..work };
        let code = &work.workload.code;
        prepare(target, &work, 3);
        let loaded = contents(&work);
        let job = 1;
        let mut session = target.abilities().driver().unwrap().database_session(&work, job).unwrap();
        for _ in 0..20 {
            // A slice whose end is in the past runs one transaction.
            let slice = session.run_slice(0).unwrap();
            assert_eq!((slice.transaction.count(), slice.commit.count()), (0, 0));
            assert!(slice.end.is_some());
        }
        let in_database = contents(&work);
        assert_ne!(loaded, in_database);
        let rows = work.stream(job).unwrap().rows_changed_by(&work.program, 20) as i64;
        assert_eq!(target.evidence(&work).unwrap(), Some(rows), "{code}");

        prepare(target, &work, 3);
        assert_eq!(contents(&work), loaded, "{code}: loading is deterministic");
        let mut client = target.client_session(&work, job).unwrap();
        let mut stream = work.stream(job).unwrap();
        seen += (0..20).filter_map(|_| transact(&mut stream, &work, client.as_mut())).count();
        assert_eq!(contents(&work), in_database, "{code}");
        assert_eq!(target.evidence(&work).unwrap(), Some(rows), "{code}");
    }
    seen
}

fn tables_loaded(target: &dyn Target, work: &Work) -> Vec<loadline_model::manifest::TableLoad> {
    let progress = LoadProgress::default();
    target.load_watched(work, 1, &progress).unwrap();
    progress.done()
}

/// `sum`: a checksum of SRV-QUERY1's table `lookup`; `cut` takes a batch of it away, as if a load had been interrupted. The data set is
/// kept then, and changed. Returns the checksum of all rows.
pub(crate) fn the_data_set_is_loaded_once_and_resumed(
    target: &dyn Target,
    sql: Sql<'_>,
    sum: &str,
    cut: &str,
) -> String {
    let work = work("SRV-QUERY1", &[]);
    let data_set = || target.abilities().tables.unwrap();
    target.create(&work).unwrap();
    assert_eq!(tables_loaded(target, &work)[0].rows_loaded, 100_000);
    let whole = sql(sum);
    let found = data_set().data_set().unwrap();
    assert!(found[0].complete && !found[0].kept && found[0].holds.rows == 100_000, "{found:?}");
    // A complete table is neither counted nor loaded again.
    assert!(tables_loaded(target, &work).is_empty());
    sql(cut);
    sql("UPDATE loadline.data_set SET complete = 0");
    assert_eq!(tables_loaded(target, &work)[0].rows_loaded, 4096, "only what was missing");
    assert_eq!(sql(sum), whole);
    // Complete, and changed since.
    let shared = work.workload.tables.iter().find(|t| t.name == "lookup").unwrap();
    let check = || data_set().check_rows(&work, shared);
    check().unwrap();
    sql("UPDATE loadline.data_lookup SET payload = '' WHERE id % 10 = 3");
    assert_refused(check(), &["0 bytes instead of 100 in column 'payload'"]);
    // Other data are not touched.
    let other = Work { seed: work.seed + 1, ..work.clone() };
    assert_refused(target.load(&other, 1), &["other data", "--reload"]);
    target.clean_after_run(true).unwrap();
    assert!(data_set().data_set().unwrap()[0].kept);
    whole
}

/// `keys`: the query of the number of keys and indexes of STO-READ-ASYNC's table, of which there are `at_first` before it is loaded, and
/// the statement that takes those away that come after.
pub(crate) fn whole_tables_are_loaded_once_and_then_indexed(
    target: &dyn Target,
    open: &dyn Fn() -> Box<dyn Target>,
    sql: Sql<'_>,
    [keys, at_first, drop_keys]: [&str; 3],
    path: &str,
) {
    let work = work("STO-READ-ASYNC", &[]).with_size(4 << 20);
    let rows = work.workload.tables[0].total_rows(&work.params, 0);
    let count = || sql("SELECT COUNT(*) FROM loadline.sto_read_async_spread");
    target.create(&work).unwrap();
    assert_eq!(sql(keys), at_first, "keys are created after loading");
    let stopped = LoadProgress::default();
    stopped.stop();
    assert!(target.load_watched(&work, 1, &stopped).is_err(), "a stopped load ends with an error");
    let done = tables_loaded(target, &work);
    assert!(done[0].table == "spread of STO-READ-ASYNC" && done[0].rows_loaded == rows, "{done:?}");
    assert!(done[0].path.starts_with(path) && done[0].loaders > 1, "{done:?}");
    assert_eq!((sql(keys), count()), ("2".to_owned(), rows.to_string()));
    // The workload deletes no rows, so they are not counted again.
    sql("DELETE FROM loadline.sto_read_async_spread WHERE id < 10");
    assert!(tables_loaded(target, &work).is_empty() && count() == (rows - 10).to_string());
    // A new target counts the rows and loads the missing ones.
    assert_eq!(tables_loaded(open().as_ref(), &work)[0].rows_loaded, 4096);
    assert_eq!((sql(keys), count()), ("2".to_owned(), rows.to_string()));
    // A load that was interrupted before it created the keys.
    sql(drop_keys);
    let rest = tables_loaded(open().as_ref(), &work);
    assert!(rest[0].rows_loaded == 0 && sql(keys) == "2", "{rest:?}");
    target.drop_tables(&work).unwrap();
    target.clean().unwrap();
}

/// The task of the one session that works: it is of this machine.
pub(crate) fn assert_one_task(tasks: &SessionTasks) {
    let [id] = tasks.ids[..] else { panic!("{tasks:?}") };
    let command = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap();
    assert!(tasks.commands.iter().any(|c| command.contains(c)), "{command}");
}

/// Transactions of four short slices.
pub(crate) fn done_in_slices(session: &mut dyn DatabaseSession) -> f64 {
    let mut slice = || session.run_slice(loadline_storage::now_ns() + 50_000_000).unwrap();
    (0..4).map(|_| slice().transaction.count() + 1).sum::<u64>() as f64
}

/// Demands that `observer` sees other sessions at work while `query` runs in one, and their CPU time, which is returned.
pub(crate) fn others_at_work_are_seen(observer: &mut dyn Observer, query: impl FnOnce() + Send) -> f64 {
    let (mut seen, mut used): (_, Vec<f64>) = (0, Vec::new());
    std::thread::scope(|scope| {
        let query = scope.spawn(query);
        while !query.is_finished() {
            seen = seen.max(observer.sample_waits().unwrap().unwrap().others.unwrap());
            used.extend(observer.snapshot().unwrap().counters.get(counter::OTHER_SESSIONS_CPU_NS).copied());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
    let last = *used.last().unwrap();
    assert!(seen >= 1 && used.is_sorted() && used[0] < last, "{seen}, {used:?}");
    last
}

/// How many clients `target` sees to wait for `event` while `sleep` runs in one; the jobs do not. `each` is called meanwhile.
pub(crate) fn waits_of_all_clients_are_sampled(
    target: &dyn Target,
    event: &str,
    sleep: impl FnOnce() + Send,
    mut each: impl FnMut(),
) -> u32 {
    let mut jobs = target.observer().unwrap();
    let mut all = target.observer_of(Scope::All).unwrap();
    std::thread::scope(|scope| {
        let query = scope.spawn(sleep);
        let (mut seen, mut of_jobs) = (0, 0);
        while !query.is_finished() {
            let sample = all.sample_waits().unwrap().unwrap();
            seen = seen.max(sample.sessions.get(event).copied().unwrap_or(0));
            of_jobs += jobs.sample_waits().unwrap().unwrap().sessions.len();
            each();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(of_jobs, 0);
        seen
    })
}

/// Findings for a user without privileges: the grants that are missing, of which the first is needed to create tables, and that so many
/// jobs are allowed because of a limit.
pub(crate) fn a_poor_user_is_told(target: &dyn Target, grants: &[(&str, Severity)], jobs: u32, limit: &str) {
    assert_refused(target.create(&work("LGWR-LAT1", &[])), &[grants[0].0]);
    let findings = target.doctor().unwrap();
    for (grant, severity) in grants {
        let lacks = findings.iter().find(|f| f.id == "privilege" && f.advice.contains(grant));
        assert_eq!(lacks.map(|f| f.severity), Some(*severity), "{grant}: {findings:?}");
    }
    let allowed = target.job_limit().unwrap();
    assert!(allowed.jobs == Some(jobs) && allowed.because.contains(limit), "{allowed:?}");
}

/// `bad`: a payload of LGWR-LAT1 that the server refuses with `code`. Returns the session, and what a COMMIT after the refusal gives.
pub(crate) fn a_failed_statement_is_an_error_and_the_session_lives_on(
    target: &dyn Target,
    work: &Work,
    bad: &[u8],
    code: &str,
) -> (Box<dyn ClientSession>, Result<(), TargetError>) {
    let good = [Arg::Bytes(&[7; 200]), Arg::Int(0)];
    let bad = [Arg::Bytes(bad), Arg::Int(1)];
    let done = |rows| assert_eq!(target.evidence(work).unwrap(), Some(rows));
    let refused = |result: Result<_, TargetError>| match result.map(drop) {
        Err(TargetError::Server(e)) => assert!(e.code == code && e.text.contains(code), "{e}"),
        other => panic!("{other:?}"),
    };
    let mut s = target.client_session(work, 0).unwrap();
    s.begin().unwrap();
    assert_eq!(s.execute(0, &good).unwrap(), 1);
    refused(s.execute(0, &bad));
    let committed = s.commit();
    s.rollback().unwrap();
    let kept = i64::from(committed.is_ok());
    done(kept);
    s.begin().unwrap();
    assert_eq!(s.execute(0, &good).unwrap(), 1);
    s.rollback().unwrap();
    done(kept);
    s.begin().unwrap();
    assert_eq!(s.execute(0, &good).unwrap(), 1);
    s.commit().unwrap();
    done(kept + 1);
    refused(s.execute_and_commit(0, &bad).map(|(rows, _)| rows));
    s.rollback().unwrap();
    assert_eq!(s.execute_and_commit(0, &good).unwrap().0, 1);
    assert_eq!(s.execute_and_commit(0, &[Arg::Bytes(&[7; 200]), Arg::Int(-5)]).unwrap().0, 0, "no such row");
    done(kept + 2);
    (s, committed)
}

/// Rows of the statistics views now.
pub(crate) fn views(target: &dyn Target) -> Vec<View> {
    target.abilities().tables.unwrap().views().unwrap()
}

pub(crate) fn find<'a>(views: &'a [View], title: &str) -> &'a View {
    views.iter().find(|v| v.title.contains(title)).unwrap_or_else(|| panic!("no {title} in {views:?}"))
}

/// The number in a column of the row whose key has this part.
pub(crate) fn cell(view: &View, key: &str, column: &str) -> f64 {
    let at = view.columns.iter().position(|c| c.title == column).unwrap();
    let row = view.rows.iter().find(|r| view.key(r).iter().any(|k| k.contains(key)));
    View::number(row.unwrap_or_else(|| panic!("no {key} in {view:?}")), at).unwrap()
}

/// Three slices of so many ns in the database, the clocks agreeing to within `slack` ns, of which transactions fill the share `filled` at
/// least. Returns the number of transactions in the shortest.
pub(crate) fn slices(target: &dyn Target, work: &Work, ns: u64, slack: u64, filled: f64) -> u64 {
    prepare(target, work, 1);
    let mut session = target.abilities().driver().unwrap().database_session(work, 0).unwrap();
    let (mut transactions, mut last_end, mut fewest) = (0, 0, u64::MAX);
    for _ in 0..3 {
        let before = loadline_storage::now_ns();
        let until = before + ns;
        let slice = session.run_slice(until).unwrap();
        let after = loadline_storage::now_ns();
        let end = slice.end.unwrap();
        transactions += slice.transaction.count() + 1;
        fewest = fewest.min(slice.transaction.count());
        assert_eq!(slice.transaction.count(), slice.commit.count());
        assert!(slice.first_start_ns + slack >= before && end.end_ns <= after + slack);
        assert!(end.end_ns + slack >= until && end.start_ns <= end.commit_ns && end.commit_ns <= end.end_ns);
        assert!(slice.first_start_ns + slack >= last_end, "slices do not overlap");
        last_end = end.end_ns;
        let busy = slice.transaction.sum_ns() as f64 + (end.end_ns - end.start_ns) as f64;
        let wall = (end.end_ns - slice.first_start_ns) as f64;
        assert!(busy <= wall + 1e3 && busy > filled * wall, "{busy} of {wall}");
        assert!(slice.commit.sum_ns() < slice.transaction.sum_ns());
        assert!(slice.transaction.quantile_ns(0.5) <= slice.transaction.max_ns());
        let mean = slice.transaction.mean_ns().unwrap();
        let middle = slice.transaction.histogram().mean();
        assert!((mean / middle - 1.0).abs() < 0.02, "histogram mean {middle}, exact mean {mean}");
    }
    assert_eq!(target.evidence(work).unwrap(), Some(transactions as i64));
    fewest
}

/// Kills a server as a crash would, by the file whose first line is its process id.
pub(crate) fn kill_by(file: &std::path::Path) {
    let pid = std::fs::read_to_string(file).unwrap();
    let kill = std::process::Command::new("kill").args(["-9", pid.lines().next().unwrap()]).status();
    assert!(kill.unwrap().success());
}

/// A folder that a server's user can reach.
pub(crate) fn scratch() -> tempfile::TempDir {
    let scratch = tempfile::Builder::new().prefix("loadline-test-").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(scratch.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    scratch
}
