//! Catches what the driver panics with, text included. While a call of the driver runs, its thread's
//! panics are noted instead of printed; those of other threads, and of this one at other times, go to
//! the hook that was there before.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// `Some` while this thread is inside [`caught`]; then what it panicked with.
    static NOTED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Puts ours in front of the hook that is there, once.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(put_in_front);
}

fn put_in_front() {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        if !NOTED.try_with(|noted| note(noted, panic)).unwrap_or(false) {
            before(panic);
        }
    }));
}

/// Notes a panic of this thread; `false` if it is not to be noted.
fn note(noted: &RefCell<Option<String>>, panic: &PanicHookInfo<'_>) -> bool {
    let Ok(mut noted) = noted.try_borrow_mut() else { return false };
    let Some(noted) = noted.as_mut() else { return false };
    let place = panic.location().map_or(String::new(), |at| {
        let file = at.file().rsplit('/').next().unwrap_or_default();
        format!(", {file}:{}", at.line())
    });
    let text = text(panic);
    *noted = format!("{}{place}", text.lines().next().unwrap_or_default());
    true
}

fn text<'a>(panic: &'a PanicHookInfo<'_>) -> &'a str {
    let payload = panic.payload();
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}

/// Runs `call`.
///
/// # Errors
/// What it panicked with, and where.
pub(super) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    install();
    // A call within a call: the outer one goes on noting when the inner one has ended.
    let outer = NOTED.replace(Some(String::new()));
    let outcome = catch_unwind(AssertUnwindSafe(call));
    let noted = NOTED.replace(outer).unwrap_or_default();
    // A hook that others have put in front of ours since then may have kept the text.
    outcome.map_err(|_| if noted.is_empty() { "it gave no reason".to_owned() } else { noted })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn the_text_is_noted_inside_and_left_to_others_outside() {
        // What reaches the hook before ours; put there before ours is.
        static REACHED: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let tests = take_hook();
        set_hook(Box::new(move |panic| {
            let text = text(panic).to_owned();
            if text.starts_with("of the test:") {
                REACHED.lock().unwrap().push(text);
            } else {
                tests(panic);
            }
        }));
        // Another test may have installed ours already: then there are two, and both must let pass.
        put_in_front();
        assert_eq!(caught(|| 7), Ok(7));
        let said = caught(|| panic!("of the test: inside\nand more")).unwrap_err();
        assert!(said.starts_with("of the test: inside, panics.rs:"), "{said}");
        let nested = caught(|| caught(|| panic!("of the test: nested")).unwrap_err()).unwrap();
        assert!(nested.contains("nested"));
        assert!(REACHED.lock().unwrap().is_empty());
        assert!(catch_unwind(|| panic!("of the test: outside")).is_err());
        let other = std::thread::spawn(|| panic!("of the test: elsewhere"));
        let within = caught(|| other.join().is_err()).unwrap();
        assert!(within);
        assert_eq!(*REACHED.lock().unwrap(), ["of the test: outside", "of the test: elsewhere"]);
    }
}
