//! `loadline import`: results of other tools as runs of their own kind. What was read is written only once all of it was understood.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loadline_database::redact;
use loadline_exchange::{ImportedTest, Source, Tool, import as read};
use loadline_model::facts::stated;
use loadline_model::format::counted;
use loadline_model::manifest::TargetInfo;
use loadline_model::{Detail, Imported, ImportedFile, Manifest};
use loadline_run::references::unmeasured;
use loadline_store::{RunFolder, TestOutput, rfc3339, run_name};
use sha2::{Digest as _, Sha256};

use crate::args::ImportArgs;
use crate::exit::Failure;
use crate::output;
use crate::target::named_twice;

pub(crate) fn import(args: &ImportArgs, command: Vec<String>) -> Result<u8, Failure> {
    let given: Vec<(&str, String)> = args.fact.iter().map(|(name, value)| (name.as_str(), redact(value))).collect();
    let facts = stated(given.iter().map(|(name, value)| (*name, value.as_str()))).map_err(Failure::usage)?;
    let mut runs = runs(args.tool, &args.files)?;
    if args.one_run {
        runs =
            runs.into_iter().reduce(|(product, all), (_, next)| (product, [all, next].concat())).into_iter().collect();
    }
    let mut written: Vec<RunFolder> = Vec::new();
    for run in runs {
        if let Err(e) = write(run, args, &facts, &command, &mut written) {
            // Best effort: an import leaves all of its runs or none.
            written.iter().rev().for_each(RunFolder::remove);
            return Err(e);
        }
    }
    let paths: String = written.iter().map(|run| format!("{}\n", run.path().display())).collect();
    output::stdout(paths.as_bytes())?;
    Ok(0)
}

/// Subject of a run, and its tests, each with its source.
type Run = (String, Vec<(Imported, ImportedTest)>);

/// Reads all files, to their ends, so that their checksums are those of the files.
fn runs(tool: Tool, files: &[PathBuf]) -> Result<Vec<Run>, Failure> {
    if let Some(twice) = named_twice(files) {
        return Err(Failure::usage(format!("{} is named twice", twice.display())));
    }
    let mut inputs: Vec<(String, BufReader<Summed>)> = Vec::new();
    for file in files {
        let input: Box<dyn Read> = if file == Path::new("-") {
            Box::new(io::stdin())
        } else if file.is_dir() {
            let (shown, tool) = (file.display(), tool.name());
            return Err(Failure::usage(format!(
                "{shown} is a folder: name the files of {tool} in it that belong to a test"
            )));
        } else {
            let opened = File::open(file);
            Box::new(opened.map_err(|e| Failure::usage(format!("{} cannot be read: {e}", file.display())))?)
        };
        inputs.push((
            file.display().to_string(),
            BufReader::with_capacity(1 << 16, Summed { input, sum: Sha256::new(), bytes: 0 }),
        ));
    }
    let sources = inputs.iter_mut().map(|(name, input)| Source { name: name.clone(), input: Box::new(input) });
    let mut sources: Vec<Source<'_>> = sources.collect();
    let groups = read(tool, &mut sources).map_err(|e| Failure::usage(e.to_string()))?;
    drop(sources);
    for (name, input) in &mut inputs {
        io::copy(input, &mut io::sink()).map_err(|e| Failure::usage(format!("{name} cannot be read: {e}")))?;
    }
    let file = |n: &usize| {
        let (name, input) = inputs.get(*n)?;
        let Summed { sum, bytes, .. } = input.get_ref();
        let sha256 = sum.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let name = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
        let name = name.chars().filter(|c| !c.is_control()).collect();
        Some(ImportedFile { name, bytes: *bytes, sha256 })
    };
    let run = |group: loadline_exchange::Group| {
        let files = group.files.iter().filter_map(file).collect();
        let imported = Imported { tool: tool.name().to_owned(), version: group.version, files };
        (group.product, group.tests.into_iter().map(|test| (imported.clone(), test)).collect())
    };
    Ok(groups.into_iter().map(run).collect())
}

/// An input with checksum and length of what was read.
struct Summed {
    input: Box<dyn Read>,
    sum: Sha256,
    bytes: u64,
}

impl Read for Summed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buffer)?;
        self.sum.update(buffer.get(..n).unwrap_or_default());
        self.bytes += n as u64;
        Ok(n)
    }
}

/// Writes a run folder, which is then in `written`, and tells of its warnings.
fn write(
    (product, tests): Run,
    args: &ImportArgs,
    facts: &BTreeMap<String, String>,
    command: &[String],
    written: &mut Vec<RunFolder>,
) -> Result<(), Failure> {
    let (now, kind) = (SystemTime::now(), args.tool.name().to_owned());
    let file = tests.first().and_then(|(imported, _)| imported.files.first()).map_or("", |file| file.name.as_str());
    let platform = format!("{} (imported)", args.title.clone().unwrap_or_else(|| format!("{kind} {file}")));
    written.push(RunFolder::create(&args.results, &run_name(now, &kind))?);
    let Some(folder) = written.last_mut() else { return Ok(()) };
    let (mut outputs, mut warnings): (Vec<TestOutput>, Vec<String>) = Default::default();
    for (number, (imported, test)) in (1..).zip(tests) {
        warnings.extend(test.warnings.iter().map(|warning| format!("warning: test {number}: {warning}")));
        let ImportedTest { mut record, series, histograms, started_s, .. } = test;
        record.platform.clone_from(&platform);
        (record.run, record.test) = (folder.id(), number);
        record.target = format!("imported:{kind}");
        record.details.push(Detail::Imported(imported));
        let alike = outputs.iter().filter(|TestOutput { record: other, .. }| {
            (&other.workload, other.jobs, &other.parameters) == (&record.workload, record.jobs, &record.parameters)
        });
        record.repetition = u32::try_from(alike.count() + 1).unwrap_or(u32::MAX);
        match started_s.and_then(|s| Duration::try_from_secs_f64(s).ok()) {
            Some(since) => record.started_at = rfc3339(UNIX_EPOCH + since),
            None => record.notes.push("no file states when the test began".into()),
        }
        let (snapshots, activity, native) = (Vec::new(), None, None);
        outputs.push(TestOutput { record, series, histograms, snapshots, activity, native });
    }
    let records: Vec<_> = outputs.iter().map(|output| output.record.clone()).collect();
    let target = TargetInfo { kind, product, ..TargetInfo::default() };
    let mut manifest = unmeasured(&platform, target, &records).map_err(|e| Failure::failed(e.to_string()))?;
    manifest.plan.facts.clone_from(facts);
    let first = records.iter().map(|r| &r.started_at).filter(|at| !at.is_empty()).min();
    outputs.iter().try_for_each(|output| folder.append(output))?;
    // Last: without it the folder is no run, whatever ends this process before.
    folder.write_manifest(&Manifest {
        run: folder.id(),
        loadline_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: first.cloned().unwrap_or_else(|| rfc3339(now)),
        command: command.to_vec(),
        ..manifest
    })?;
    warnings.iter().for_each(|warning| output::say(warning));
    if let Some(imported) = records.first().and_then(|r| r.imported()) {
        let tests = counted(records.len(), "test");
        output::say(&format!("{tests} {}", imported.unchecked()));
    }
    Ok(())
}
