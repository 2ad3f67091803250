//! A private MariaDB of the test's own, as a user's server would be.

use super::{Command, Killed, Stdio, answer, as_user, done, free_port, give_to, made_once, wait_for};

pub(crate) struct Maria {
    /// Ends before its folder goes.
    child: Option<Killed>,
    dir: tempfile::TempDir,
    pub(crate) port: u16,
}

impl Maria {
    /// Starts one with these settings; root has the password 'tops3cret' over TCP and none on the
    /// socket. It has a certificate for 'localhost' from an authority of its own.
    pub(crate) fn start(settings: &[&str]) -> Maria {
        let dir = tempfile::Builder::new().prefix("loadline-maria-").tempdir_in("/var/tmp").unwrap();
        let at = |name: &str| dir.path().join(name).display().to_string();
        let version = answer(Command::new("mariadbd").arg("--version")).unwrap();
        let name = format!("mariadb-{}", version.split_whitespace().nth(2).unwrap());
        // All of this file is the recipe.
        made_once(&name, concat!(include_str!("mariadb.rs"), include_str!("certificates.sh")), dir.path(), |made| {
            done(Command::new("sh").args(["-c", include_str!("certificates.sh")]).current_dir(made));
            give_to("mysql", made);
            let mut install = as_user("mysql", "mariadb-install-db");
            install.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
            let made = made.display();
            done(install.args([format!("--datadir={made}/data"), format!("--tmpdir={made}")]));
        });
        // A server that starts removes other servers' temporary tables from a folder that they share.
        let temporary = format!("--tmpdir={}", dir.path().display());
        give_to("mysql", dir.path());
        let port = free_port();
        let log = std::fs::File::create(dir.path().join("server.log")).unwrap();
        let mut command = as_user("mysql", "mariadbd");
        command.args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve=0"]);
        command.arg(format!("--port={port}")).arg(format!("--datadir={}", at("data")));
        command.arg(format!("--socket={}", at("s"))).arg(format!("--pid-file={}", at("pid")));
        command.arg(format!("--ssl-cert={}", at("server.crt"))).arg(format!("--ssl-key={}", at("server.key")));
        command.arg(temporary).args(settings);
        let child = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let server = Maria { dir, child: Some(Killed(child)), port };
        wait_for("the server to answer", || server.sql("SELECT 1").is_ok());
        server.sql("CREATE USER ann@'%' IDENTIFIED BY 'tops3cret'; GRANT ALL ON *.* TO ann@'%'").unwrap();
        server
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    pub(crate) fn url(&self, user: &str) -> String {
        format!("mysql://{user}@/?socket={}", self.file("s"))
    }

    pub(crate) fn tcp(&self, credentials: &str, query: &str) -> String {
        format!("mariadb://{credentials}@localhost:{}/{query}", self.port)
    }

    /// Runs statements with MariaDB's own client.
    pub(crate) fn sql(&self, sql: &str) -> Result<String, String> {
        let socket = self.file("s");
        answer(Command::new("mariadb").args(["--no-defaults", "-N", "-B", "-uroot", "-S", &socket, "-e", sql]))
    }

    pub(crate) fn kill(&mut self) {
        drop(self.child.take());
    }
}
