//! Kills loadline at random moments while it measures, resumes the run until it is complete, and looks what was lost.
//!
//! A round is such a run. It must measure what round 0 of its case measured, in the same order: that one has the same seed and is not
//! killed. `cases.toml` has the cases. `primary.rs` kills a server instead, and asks its standby.

mod primary;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use loadline_analyze::variants::Cell;
use loadline_database::{OpenRequest, Target, open};
use loadline_model::manifest::RunState;
use loadline_model::{Random, TestRecord};
use loadline_store::{StoredRun, runs_in};
use serde::Deserialize;
use serde_json::Value;

use crate::arena::{Outcome, processes};
use crate::outcomes;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct KillsArgs {
    #[command(subcommand)]
    server: Option<Server>,
    /// Cases of bench/src/kills/cases.toml [default: all]
    #[arg(long, value_delimiter = ',')]
    case: Vec<String>,
    /// Kills, shared out among the cases
    #[arg(long, default_value_t = 300)]
    kills: usize,
    /// Seed of runs and moments: rounds are independent, so that what was interrupted goes on with fewer kills and another seed
    #[arg(long, default_value_t = 44)]
    seed: u64,
    /// Program of loadline
    #[arg(long, default_value = "target/release/loadline")]
    loadline: PathBuf,
}

#[derive(Debug, clap::Subcommand)]
enum Server {
    /// Kills a primary while jobs commit, and asks its standby for what was acknowledged, at each level
    Primary(primary::PrimaryArgs),
}

/// `cases.toml`, which says what its keys are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    usual: String,
    case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    share: usize,
    command: String,
    target: String,
    args: String,
}

/// Counts of a case; from the fourth on, faults.
#[derive(Clone, Copy)]
enum Count {
    Kills,
    Resumes,
    /// Windows that were finished before the last kill of their run.
    Finished,
    Lost,
    Repeated,
    PairBroken,
    NotPutBack,
    LeftBehind,
    NotCompleted,
}

const HEAD: &str = "case | kills | resumes | windows finished before a kill | lost | repeated | pairs broken | settings not put back \
                    | left behind | not completed";

#[derive(Default)]
struct Tally([usize; Count::NotCompleted as usize + 1]);

impl Tally {
    fn fault(&mut self, fault: Count, what: &str) {
        self.0[fault as usize] += 1;
        eprintln!("  {what}");
    }

    fn faults(&self) -> usize {
        self.0[Count::Lost as usize..].iter().sum()
    }
}

/// Measured windows of a run, in order, and how long it took.
type Measured = (Vec<String>, Duration);

/// Stored parts of finished windows: by the number of the window and the file, its line or that file.
type Finished = BTreeMap<(u64, PathBuf), Vec<u8>>;

/// The setting that commands of a case change.
const SWITCHED: &str = "wal_compression";
/// Time after which a run counts as hung.
const HANGS: Duration = Duration::from_secs(300);
/// Time for servers and processes to do what they were told.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &KillsArgs) -> Outcome<ExitCode> {
    if let Some(Server::Primary(args)) = &args.server {
        return primary::run(args).map(|()| ExitCode::SUCCESS);
    }
    let cases: Cases = toml::from_str(include_str!("kills/cases.toml"))?;
    let known: Vec<&str> = cases.case.iter().map(|case| case.name.as_str()).collect();
    if let Some(unknown) = args.case.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("there is no case '{unknown}': they are {}", known.join(", ")).into());
    }
    let bench = Bench::start(args, cases)?;
    let is_chosen = |case: &&Case| args.case.is_empty() || args.case.contains(&case.name);
    let chosen: Vec<&Case> = bench.cases.case.iter().filter(is_chosen).collect();
    let shares: usize = chosen.iter().map(|case| case.share).sum();
    println!("{}", outcomes::head(HEAD));
    let mut good = shares > 0;
    for case in chosen {
        let mut tally = Tally::default();
        let control = bench.round(case, 0, None, &mut tally)?;
        let wanted = if tally.faults() == 0 { (args.kills * case.share).div_ceil(shares) } else { 0 };
        let mut number = 0;
        while tally.0[Count::Kills as usize] < wanted {
            number += 1;
            bench.round(case, number, Some(&control), &mut tally)?;
        }
        println!("| {} |{}", case.name, tally.0.map(|count| format!(" {count} |")).concat());
        good &= tally.faults() == 0;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Bench<'a> {
    args: &'a KillsArgs,
    cases: Cases,
    /// Folder of the runs. Those with faults stay there.
    runs: PathBuf,
    /// A PostgreSQL with a standby, which live on when loadline is killed, as a user's do.
    _own: Box<dyn Target>,
    /// Folders of the sockets of both.
    sockets: Vec<PathBuf>,
}

impl<'a> Bench<'a> {
    fn start(args: &'a KillsArgs, cases: Cases) -> Outcome<Bench<'a>> {
        let runs = outcomes::folder(None, "kills")?;
        let mut request = OpenRequest::new("postgres-temp:", runs.clone());
        request.replicas = 1;
        let own = open(&request)?;
        let data = PathBuf::from(own.info()?.data_dir.ok_or("no data directory")?);
        let sockets = [vec![data.with_file_name("socket")], primary::replicas_beside(&data)?].concat();
        Ok(Bench { args, cases, runs, _own: own, sockets })
    }

    /// Settings with their sources, and schemas, of both servers.
    fn state(&self) -> Outcome<BTreeSet<String>> {
        const ALL: &str = "SELECT name, setting, source FROM pg_settings UNION ALL SELECT name, setting, sourcefile FROM \
                           pg_file_settings UNION ALL SELECT nspname, '', 'schema' FROM pg_namespace WHERE nspname !~ '^pg_'";
        let mut state = BTreeSet::new();
        for socket in &self.sockets {
            state.extend(primary::ask(socket, ALL)?.lines().map(|line| format!("{}: {line}", socket.display())));
        }
        Ok(state)
    }

    /// Makes a run that is killed now and then, unless it is the `control` of others.
    fn round(&self, case: &Case, number: u64, control: Option<&Measured>, tally: &mut Tally) -> Outcome<Measured> {
        let KillsArgs { seed, .. } = self.args;
        let name = format!("{}-{seed}-{number}", case.name);
        eprintln!("{name}");
        let results = self.runs.join(name);
        let _ = fs::remove_dir_all(&results);
        fs::create_dir(&results)?;
        let (before, began, faults) = (self.state()?, Instant::now(), tally.faults());
        let (mut random, mut stored, mut kills) = (Random::new(seed.wrapping_add(number)), Finished::new(), Vec::new());
        let Case { command, target, args, .. } = case;
        let to = results.display();
        let mut line =
            format!("{command} --target '{target}' {args} {} --seed {seed} --results {to}", self.cases.usual);
        let (run, said) = loop {
            // Later and later, so that it completes.
            let share = (10 + kills.len()) as f64 * random.below(1000) as f64 / 15_000.0;
            let said = self.loadline(&line, control.map_or(HANGS, |(_, took)| took.mul_f64(share)))?;
            let run = runs_in(&results)?.pop();
            let now = run.as_deref().map(finished).transpose()?.unwrap_or_default();
            let changed = stored.iter().filter(|(file, bytes)| now.get(*file) != Some(*bytes));
            for test in changed.map(|((test, _), _)| *test).collect::<BTreeSet<_>>() {
                tally.fault(Count::Lost, &format!("test {test} is not as it was"));
            }
            stored = now;
            if said.is_some() || control.is_none() {
                break (run, said.unwrap_or_default());
            }
            kills.push(stored.keys().filter(|(_, file)| file.as_os_str().is_empty()).count());
            if random.below(3) == 0 {
                self.clean(target, &results, &before, false, tally)?;
            }
            if let Some(run) = run {
                line = format!("{command} --resume {}", run.display());
                tally.0[Count::Resumes as usize] += 1;
            }
        };
        let (mut points, took) = (Vec::new(), began.elapsed());
        tally.0[Count::Kills as usize] += kills.len();
        tally.0[Count::Finished as usize] += kills.last().unwrap_or(&0);
        match run.map(|run| StoredRun::open(&run)) {
            Some(Ok(run)) if run.manifest.state == RunState::Complete => {
                points = judge(&run.records, &kills, control.map(|(planned, _)| &planned[..]), tally);
            }
            _ => tally.fault(Count::NotCompleted, &format!("not completed: {said}")),
        }
        self.clean(target, &results, &before, true, tally)?;
        if tally.faults() == faults {
            fs::remove_dir_all(results)?;
        }
        Ok((points, took))
    }

    /// Runs loadline and kills it after `most`. Returns what it said if it ended before. Runs it again while a server has not noticed
    /// that the session of a killed run is gone.
    fn loadline(&self, line: &str, most: Duration) -> Outcome<Option<String>> {
        let [primary, standby] = [0, 1].map(|n| self.sockets[n].display().to_string());
        let line = format!("exec '{}' {line}", self.args.loadline.display());
        let line = line.replace("{primary}", &primary).replace("{standby}", &standby);
        let (began, file) = (Instant::now(), self.runs.join("said.txt"));
        loop {
            let said = File::create(&file)?;
            let mut command = Command::new("sh");
            command.args(["-c", &line]).stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
            let mut child = command.spawn()?;
            while child.try_wait()?.is_none() {
                if began.elapsed() >= most {
                    child.kill()?;
                    child.wait()?;
                    return Ok(None);
                }
                sleep(Duration::from_millis(1));
            }
            let said = fs::read_to_string(&file)?;
            if !said.contains("another run has locked") {
                return Ok(Some(said));
            }
        }
    }

    /// Runs `loadline clean`, and looks what is left then. `before`: the state that the servers must have again; what the user's own
    /// commands change is put back once the run has `ended`.
    fn clean(
        &self,
        target: &str,
        results: &Path,
        before: &BTreeSet<String>,
        ended: bool,
        tally: &mut Tally,
    ) -> Outcome<()> {
        let private = || -> Outcome<Vec<PathBuf>> {
            let all =
                fs::read_dir(results)?.flatten().filter(|e| e.file_name().to_string_lossy().contains("loadline-"));
            Ok(all.map(|entry| entry.path()).collect())
        };
        for folder in private()? {
            // Without an owner file it may be in the making, until it is a minute old.
            File::open(folder)?.set_modified(SystemTime::now() - Duration::from_secs(120))?;
        }
        self.loadline(&format!("clean --target '{target}' --results {}", results.display()), HANGS)?;
        let left = settled(|| {
            let folders = private()?.into_iter().map(|folder| folder.display().to_string());
            Ok(folders.chain(processes(results).iter().map(|pid| format!("process {pid}"))).collect())
        })?;
        left.iter().for_each(|what| tally.fault(Count::LeftBehind, &format!("left behind: {what}")));
        let is_due = |line: &&String| ended || !line.contains(SWITCHED);
        let changed = settled(|| Ok(self.state()?.symmetric_difference(before).filter(is_due).cloned().collect()))?;
        if !changed.is_empty() {
            tally.fault(Count::NotPutBack, &format!("not put back: {}", changed.join("; ")));
        }
        Ok(())
    }
}

/// Stored parts of the windows whose line is complete.
fn finished(run: &Path) -> Outcome<Finished> {
    let text = fs::read(run.join("tests.jsonl")).unwrap_or_default();
    let mut all = Finished::new();
    for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        let test = serde_json::from_slice::<Value>(line)?["test"].as_u64().ok_or("a test without a number")?;
        all.insert((test, PathBuf::new()), line.to_vec());
    }
    for folder in fs::read_dir(run)?.flatten() {
        for file in fs::read_dir(folder.path()).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let test = file.file_stem().and_then(|name| name.to_str()?.parse::<u64>().ok());
            if let Some(test) = test.filter(|test| all.contains_key(&(*test, PathBuf::new()))) {
                let bytes = fs::read(&file)?;
                all.insert((test, file), bytes);
            }
        }
    }
    Ok(all)
}

/// Findings of `look` when it finds nothing, or after [`PATIENCE`].
fn settled<T>(mut look: impl FnMut() -> Outcome<Vec<T>>) -> Outcome<Vec<T>> {
    let began = Instant::now();
    loop {
        let found = look()?;
        if found.is_empty() || began.elapsed() > PATIENCE {
            return Ok(found);
        }
        sleep(Duration::from_millis(1));
    }
}

/// The place of a window in the plan, whatever its arm.
fn place(r: &TestRecord) -> String {
    let compared = r.variant.as_ref().map(|window| (window.beside, &window.level));
    format!("{} with {} jobs, number {}, {compared:?}", r.workload, r.jobs, r.repetition)
}

/// Judges the records of a complete run, of which so many were there at each of the `kills`, against what was `planned`. Returns what
/// was measured; a pair that a kill broke is measured anew.
fn judge(records: &[TestRecord], kills: &[usize], planned: Option<&[String]>, tally: &mut Tally) -> Vec<String> {
    let (mut points, mut at) = (Vec::new(), 0);
    while let Some(first) = records.get(at) {
        let killed = kills.contains(&(at + 1));
        let is_pair =
            |second: &TestRecord| place(first) == place(second) && Cell::last_pair(&[first, second]).is_some();
        let second = records.get(at + 1).filter(|second| !killed && is_pair(second));
        if first.variant.is_none() || second.is_some() {
            points.extend([first].into_iter().chain(second).map(|r| format!("{} {:?}", place(r), r.arm())));
        } else if !killed {
            tally.fault(Count::PairBroken, &format!("test {} has no other window of its pair", first.test));
        }
        at += 1 + usize::from(second.is_some());
    }
    let planned = planned.unwrap_or(&points);
    for point in planned.iter().chain(&points).collect::<BTreeSet<_>>() {
        match points.iter().filter(|of| *of == point).count() {
            0 => tally.fault(Count::Lost, &format!("not measured: {point}")),
            1 if planned.contains(point) => {}
            n => tally.fault(Count::Repeated, &format!("measured {n} times: {point}")),
        }
    }
    // In a pair of the other order, both windows differ.
    for (planned, point) in planned.iter().zip(&points).filter(|(planned, point)| planned != point).step_by(2) {
        tally.fault(Count::PairBroken, &format!("{point} in place of {planned}"));
    }
    let seeds: BTreeSet<Option<u64>> = records.iter().map(|r| r.seed()).collect();
    if seeds.len() < records.len() {
        tally.fault(Count::Repeated, &format!("{} windows drew with {} seeds", records.len(), seeds.len()));
    }
    points
}
