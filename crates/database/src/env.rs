//! The process's environment.

/// Looks up an environment variable. A parameter, so that tests do not change the environment of the process.
pub(crate) type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The process's environment; empty variables count as unset, as in libpq.
pub(crate) fn process_env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// The environment of a target: none for a private server, whose URL says all. What is set is meant for others.
pub(crate) fn of_target(private: bool) -> Env<'static> {
    if private { &|_| None } else { &process_env }
}
