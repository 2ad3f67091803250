//! `live.jsonl`: a run as it goes on, appended by the run and read by those who watch it, from another process.
//!
//! It is not synced and no report reads it. Who writes it never waits for a reader; a line that cannot be written is left out.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use loadline_model::live::{LiveEvent, LiveLine};
use loadline_model::{Json as _, TestRecord};

use crate::{jsonl, layout};

/// Most bytes of a file that are read at a time. Of a longer history only the end is of interest.
const MOST: u64 = 4 << 20;
/// Most bytes of a line. A longer one was not written by loadline.
const LONGEST: usize = 1 << 20;

#[derive(Debug)]
pub struct LiveFile(File);

impl LiveFile {
    /// Opens the file of the run at `run`; `None` if it cannot be written.
    pub fn open(run: &Path) -> Option<LiveFile> {
        OpenOptions::new().append(true).create(true).open(run.join(layout::LIVE)).ok().map(LiveFile)
    }

    /// Appends a line with the time of now, by a single write that nobody waits for.
    pub fn add(&mut self, event: LiveEvent) {
        if let Ok(mut line) = serde_json::to_vec(&LiveLine { at_s: clock_s(), event }) {
            line.push(b'\n');
            // Nothing depends on it, and a full disk is reported when a test is stored.
            let _ = self.0.write_all(&line);
        }
    }
}

/// Now, s since 1970: the clock of [`LiveLine::at_s`].
pub fn clock_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64())
}

/// Whether a loadline on this machine writes to the run at `run`; `None` if that cannot be known. Reads who holds locks
/// (proc_locks(5)) and takes none, which could stop a run that begins.
pub fn is_written(run: &Path) -> Option<bool> {
    let lock = run.join(layout::LOCK);
    let file = std::fs::symlink_metadata(&lock).ok().filter(|m| m.is_file() && m.len() < 100)?;
    let holder: u32 = std::fs::read_to_string(&lock).ok()?.trim().parse().ok()?;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    // The device in it is not always the one that stat(2) says: the process has to be the same as well.
    let held = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = |n: usize| words.get(n).copied().unwrap_or_default();
        let inode = at(5).rsplit(':').next().and_then(|n| n.parse().ok());
        at(1) == "FLOCK" && at(4).parse() == Ok(holder) && inode == Some(file.ino())
    };
    Some(locks.lines().any(held))
}

/// Follows a file of lines that grows: reads what is new. A file that shrank or was replaced is read anew.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    read: u64,
    file: Option<(u64, u64)>,
}

impl Tail {
    pub fn live(run: &Path) -> Tail {
        Tail { path: run.join(layout::LIVE), read: 0, file: None }
    }

    pub fn tests(run: &Path) -> Tail {
        Tail { path: run.join(layout::TESTS), read: 0, file: None }
    }

    /// The new lines, and whether they replace those before. What is no such line is left out. A missing file is empty.
    pub fn lines(&mut self) -> std::io::Result<(Vec<LiveLine>, bool)> {
        let (text, again) = self.new_lines(MOST)?;
        let lines = text.split(|b| *b == b'\n').filter(|l| !l.is_empty() && l.len() <= LONGEST);
        Ok((lines.filter_map(|line| LiveLine::from_json(line).ok()).collect(), again))
    }

    /// The new tests, and whether they replace those before. A damaged file is read anew the next time.
    pub fn records(&mut self) -> Result<(Vec<TestRecord>, bool), String> {
        let (text, again) = self.new_lines(u64::MAX).map_err(|e| format!("{}: {e}", self.path.display()))?;
        let parsed = jsonl::parse(&self.path, &text).inspect_err(|_| self.file = None);
        Ok((parsed.map_err(|e| e.to_string())?.records, again))
    }

    /// Whole new lines, and whether what was read before is no longer in the file.
    fn new_lines(&mut self, most: u64) -> std::io::Result<(Vec<u8>, bool)> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let again = self.file.take().is_some();
                self.read = 0;
                return Ok((Vec::new(), again));
            }
            Err(e) => return Err(e),
        };
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(std::io::Error::other("it is no regular file"));
        }
        let (same, length) = (Some((found.dev(), found.ino())), found.len());
        let again = self.file != same || length < self.read;
        let begin = if again { 0 } else { self.read };
        let from = begin.max(length.saturating_sub(most));
        file.seek(SeekFrom::Start(from))?;
        let mut text = Vec::new();
        file.take(length - from).read_to_end(&mut text)?;
        // A line that is still being written is read the next time.
        let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        // A line longer than what is read at a time would never be passed.
        let stuck = whole == 0 && text.len() as u64 >= most;
        text.truncate(whole);
        (self.read, self.file) = (if stuck { length } else { from + whole as u64 }, same);
        if from > begin {
            // It begins within a line.
            let first = text.iter().position(|b| *b == b'\n').map_or(text.len(), |at| at + 1);
            text.drain(..first);
        }
        Ok((text, again))
    }
}

#[cfg(test)]
mod tests {
    use loadline_model::live::LiveSecond;

    use super::*;
    use crate::testing;

    fn second(test: u32) -> LiveEvent {
        LiveEvent::Second(LiveSecond { test, ..LiveSecond::default() })
    }

    fn tests_of(lines: &[LiveLine]) -> Vec<u32> {
        let test = |line: &LiveLine| match &line.event {
            LiveEvent::Second(second) => second.test,
            other => panic!("{other:?}"),
        };
        lines.iter().map(test).collect()
    }

    #[test]
    fn what_grows_shrinks_or_vanishes_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(layout::LIVE);
        let mut tail = Tail::live(dir.path());
        assert!(tail.lines().unwrap().0.is_empty(), "there is no file yet");
        let mut file = LiveFile::open(dir.path()).unwrap();
        (1..=3).for_each(|n| file.add(second(n)));
        let (lines, again) = tail.lines().unwrap();
        assert_eq!((tests_of(&lines), again), (vec![1, 2, 3], true));
        assert!(tail.lines().unwrap().0.is_empty());
        let step = LiveEvent::Step { text: "a\n\"b".to_owned() };
        file.add(step.clone());
        assert_eq!(tail.lines().unwrap().0.pop().unwrap().event, step, "a line reads back");
        // Torn, then whole; and what is no line of loadline's.
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, [text.as_slice(), b"not a line\n{\"at_s\":1.0"].concat()).unwrap();
        assert!(tail.lines().unwrap().0.is_empty());
        file.0.write_all(b",\"event\":\"step\",\"text\":\"x\"}\n").unwrap();
        assert_eq!(tail.lines().unwrap().0.len(), 1);
        // Shorter than before.
        std::fs::write(&path, &text).unwrap();
        let (lines, again) = tail.lines().unwrap();
        assert_eq!((lines.len(), again), (4, true));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(tail.lines().unwrap(), (vec![], true));
        assert_eq!(tail.lines().unwrap(), (vec![], false));
        std::fs::create_dir(&path).unwrap();
        assert!(tail.lines().is_err(), "a folder is no file");
    }

    #[test]
    fn a_run_is_written_while_its_folder_is_held() {
        let dir = tempfile::tempdir().unwrap();
        let folder = crate::RunFolder::create(dir.path(), "run").unwrap();
        let run = folder.path().to_owned();
        assert_eq!(is_written(&run), Some(true));
        drop(folder);
        assert_eq!(is_written(&run), Some(false));
        assert_eq!(is_written(dir.path()), None, "no run");
    }

    #[test]
    fn of_a_long_history_the_end_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(layout::LIVE);
        let line = |n: u32| serde_json::to_string(&LiveLine { at_s: 0.0, event: second(n) }).unwrap() + "\n";
        let all: String = (0..60_000).map(line).collect();
        assert!(all.len() as u64 > MOST);
        std::fs::write(&path, &all).unwrap();
        let lines = tests_of(&Tail::live(dir.path()).lines().unwrap().0);
        assert!(lines.len() > 1000 && lines.last() == Some(&59_999) && lines.windows(2).all(|p| p[0] + 1 == p[1]));
        // One endless line holds nothing up.
        let mut tail = Tail::live(dir.path());
        std::fs::write(&path, vec![b'x'; 5 << 20]).unwrap();
        assert!(tail.lines().unwrap().0.is_empty());
        let mut file = LiveFile::open(dir.path()).unwrap();
        file.0.write_all(b"\n").unwrap();
        file.add(second(7));
        assert_eq!(tests_of(&tail.lines().unwrap().0), [7]);
    }

    #[test]
    fn new_tests_are_read_once_and_damage_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(layout::TESTS);
        let line = |n: u32| jsonl::line(&testing::record(n)).unwrap();
        let mut tail = Tail::tests(dir.path());
        std::fs::write(&path, line(1)).unwrap();
        assert_eq!(tail.records().unwrap().0, [testing::record(1)]);
        std::fs::write(&path, [line(1), line(2)].concat()).unwrap();
        assert_eq!(tail.records().unwrap(), (vec![testing::record(2)], false));
        std::fs::write(&path, [line(1), line(2), b"{}\n".to_vec(), line(3)].concat()).unwrap();
        assert!(tail.records().unwrap_err().contains("damaged"));
        std::fs::write(&path, [line(1), line(2), line(3)].concat()).unwrap();
        let (records, again) = tail.records().unwrap();
        assert_eq!((records.len(), again), (3, true));
    }
}
