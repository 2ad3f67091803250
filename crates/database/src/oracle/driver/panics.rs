//! Catches the driver's panics, with their text. While a call of the driver runs, panics of its thread are
//! recorded instead of printed. All others go to the previous hook.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// `Some` while this thread is inside [`catch`]: the text of its panic.
    static RECORDED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Puts our hook in front of the previous one, once.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(put_in_front);
}

fn put_in_front() {
    let before = take_hook();
    set_hook(Box::new(move |panic| {
        if !RECORDED.try_with(|recorded| record(recorded, panic)).unwrap_or(false) {
            before(panic);
        }
    }));
}

/// Records a panic of this thread; `false` outside of [`catch`].
fn record(recorded: &RefCell<Option<String>>, panic: &PanicHookInfo<'_>) -> bool {
    let Ok(mut recorded) = recorded.try_borrow_mut() else { return false };
    let Some(recorded) = recorded.as_mut() else { return false };
    let place = panic.location().map_or(String::new(), |at| {
        let file = at.file().rsplit('/').next().unwrap_or_default();
        format!(", {file}:{}", at.line())
    });
    let text = text(panic);
    *recorded = format!("{}{place}", text.lines().next().unwrap_or_default());
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
/// The text and the place of its panic.
pub(super) fn catch<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    install();
    // Calls can be nested: the outer one resumes recording when the inner one ends.
    let outer = RECORDED.replace(Some(String::new()));
    let outcome = catch_unwind(AssertUnwindSafe(call));
    let recorded = RECORDED.replace(outer).unwrap_or_default();
    // Another hook, put in front of ours since then, may have kept the text.
    outcome.map_err(|_| if recorded.is_empty() { "a panic without text".to_owned() } else { recorded })
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
            let text = text(panic).to_owned();
            if text.starts_with("of the test:") {
                REACHED.lock().unwrap().push(text);
            } else {
                tests(panic);
            }
        }));
        // Another test may have installed ours already: then there are two, and both must pass panics on.
        put_in_front();
        assert_eq!(catch(|| 7), Ok(7));
        let said = catch(|| panic!("of the test: inside\nand more")).unwrap_err();
        assert!(said.starts_with("of the test: inside, panics.rs:"), "{said}");
        let nested = catch(|| catch(|| panic!("of the test: nested")).unwrap_err()).unwrap();
        assert!(nested.contains("nested"));
        assert!(REACHED.lock().unwrap().is_empty());
        assert!(catch_unwind(|| panic!("of the test: outside")).is_err());
        let other = std::thread::spawn(|| panic!("of the test: elsewhere"));
        let within = catch(|| other.join().is_err()).unwrap();
        assert!(within);
        assert_eq!(*REACHED.lock().unwrap(), ["of the test: outside", "of the test: elsewhere"]);
    }
}
