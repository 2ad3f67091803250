//! Private throwaway servers of all products: created from the installed binaries, next to the results, for one run.
//!
//! They listen on Unix sockets only, are stopped when loadline ends or is killed, and are removed completely. What a killed loadline
//! leaves has an owner file; the next start or `loadline clean` removes it. A product is a table in `servers.toml`, a
//! [`PrivateKind`] and [`Stages`].
//! Read on in [`Servers`], then [`server`] and [`owner`].

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

use loadline_model::format::{bytes, nearest};
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use crate::descriptor::fill;
use crate::error::TargetError;
use crate::folder::Parents;
use crate::kind::TargetKind;
use crate::machine::memory_bytes;
use crate::relay::Relay;
use crate::render::Rendered;
use crate::request::OpenRequest;
use crate::role::Level;
use crate::target::Target;
use crate::work::Work;

use owner::remove_leftovers;
use place::{FALLBACK, Location, TempUrl, has_scheme};
use programs::{Program, User, cannot_run, folders};
pub(crate) use server::Server;
use settings::{Knowledge, Product, SERVERS, Settings, normal};

mod owner;
pub(crate) mod place;
pub(crate) mod programs;
mod server;
pub(crate) mod settings;
#[cfg(test)]
#[cfg(feature = "servers")]
mod tests;

/// Times that a server is started if a port is taken.
const TRIES: u32 = 3;

/// The maker of a data folder may be a shell script, or start helpers. The signal that kills it with loadline does not reach the
/// `mariadbd --bootstrap` or `postgres --boot` that it starts, which ran on for up to three seconds. So an outer shell waits until
/// loadline's pipe on its standard input is closed, at the latest by loadline's death, and kills its whole
/// process group. A script is read by the shell itself: archives lose the permission to run it.
const GUARD: &str = "exec 3<&0 </dev/null; { read -r _ <&3; kill -KILL 0; } & guard=$!; [ -x \"$1\" ] || set -- /bin/sh \"$@\"; \
     \"$@\" 3<&-; status=$?; kill -KILL $guard; exit $status";

/// Starts servers and opens them as a target.
pub(crate) type OpenPrivate = fn(&'static Product, &OpenRequest) -> Result<Box<dyn Target>, TargetError>;

/// Private servers of a product as a kind of target.
pub(crate) struct PrivateKind {
    pub(crate) product: fn(&Knowledge) -> &Product,
    pub(crate) open: OpenPrivate,
    pub(crate) render: fn(&Work, &dyn TargetKind) -> Vec<Rendered>,
    pub(crate) levels: fn() -> Vec<Level>,
}

impl PrivateKind {
    fn product(&self) -> &'static Product {
        (self.product)(&SERVERS)
    }
}

impl TargetKind for PrivateKind {
    fn scheme(&self) -> &'static str {
        &self.product().scheme
    }

    fn check_url(&self, url: &str) -> Result<u32, TargetError> {
        let product = self.product();
        TempUrl::parse(url, product).map(|url| url.servers.unwrap_or(product.servers))
    }

    fn open(&self, request: &OpenRequest) -> Result<Box<dyn Target>, TargetError> {
        (self.open)(self.product(), request)
    }

    fn render(&self, work: &Work) -> Vec<Rendered> {
        (self.render)(work, self)
    }

    /// In the results folder, in the folder of the URL and in `/var/tmp`; with a line for each folder that is left alone, and why.
    fn clean_leftovers(&self, request: &OpenRequest) -> Result<Vec<String>, TargetError> {
        let (product, mut places) = (self.product(), vec![request.scratch.clone(), FALLBACK.into()]);
        if has_scheme(&request.url, &product.scheme) {
            places.extend(TempUrl::parse(&request.url, product)?.dir);
        }
        let (lines, removed) = remove_leftovers(product, &places);
        if removed { Ok(lines) } else { Err(TargetError::Local(lines.join("; "))) }
    }

    fn is_temporary(&self, _: &str) -> bool {
        true
    }

    fn levels(&self) -> Vec<Level> {
        if self.product().levels { (self.levels)() } else { Vec::new() }
    }
}

/// Product's own ways.
pub(crate) trait Stages: Sized {
    /// Finds what it needs beside its program.
    fn find(setup: &Setup) -> Result<Self, TargetError>;

    /// Checks the user's settings, unless each change of them is a start, which fails. Returns the size of the block cache that they
    /// give, bytes, if it counts.
    fn check(
        &self,
        _setup: &Setup,
        _given: &BTreeMap<String, String>,
        _first: &Server,
    ) -> Result<Option<u64>, TargetError> {
        Ok(None)
    }

    /// Prepares a further server, mostly by [`Server::copy`], before the first one starts.
    fn join(&self, setup: &Setup, server: &mut Server, first: &Server) -> Result<(), TargetError>;

    fn command(&mut self, setup: &Setup, settings: &Settings, server: &Server) -> Result<Command, TargetError>;

    /// Whether the server of the process `pid` accepts sessions; else its last answer.
    fn ask(server: &Server, pid: Pid) -> Result<(), String>;
}

/// Shared parts of the servers of a run.
pub(crate) struct Setup {
    pub(crate) request: OpenRequest,
    pub(crate) product: &'static Product,
    pub(crate) url: TempUrl,
    pub(crate) user: User,
    pub(crate) program: Program,
    maker: PathBuf,
    pub(crate) servers: u32,
    /// Whether the further servers are replicas whose distance and levels change.
    pub(crate) levels: bool,
    /// Memory for each server, bytes.
    pub(crate) memory: u64,
}

impl Setup {
    fn new(product: &'static Product, request: &OpenRequest) -> Result<Setup, TargetError> {
        let url = TempUrl::parse(&request.url, product)?;
        if let Some(node) = request.nodes.first() {
            return Err(TargetError::Usage(format!(
                "a private throwaway server has one node: leave out --node {}",
                crate::redact(node)
            )));
        }
        let levels = product.levels && request.replicas > 0;
        let wanted = if levels { Some(1 + request.replicas) } else { None };
        if let Some((given, wanted)) = url.servers.zip(wanted).filter(|(given, wanted)| given != wanted) {
            return Err(TargetError::Usage(format!(
                "{}={} does not apply here: the levels need {}, which loadline makes; leave it out",
                product.parameter.as_deref().unwrap_or_default(),
                given - 1,
                wanted - 1
            )));
        }
        let servers = wanted.or(url.servers).unwrap_or(product.servers);
        product.check_names(&request.settings, servers, levels)?;
        let user = User::choose(product)?;
        let program = Program::find(product, url.bin.as_deref(), &user)?;
        let maker = program.maker(product)?;
        let beside = program.path.parent().map(PathBuf::from);
        product.check_needs(servers, &beside.into_iter().chain(folders(product)).collect::<Vec<_>>())?;
        let (request, memory) = (request.clone(), memory_bytes() / u64::from(servers));
        Ok(Setup { request, product, url, user, program, maker, servers, levels, memory })
    }

    fn make_data(&self, settings: &Settings, first: &Server) -> Result<(), TargetError> {
        let Product { make, lasting, .. } = self.product;
        let mut command = self.user.command("/bin/sh", Signal::SIGKILL);
        command.env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/usr/local/sbin");
        command.args(["-c", GUARD, "loadline"]).arg(&self.maker).args(first.arguments(make));
        let lasts = |name: &str| lasting.iter().any(|begin| normal(name).starts_with(begin));
        let settings_of = settings.all().filter(|(name, _)| lasts(name));
        command.args(settings_of.map(|(name, value)| format!("--{}={value}", name.replace('_', "-"))));
        command.args(self.base());
        first.run(&self.maker, command, if lasting.is_empty() { None } else { Some(settings) })
    }

    /// The option that leads a server to its own files, if the user named the binaries.
    pub(crate) fn base(&self) -> Option<OsString> {
        let above = self.url.bin.as_deref()?.parent()?;
        let option = &self.product.base;
        (!option.is_empty()).then(|| [OsStr::new(option), above.as_os_str()].into_iter().collect())
    }

    /// The `given` settings with loadline's own.
    pub(crate) fn settings(&self, given: &BTreeMap<String, String>, cache_mib: u64) -> Settings {
        Settings::new(self.product, self.program.release, self.levels, given, cache_mib)
    }

    pub(crate) fn ask(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Output, TargetError> {
        let mut command = self.user.command(&self.program.path, Signal::SIGKILL);
        command.args(arguments).output().map_err(|e| cannot_run(&self.program.path, &e))
    }

    /// The error if `server` refuses the user's settings in `log`.
    pub(crate) fn refused(&self, server: &Server, what: &str, settings: &Settings, log: &str) -> TargetError {
        server.refused(what, Some(settings), log).with(&self.meant(settings, log))
    }

    /// Advice if the program does not know one of these settings according to its log.
    fn meant(&self, settings: &Settings, log: &str) -> String {
        let Some(name) = self.product.unknown(settings, log) else { return String::new() };
        let list = &self.product.list;
        let listed = self.ask(list).map_or_else(|_| Vec::new(), |output| output.stdout);
        let listed = String::from_utf8_lossy(&listed);
        let first = |line: &str| line.split_whitespace().next().map(|word| normal(word.trim_start_matches('-')));
        let known: Vec<String> = listed.lines().filter_map(first).collect();
        nearest(&normal(name), known.iter().map(String::as_str)).map_or_else(
            || format!(": `{} {}` lists its settings", self.program.path.display(), list.join(" ")),
            |near| format!(": did you mean '{near}'?"),
        )
    }

    /// Refuses several servers with block caches of so many bytes if there is too little memory for them.
    fn check_memory(&self, cache: u64) -> Result<(), TargetError> {
        let Product { memory_mib, cache: setting, .. } = self.product;
        let Some(beside) = memory_mib else { return Ok(()) };
        let each = cache.saturating_add(beside << 20);
        if self.servers <= 1 || each <= self.memory {
            return Ok(());
        }
        let servers = u64::from(self.servers);
        let shown = |number: u64| bytes(number as f64);
        let setting = setting.settings.first().map(String::as_str).unwrap_or_default();
        Err(TargetError::Local(format!(
            "{servers} private servers need {} of memory, {} each ({} of {setting}), and there are {}: start fewer, or set less with \
             --setting {setting}=",
            shown(each.saturating_mul(servers)),
            shown(each),
            shown(cache),
            shown(self.memory * servers)
        )))
    }
}

/// A server and its further ones: PostgreSQL's standbys, MariaDB's replica, or the nodes of a cluster. Each has a folder of its own,
/// so whoever removes one removes the others. Dropping them stops them and removes their files.
pub(crate) struct Servers<S> {
    pub(crate) stages: S,
    pub(crate) setup: Setup,
    pub(crate) settings: Settings,
    pub(crate) notes: Vec<String>,
    /// They stop before the first, which may wait for them.
    pub(crate) further: Vec<Server>,
    pub(crate) first: Server,
    /// The results folder if it was made for them; removed after them if it is empty.
    _made: Parents,
}

impl<S: Stages> Servers<S> {
    /// Creates the servers and starts them, each further one after `admit`.
    ///
    /// # Errors
    /// - [`TargetError::Usage`]: the URL is invalid, or the program rejects a setting.
    /// - [`TargetError::Local`]: no binaries, no usable folder, or the data folder cannot be made.
    ///
    /// No files are left in either case.
    pub(crate) fn open(
        product: &'static Product,
        request: &OpenRequest,
        admit: impl Fn(&Servers<S>, &Server) -> Result<(), TargetError>,
    ) -> Result<Servers<S>, TargetError> {
        let mut servers = Servers::create(product, request)?;
        servers.start(0)?;
        for number in 1..=servers.further.len() {
            admit(&servers, &servers.further[number - 1])?;
            servers.start(number)?;
        }
        if !servers.further.is_empty() && !product.note.is_empty() {
            let number = servers.further.len().to_string();
            let through = if servers.setup.levels { ", each through a link of loadline's" } else { "" };
            servers.notes.push(fill(&product.note, &[("number", &number), ("through", through)]));
        }
        Ok(servers)
    }

    /// Removes leftovers of dead owners in the same place, then creates the servers. None is started.
    fn create(product: &'static Product, request: &OpenRequest) -> Result<Servers<S>, TargetError> {
        let setup = Setup::new(product, request)?;
        let stages = S::find(&setup)?;
        let Location { parent, note, made } = setup.place(&request.scratch)?;
        let (leftovers, _) = remove_leftovers(product, &[request.scratch.clone(), parent.clone()]);
        let first = Server::create(&setup, &parent, 0)?;
        let given = &request.settings;
        let cache = stages.check(&setup, given, &first)?;
        let cache_mib = product.cache_mib(setup.memory);
        setup.check_memory(cache.unwrap_or(cache_mib << 20))?;
        let settings = setup.settings(given, cache_mib);
        let own = format!(
            "private {} {} ({}), created for this run and removed after it; it ran as the user '{}'",
            product.name,
            setup.program.shown(),
            setup.program.path.display(),
            setup.user.name
        );
        let mut notes = vec![own, note];
        notes.extend(settings.notes());
        notes.extend(leftovers);
        setup.make_data(&settings, &first)?;
        let mut all = Servers { stages, setup, settings, notes, further: Vec::new(), first, _made: made };
        for number in 1..all.setup.servers {
            let mut server = Server::create(&all.setup, &parent, number)?;
            all.stages.join(&all.setup, &mut server, &all.first)?;
            all.further.push(server);
        }
        Ok(all)
    }

    /// Starts the server of this number, the first is 0, and waits until it accepts sessions. One that does not is ended.
    pub(crate) fn start(&mut self, number: usize) -> Result<(), TargetError> {
        let Servers { stages, setup, settings, further, first, .. } = self;
        let Some(server) = std::iter::once(first).chain(further).nth(number) else { return Ok(()) };
        let which = if number > 0 { format!(" ({})", server.name) } else { String::new() };
        let mut tries = 0;
        loop {
            let command = stages.command(setup, settings, server).map_err(|e| e.with(&which))?;
            server.spawn(command)?;
            let Err(why) = server.wait_ready(S::ask).and_then(|()| settings.check_taken(&server.log())) else {
                return Ok(());
            };
            server.stop(&setup.product.end);
            tries += 1;
            // A port that was free may be taken meanwhile.
            if tries == TRIES || !server.log().to_lowercase().contains("address already in use") {
                let what = format!("the private {} did not start ({why})", setup.product.name);
                return Err(setup.refused(server, &what, settings, &server.log()).with(&which));
            }
        }
    }

    /// The links to the first server that loadline may change.
    pub(crate) fn links(&self) -> Vec<Arc<Relay>> {
        self.further.iter().filter_map(|server| server.relay.clone()).collect()
    }

    /// Starts further servers again that have ended, and those of the names `hang`.
    pub(crate) fn revive(&mut self, hang: &[String]) -> Result<(), TargetError> {
        for number in 1..=self.further.len() {
            let server = &mut self.further[number - 1];
            if server.runs() && !hang.contains(&server.name) {
                continue;
            }
            server.stop(&self.setup.product.end);
            // A killed server may have left processes and shared memory.
            server.end()?;
            self.start(number)?;
        }
        Ok(())
    }

    /// Replaces the settings given by the user and returns those before. The servers have to be restarted or to read them.
    pub(crate) fn give(&mut self, given: &BTreeMap<String, String>) -> Result<Settings, TargetError> {
        let Servers { stages, setup, settings, first, .. } = self;
        if settings.given != *given {
            setup.product.check_names(given, setup.servers, setup.levels)?;
            stages.check(setup, given, first)?;
        }
        let next = setup.settings(given, settings.cache_mib);
        Ok(std::mem::replace(settings, next))
    }
}
