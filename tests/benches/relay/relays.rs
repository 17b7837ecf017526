//! The relays: their configuration, their start, and the resource usage of their processes.

use std::{
    env,
    fmt::{self, Display, Formatter},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use pulsetrain_tests::{
    Folder, Judge, Process, free_port,
    http::{answers_ok, is_open},
    workspace_path,
};

use crate::PLAIN_HTTP;

/// The clock ticks per second in `/proc`; constant on Linux (`man 7 time`).
const TICKS: f64 = 100.0;

/// The argument with which this program runs as the lower bound (see `floor`); the port follows.
pub(crate) const FLOOR: &str = "--floor";

/// The protocol of both sides of a relay, and the compression of its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) protocol: Protocol,
    /// The compression of the requests that it sends; those that it receives are not compressed.
    pub(crate) compression: Compression,
}

impl Display for Wire {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Http => "HTTP",
            Protocol::Grpc => "gRPC",
        };
        write!(formatter, "{protocol}, compression {}", self.compression.name())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http,
    Grpc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// A relay that can be started.
pub(crate) struct Relay {
    pub(crate) name: &'static str,
    /// Whether the relay forwards the messages to the receiver.
    pub(crate) sends: bool,
    program: PathBuf,
    configure: Configure,
}

type Configure = Box<dyn Fn(&Ports) -> Configured>;

/// A running relay.
pub(crate) struct Running {
    pub(crate) port: u16,
    process: Process,
    _folder: Folder,
}

struct Ports {
    receiver: u16,
    /// The port of the receiver that the load does not use, for a relay that requires both receivers.
    unused: u16,
    health: u16,
    target: u16,
    folder: PathBuf,
}

/// The configuration file of a relay, if it has one, its arguments, and the address that responds when it is ready.
struct Configured {
    file: Option<String>,
    arguments: Vec<String>,
    ready: &'static str,
}

/// Returns all installed relays that support the protocol and the compression.
pub(crate) fn all(wire: Wire) -> Vec<Relay> {
    let agent = env::var_os("PULSETRAIN").unwrap_or_else(|| "target/release/pulsetrain".into());
    let agent = fs::canonicalize(workspace_path(agent))
        .expect("PULSETRAIN names the program: cargo build --release --bin pulsetrain");
    let build = |program: &Path, name, keys: &'static str| Relay {
        name,
        sends: true,
        program: program.to_owned(),
        configure: Box::new(move |ports| pulsetrain(ports, wire, keys)),
    };
    let of_agent = |name, keys| build(&agent, name, keys);
    let mut relays = Vec::new();
    if wire.protocol == Protocol::Http {
        relays.push(floor());
    }
    relays.extend([
        of_agent("pulsetrain", "      disk_queue: off\n"),
        // The wait of the Collector's batching and of rotel.
        of_agent(
            "pulsetrain, waiting 200 ms",
            "      disk_queue: off\n      batch: {max_wait: 200ms}\n",
        ),
        of_agent("pulsetrain, disk queue", "      disk_queue: {sync: interval}\n"),
        of_agent(
            "pulsetrain, one message a request",
            "      disk_queue: off\n      concurrency: 1\n      batch: {max_bytes: 0B}\n",
        ),
    ]);
    if let Some(before) = env::var_os("BEFORE") {
        let before = fs::canonicalize(workspace_path(before)).expect("BEFORE names another build");
        let keys = "      disk_queue: {sync: interval}\n";
        relays.push(build(&before, "BEFORE, disk queue", keys));
    }
    if let Some(program) = Judge::Collector.require_or_skip() {
        let of_collector = |name, queue: &'static str| Relay {
            name,
            sends: true,
            program: program.clone(),
            configure: Box::new(move |ports| collector(ports, wire, queue)),
        };
        relays.push(of_collector("Collector", "{}"));
        relays.push(of_collector(
            "Collector, batching",
            "{batch: {flush_timeout: 200ms, min_size: 8192}}",
        ));
    }
    // rotel has no zstd, and always compresses with gzip over HTTP.
    let name = match wire {
        PLAIN_HTTP => "rotel, gzip",
        _ => "rotel",
    };
    if let Some(program) = find_rotel().filter(|_| wire.compression != Compression::Zstd) {
        relays.push(Relay {
            name,
            sends: true,
            program,
            configure: Box::new(move |ports| rotel(ports, wire)),
        });
    }
    relays
}

fn floor() -> Relay {
    Relay {
        name: "HTTP alone",
        sends: false,
        program: env::current_exe().expect("the system knows this program"),
        configure: Box::new(|ports| Configured {
            file: None,
            arguments: vec![FLOOR.to_owned(), ports.receiver.to_string()],
            ready: "",
        }),
    }
}

/// Returns `ROTEL`, or `rotel-agent` or `rotel` on the PATH. The wheel on PyPI has the program in its folder `rotel`.
fn find_rotel() -> Option<PathBuf> {
    if let Some(program) = env::var_os("ROTEL") {
        return Some(fs::canonicalize(workspace_path(program)).expect("ROTEL names the program"));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .flat_map(|folder| ["rotel-agent", "rotel"].map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

impl Relay {
    /// Starts the relay with the receiver at the port `target`.
    pub(crate) fn start(&self, target: u16) -> Running {
        let folder = Folder::new();
        let ports = Ports {
            receiver: free_port(),
            unused: free_port(),
            health: free_port(),
            target,
            folder: folder.path(""),
        };
        let Configured {
            file,
            arguments,
            ready,
        } = (self.configure)(&ports);
        let path = folder.path("relay.yaml");
        if let Some(text) = file {
            fs::write(&path, text).expect("a temporary file can be written");
        }
        let mut command = Command::new(&self.program);
        for argument in arguments {
            command.arg(argument.replace("CONFIG", path.to_str().expect("the path is text")));
        }
        let mut process = Process::start(self.name, &mut command);
        let health = if ready.is_empty() {
            ports.receiver
        } else {
            ports.health
        };
        process.wait_until_ready(|| match ready {
            "" => is_open(health),
            path => answers_ok(health, path),
        });
        Running {
            port: ports.receiver,
            process,
            _folder: folder,
        }
    }
}

impl Running {
    /// Returns the CPU time of the process so far.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let stat = self.proc("stat");
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        // utime and stime are the 14th and 15th field; the first field after the name is the third.
        let ticks = fields[11..13]
            .iter()
            .map(|ticks| ticks.parse::<f64>().unwrap_or_default());
        ticks.sum::<f64>() / TICKS
    }

    /// Returns the peak memory of the process.
    pub(crate) fn peak_kib(&self) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
        number.expect("a running process has memory")
    }

    fn proc(&self, file: &str) -> String {
        let path = Path::new("/proc").join(self.process.pid().to_string()).join(file);
        fs::read_to_string(path).expect("the relay runs")
    }
}

fn pulsetrain(ports: &Ports, wire: Wire, keys: &str) -> Configured {
    let Ports {
        receiver,
        health,
        target,
        folder,
        ..
    } = ports;
    let scheme = match wire.protocol {
        Protocol::Http => "http",
        Protocol::Grpc => "grpc",
    };
    let file = format!(
        "state_folder: {}\nsources:\n  clients:\n    otlp:\n      listen: [127.0.0.1:{receiver}]\nsinks:\n  o:\n    otlp:\n      \
         endpoint: {scheme}://127.0.0.1:{target}\n      compression: {}\n{keys}telemetry: {{enabled: false}}\n\
         health: {{listen: 127.0.0.1:{health}}}\n\
         gpu: {{enabled: false}}\nderive: {{signals: {{enabled: false}}, energy: {{enabled: false}}}}\n",
        folder.join("state").display(),
        wire.compression.name()
    );
    Configured {
        file: Some(file),
        arguments: ["agent", "--config", "CONFIG"].map(str::to_owned).into(),
        ready: "/readyz",
    }
}

fn collector(ports: &Ports, wire: Wire, queue: &str) -> Configured {
    let Ports {
        receiver,
        health,
        target,
        ..
    } = ports;
    let compression = wire.compression.name();
    let (protocol, exporter) = match wire.protocol {
        Protocol::Http => ("http", "otlphttp"),
        Protocol::Grpc => ("grpc", "otlp"),
    };
    let endpoint = match wire.protocol {
        Protocol::Http => format!("endpoint: http://127.0.0.1:{target}"),
        Protocol::Grpc => format!("endpoint: 127.0.0.1:{target}, tls: {{insecure: true}}"),
    };
    let file = format!(
        "extensions:\n  health_check: {{endpoint: 127.0.0.1:{health}}}\n\
         receivers:\n  otlp: {{protocols: {{{protocol}: {{endpoint: 127.0.0.1:{receiver}}}}}}}\n\
         exporters:\n  {exporter}: {{{endpoint}, compression: {compression}, sending_queue: {queue}}}\n\
         service:\n  extensions: [health_check]\n  telemetry: {{metrics: {{level: none}}, logs: {{level: error}}}}\n  \
         pipelines: {{traces: {{receivers: [otlp], exporters: [{exporter}]}}}}\n"
    );
    Configured {
        file: Some(file),
        arguments: ["--config", "CONFIG"].map(str::to_owned).into(),
        ready: "/",
    }
}

fn rotel(ports: &Ports, wire: Wire) -> Configured {
    let (http, grpc, protocol) = match wire.protocol {
        Protocol::Http => (ports.receiver, ports.unused, "http"),
        Protocol::Grpc => (ports.unused, ports.receiver, "grpc"),
    };
    let arguments = [
        "start".to_owned(),
        format!("--otlp-http-endpoint=127.0.0.1:{http}"),
        format!("--otlp-grpc-endpoint=127.0.0.1:{grpc}"),
        "--exporter=otlp".to_owned(),
        format!("--otlp-exporter-endpoint=http://127.0.0.1:{}", ports.target),
        format!("--otlp-exporter-protocol={protocol}"),
        format!("--otlp-exporter-compression={}", wire.compression.name()),
    ];
    Configured {
        file: None,
        arguments: arguments.into(),
        ready: "",
    }
}
