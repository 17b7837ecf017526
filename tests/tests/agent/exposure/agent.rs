//! An agent with a receiver, a page and health checks, each with the exposure that the test selects.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
};

use pulsetrain_tests::{Certificates, Folder, Items, Process, command, free_port, http::is_open, wait_until};

/// A running agent and its files.
pub(crate) struct Agent {
    pub(crate) receiver: u16,
    pub(crate) page: u16,
    pub(crate) health: u16,
    process: Process,
    folder: Folder,
}

/// Keys of the three listening sections, as YAML flow entries such as `auth: {bearer_token_file: token}`.
#[derive(Default)]
pub(crate) struct Keys<'a> {
    pub(crate) receiver: &'a str,
    pub(crate) page: &'a str,
    pub(crate) health: &'a str,
    pub(crate) sinks: &'a str,
}

impl Agent {
    /// Starts an agent with these keys of its receiver, and no others.
    pub(crate) fn with_receiver(folder: Folder, receiver: &str) -> Self {
        let keys = Keys {
            receiver,
            ..Keys::default()
        };
        Self::start(folder, &keys)
    }

    /// Starts an agent in `folder`, which contains its configuration and its output.
    pub(crate) fn start(folder: Folder, keys: &Keys<'_>) -> Self {
        let [receiver, page, health] = [free_port(), free_port(), free_port()];
        let path = |name: &str| folder.path(name).display().to_string();
        let socket = match keys.receiver.contains("socket_mode") {
            true => format!(", 'unix:{}'", path("otlp.sock")),
            false => String::new(),
        };
        let yaml = format!(
            "state_folder: {}
gpu: {{enabled: false}}
telemetry: {{interval: 500ms}}
derive: {{signals: {{enabled: false}}, energy: {{enabled: false}}}}
sources:
  sdk:
    otlp: {{listen: ['127.0.0.1:{receiver}'{socket}], {}}}
sinks:
  archive: {{file: {{path: {}}}}}
  page: {{prometheus: {{listen: 127.0.0.1:{page}, {}}}}}
{}
health: {{listen: 127.0.0.1:{health}, {}}}
",
            path("state"),
            keys.receiver,
            path("out.jsonl"),
            keys.page,
            keys.sinks,
            keys.health,
        );
        let config = folder.file("agent.yaml", yaml);
        let mut process = Process::start("pulsetrain agent", command(["agent", "--config"]).arg(config));
        let log = process.log();
        process.wait_until_ready(|| is_open(receiver));
        let agent = Self {
            receiver,
            page,
            health,
            process,
            folder,
        };
        wait_until(&format!("the agent is ready, {log}"), || {
            agent.log().contains("ready")
        });
        agent
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    pub(crate) fn memory_kib(&self) -> u64 {
        self.process.memory_kib()
    }

    /// Returns the number of spans received so far.
    pub(crate) fn spans(&self) -> usize {
        let items = Items::read_complete_lines(&self.path("out.jsonl"));
        items.divide_by_service("pulsetrain").1.of_kind("span").len()
    }

    /// Waits until the log has these words.
    pub(crate) fn wait_for_log(&self, words: &str) {
        wait_until(&format!("the log has {words:?}: {}", self.log()), || {
            self.log().contains(words)
        });
    }

    /// Replaces a file as a secret manager does, and waits until the agent has reloaded it.
    pub(crate) fn rotate(&self, name: &str, content: &[u8]) {
        let before = self.log().matches("again, which changed").count();
        let new = self.path(&format!("{name}.new"));
        fs::write(&new, content).expect("a temporary file can be written");
        fs::rename(&new, self.path(name)).expect("a temporary file can be renamed");
        wait_until("the agent reads the new file", || {
            self.log().matches("again, which changed").count() > before
        });
    }
}

/// Creates a folder with the files of a TLS server and a token.
pub(crate) fn secrets(certificates: &Certificates, token: &str) -> Folder {
    let folder = Folder::new();
    let (certificate, key) = certificates.server();
    for (from, to) in [
        (certificate, "server.pem"),
        (key, "server.key"),
        (certificates.authority(), "ca.pem"),
    ] {
        fs::copy(from, folder.path(to)).expect("a temporary file can be copied");
    }
    folder.file("token", token);
    folder
}

/// Returns `tls: {...}` with the files of [`secrets`]; with `mutual`, clients need a certificate.
pub(crate) fn tls(folder: &Path, mutual: bool) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    let client_ca = match mutual {
        true => format!(", client_ca: {}", path("ca.pem")),
        false => String::new(),
    };
    format!(
        "tls: {{certificate: {}, key: {}{client_ca}}}",
        path("server.pem"),
        path("server.key")
    )
}

/// Returns `auth: {...}` with the token of [`secrets`].
pub(crate) fn bearer(folder: &Path) -> String {
    format!("auth: {{bearer_token_file: {}}}", folder.join("token").display())
}

/// Returns `auth: {...}` with the token of [`secrets`] as the password of `user`.
pub(crate) fn basic(folder: &Path, user: &str) -> String {
    format!(
        "auth: {{basic: {{user: {user}, password_file: {}}}}}",
        folder.join("token").display()
    )
}

/// Returns the head and the body of the response to a GET with additional headers; empty without a response.
pub(crate) fn get(port: u16, path: &str, headers: &str) -> String {
    let mut answer = Vec::new();
    let asked = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|mut stream| {
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n"
        )?;
        stream.read_to_end(&mut answer)
    });
    match asked {
        Ok(_) => String::from_utf8_lossy(&answer).into_owned(),
        Err(_) => String::new(),
    }
}
