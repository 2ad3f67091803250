//! Catches the driver's panics, with their text. While a call of the driver runs, panics of its thread are
//! recorded instead of printed. All others go to the previous hook.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// `Some` while this thread is inside [`catch`]: the text of its panic.
    static RECORDED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Puts our hook in front of the previous one.
fn install() {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        let record = |recorded: &RefCell<Option<String>>| {
            let mut recorded = recorded.try_borrow_mut().ok()?;
            recorded.as_ref()?;
            recorded.replace(text(panic))
        };
        if RECORDED.try_with(record).ok().flatten().is_none() {
            before(panic);
        }
    }));
}

/// The first line of a panic's text, and its place.
fn text(panic: &PanicHookInfo<'_>) -> String {
    let payload = panic.payload();
    let said = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref().map(String::as_str));
    let line = said.and_then(|text| text.lines().next()).unwrap_or("a panic without text");
    let file = |at: &std::panic::Location<'_>| at.file().rsplit('/').next().unwrap_or_default().to_owned();
    panic.location().map_or(line.to_owned(), |at| format!("{line}, {}:{}", file(at), at.line()))
}

/// Runs `call`; the error is the text and the place of its panic.
pub(super) fn catch<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(install);
    RECORDED.set(Some(String::new()));
    let outcome = catch_unwind(AssertUnwindSafe(call));
    // Another hook, put in front of ours since then, may have kept the text.
    let recorded = RECORDED.take().filter(|text| !text.is_empty());
    outcome.map_err(|_| recorded.unwrap_or_else(|| "a panic without text".to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn panics_are_recorded_inside_and_passed_on_outside() {
        // What reaches the previous hook, which is installed before ours.
        static REACHED: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let tests = take_hook();
        set_hook(Box::new(move |panic| {
            let text = text(panic);
            if text.starts_with("of the test:") { REACHED.lock().unwrap().push(text) } else { tests(panic) }
        }));
        // Another test may have installed ours already: then there are two, and both must pass panics on.
        install();
        assert_eq!(catch(|| 7), Ok(7));
        let said = catch(|| panic!("of the test: inside\nand more")).unwrap_err();
        assert!(said.starts_with("of the test: inside, panics.rs:"), "{said}");
        assert!(REACHED.lock().unwrap().is_empty());
        assert!(catch_unwind(|| panic!("of the test: outside")).is_err());
        let other = std::thread::spawn(|| panic!("of the test: elsewhere"));
        assert!(catch(|| other.join().is_err()).unwrap());
        let reached = REACHED.lock().unwrap();
        assert!(reached[0].starts_with("of the test: outside") && reached[1].starts_with("of the test: elsewhere"));
        assert_eq!(reached.len(), 2);
    }
}
