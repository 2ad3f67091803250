//! The process's environment.

/// Looks up an environment variable; a parameter so that tests need not change the process's own.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The process's environment; empty variables count as unset, as in libpq.
pub(crate) fn process_env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}
