//! Which files are made and made over. Not in the module itself, which `tests/scheduler.rs` compiles with other locks.

use std::sync::{Arc, Mutex};

use crate::config::Keep;
use crate::device::{DeviceError, FileMaker};
use crate::files::Files;

type Calls = Arc<Mutex<Vec<(u64, Option<u64>)>>>;

struct Noting(Calls);

impl FileMaker for Noting {
    fn make(&mut self, file: u64, recycle: Option<u64>) -> Result<(), DeviceError> {
        self.0.lock().unwrap().push((file, recycle));
        Ok(())
    }
}

fn enter_all(keep: Keep, have: &[u64], first: u64, last: u64) -> Vec<(u64, Option<u64>)> {
    let calls = Calls::default();
    let files = Files::new(Box::new(Noting(Arc::clone(&calls))), have, first, keep);
    files.end();
    (first..=last).for_each(|file| files.enter(file).unwrap());
    let calls = calls.lock().unwrap();
    calls.clone()
}

#[test]
fn the_newest_are_kept_older_ones_made_over_and_files_that_are_there_cost_no_other() {
    let made = enter_all(Keep::Newest(2), &[], 0, 4);
    assert_eq!(made, [(0, None), (1, None), (2, Some(0)), (3, Some(1)), (4, Some(2))]);
    assert!(enter_all(Keep::All, &[], 0, 5).iter().all(|(_, recycled)| recycled.is_none()));
    assert_eq!(enter_all(Keep::Newest(2), &[3, 4, 5, 6], 6, 7), [(6, None), (7, Some(3))]);
}

#[test]
fn the_thread_works_one_file_ahead() {
    let calls = Calls::default();
    let files = Files::new(Box::new(Noting(Arc::clone(&calls))), &[], 0, Keep::All);
    std::thread::scope(|scope| {
        scope.spawn(|| files.run());
        files.enter(0).unwrap();
        while calls.lock().unwrap().len() < 2 {
            std::thread::yield_now();
        }
        files.end();
    });
    assert_eq!(*calls.lock().unwrap(), [(0, None), (1, None)]);
}
