//! `--check`: validates a configuration against the system, without starting anything.

use std::{
    collections::BTreeMap, fs::File, io, net::SocketAddr, ops::RangeInclusive, path::Path, time::Duration,
};

use pulsetrain_formats::{FORMATS, format_by_name};
use pulsetrain_pipeline::Problem;
use pulsetrain_tail::JOINED_BYTES;
use tokio::net::TcpSocket;

use super::{
    AGENT_SOURCE, Config, ExposureKeys, Fault, GPUS, LogsSection, ReceiverSection, SinkConfig, SourceConfig,
    fault::nearest,
    port_owner::{is_agent, port_owner},
    quantity::Size,
    source_list,
    spanned::Location,
};
use crate::{
    failure::net_problem,
    topology::{self, SinkFault},
};

/// The minimum of intervals.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// The valid range of a receiver's maximum message size.
const MESSAGE_BYTES: RangeInclusive<usize> = 1 << 10..=64 << 20;

/// Returns all faults, in the order of the file. The addresses `ours`, which a running agent listens on, do not count as in use.
pub(crate) fn check(file: &str, config: &Config, ours: &[SocketAddr]) -> Vec<Fault> {
    let mut found = Findings {
        file,
        faults: Vec::new(),
    };
    if config.sources.0.is_empty() && !config.gpu.enabled {
        found.whole(
            Problem::new("there are no sources, so there is nothing to do")
                .with_remedy("pulsetrain agent --print-config shows an example"),
        );
    }
    if config.sinks.0.is_empty() {
        found.whole(
            Problem::new("there are no sinks, so all data would be lost")
                .with_remedy("remove the key to use the default sink"),
        );
    }
    found.quantities(config);
    for (name, source) in config.sources.iter() {
        let reserved = match name {
            GPUS => "the GPUs of this machine",
            AGENT_SOURCE => "the telemetry of the agent itself",
            _ => "",
        };
        if !reserved.is_empty() {
            let message = Problem::new(format!("sources.{name}: the name is reserved for {reserved}"))
                .with_remedy("choose another");
            found.at(source.location(), message);
        }
        match source {
            SourceConfig::Logs(logs) => found.logs(name, logs, logs.location),
            SourceConfig::Otlp(receiver) => found.receiver(name, receiver, receiver.location, config),
        }
    }
    for (name, sink) in config.sinks.iter() {
        found.sink(name, sink);
    }
    for (location, message) in source_list::faults(config) {
        found.at(location, message);
    }
    found.health(config);
    found.files(config);
    found.ports(config, ours);
    found.faults.sort_by_key(|fault| fault.location);
    found.faults
}

/// Returns the problem of a queue that cannot hold a batch of a log, which would be lost. A queue of zero has another one.
pub(super) fn too_small_for_logs(bytes: &Size) -> Option<Problem> {
    (1..JOINED_BYTES).contains(&bytes.0).then(|| {
        Problem::new("a queue below 256KiB has no room for a batch of logs")
            .with_remedy("give it at least 256KiB")
    })
}

struct Findings<'a> {
    file: &'a str,
    faults: Vec<Fault>,
}

impl Findings<'_> {
    fn whole(&mut self, problem: Problem) {
        self.faults.push(Fault::of_file(self.file, problem));
    }

    fn at(&mut self, location: Location, problem: impl Into<Problem>) {
        self.faults.push(Fault::at(self.file, location, problem));
    }

    /// Finds quantities that accept nothing, and intervals that are too short.
    fn quantities(&mut self, config: &Config) {
        let limits = &config.limits;
        let queue = [
            (limits.queue_batches.location, *limits.queue_batches == 0),
            (limits.queue_bytes.location, limits.queue_bytes.0 == 0),
        ];
        for (location, _) in queue.into_iter().filter(|(_, is_zero)| *is_zero) {
            self.at(
                location,
                Problem::new("limits: a queue of zero accepts nothing").with_remedy("give it at least 1"),
            );
        }
        if let Some(problem) = too_small_for_logs(&limits.queue_bytes) {
            self.at(limits.queue_bytes.location, problem.within("limits"));
        }
        let intervals = [
            (
                &limits.retry_after,
                Problem::new("limits: a retry every few milliseconds overloads a receiver that fails")
                    .with_remedy("give it at least 100ms"),
            ),
            (
                &limits.retry_at_most,
                Problem::new("limits: a retry every few milliseconds overloads a receiver that fails")
                    .with_remedy("give it at least 100ms"),
            ),
            (
                &config.telemetry.interval,
                Problem::new("telemetry: an interval below 100ms would keep a processor busy")
                    .with_remedy("give it 1s or more"),
            ),
            (
                &config.gpu.interval,
                Problem::new("gpu: the driver measures ten times a second at most")
                    .with_remedy("give an interval of 100ms or more"),
            ),
            (
                &config.gpu.energy_interval,
                Problem::new("gpu: most drivers update the energy counter ten times a second")
                    .with_remedy("give an energy_interval of 100ms or more"),
            ),
            (
                &config.gpu.imex_interval,
                Problem::new("gpu: each report on IMEX starts two programs")
                    .with_remedy("give an imex_interval of 100ms or more"),
            ),
        ];
        for (interval, message) in intervals
            .into_iter()
            .filter(|(interval, _)| interval.0 < MIN_INTERVAL)
        {
            self.at(interval.location, message);
        }
    }

    fn logs(&mut self, name: &str, logs: &LogsSection, location: Location) {
        if logs.paths.is_empty() {
            self.at(
                location,
                Problem::new(format!("sources.{name}.logs has no paths"))
                    .with_remedy("name the logs, like paths: [training.json]"),
            );
        }
        if logs.poll_interval.0 < MIN_INTERVAL {
            self.at(
                logs.poll_interval.location,
                Problem::new(format!(
                    "sources.{name}.logs: a poll_interval below 100ms would keep a processor busy"
                ))
                .with_remedy("give it 1s"),
            );
        }
        for path in &logs.paths {
            if let Err(problem) = readable(Path::new(&path.value)) {
                self.at(
                    path.location,
                    problem.within(format_args!("{} cannot be read", path.value)),
                );
            }
        }
        self.mapping(name, logs);
        if let Some(rank) = &logs.rank
            && let Err(error) = rank.build()
        {
            let problem = Problem {
                remedy: error.remedy().map(Into::into),
                ..Problem::new(error.to_string())
            };
            self.at(
                rank.location,
                problem.within(format_args!("sources.{name}.logs.rank")),
            );
        }
        if let Err(error) = logs.timezone() {
            let problem = Problem::new(error.to_string()).with_remedy(error.remedy());
            self.at(
                logs.timezone.location,
                problem.within(format_args!("sources.{name}.logs.timezone")),
            );
        }
        let format = logs.format.value.as_str();
        if format != "auto" && format_by_name(format).is_none() {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).chain(["auto"]).collect();
            let instead = nearest(format, &names);
            self.at(
                logs.format.location,
                Problem::new(format!("there is no format {format:?}")).with_remedy(instead),
            );
        }
    }

    fn receiver(&mut self, name: &str, receiver: &ReceiverSection, location: Location, config: &Config) {
        if receiver.listen.is_empty() {
            self.at(
                location,
                Problem::new(format!("sources.{name}.otlp has no address"))
                    .with_remedy("give it one, like listen: [127.0.0.1:4317]"),
            );
        }
        self.exposure(&format!("sources.{name}.otlp"), receiver.exposure());
        if *receiver.max_connections == 0 {
            self.at(
                receiver.max_connections.location,
                Problem::new(format!(
                    "sources.{name}.otlp: max_connections of zero accepts no client"
                ))
                .with_remedy("give it at least 1"),
            );
        }
        if let Err(error) = receiver.settings().check() {
            let location = receiver
                .listen
                .first()
                .map_or(location, |address| address.location);
            self.at(
                location,
                net_problem(&error).within(format_args!("sources.{name}")),
            );
        }
        let queues = config
            .sinks
            .iter()
            .map(|(_, sink)| sink.task_config(&config.limits).queue.max_bytes);
        let queue = queues.min().unwrap_or(config.limits.queue_bytes.0);
        let message = receiver.max_message.0;
        let problem = if !MESSAGE_BYTES.contains(&message) {
            Problem::new("max_message is out of range").with_remedy("give 1KiB to 64MiB")
        } else if message > queue {
            Problem::new(format!(
                "a message of {message} bytes never fits into a queue of {queue}"
            ))
            .with_remedy(
                "give a max_message up to the smallest queue (limits.queue_bytes, or queue.bytes of a sink)",
            )
        } else {
            return;
        };
        let location = receiver.max_message.location.or(location);
        self.at(location, problem.within(format_args!("sources.{name}.otlp")));
    }

    /// Finds a mapping that is invalid or unused.
    fn mapping(&mut self, name: &str, logs: &LogsSection) {
        let Some(mapping) = &logs.mapping else { return };
        let faults = mapping.build().err().unwrap_or_default();
        // A faulty mapping names no format.
        let is_built = faults.is_empty();
        let extended = logs
            .built_mapping()
            .and_then(|mapping| Some(mapping.extended()?.to_owned()));
        for (location, problem) in faults {
            self.at(
                location,
                problem.within(format_args!("sources.{name}.logs.mapping")),
            );
        }
        let is_used = logs.log_format().is_some_and(|format| {
            extended
                .as_deref()
                .map_or(format.takes_mapping(), |name| name == format.name)
        });
        if is_built && !is_used {
            self.at(
                logs.format.location,
                Problem::new(format!(
                    "sources.{name}.logs: a mapping is for the formats {}",
                    mapped()
                ))
                .with_remedy("name one of them here, or in the mapping"),
            );
        }
    }

    fn sink(&mut self, name: &str, sink: &SinkConfig) {
        if let SinkConfig::Otlp(otlp) = sink {
            for (location, problem) in otlp.faults() {
                self.at(location, problem.within(format_args!("sinks.{name}.otlp")));
            }
        }
        if let Err(SinkFault {
            location,
            problem,
            is_awaited,
        }) = topology::check_sink(sink)
        {
            let problem = problem.about(format!("sinks.{name}"));
            self.faults.push(Fault {
                is_awaited,
                ..Fault::at(self.file, location, problem)
            });
        }
        if let SinkConfig::Prometheus(prometheus) = sink {
            self.exposure(&format!("sinks.{name}.prometheus"), prometheus.exposure());
        }
    }

    fn health(&mut self, config: &Config) {
        let health = &config.health;
        if !health.enabled {
            return;
        }
        self.exposure("health", health.exposure());
        if let Err(error) = health.exposure().settings().check_address(*health.listen) {
            self.at(health.listen.location, net_problem(&error).within("health"));
        }
    }

    fn exposure(&mut self, section: &str, keys: ExposureKeys<'_>) {
        if let Err((location, problem)) = keys.check() {
            self.at(location, problem.within(section));
        }
    }

    /// Finds files that two sinks would write, or that are both written and read.
    fn files(&mut self, config: &Config) {
        let mut written = BTreeMap::new();
        let absolute = |path: &str| std::path::absolute(path).unwrap_or_else(|_| path.into());
        for (name, sink) in config.sinks.iter() {
            let SinkConfig::File(file) = sink else { continue };
            let path = &file.path;
            if let Some(other) = written.insert(absolute(path), name) {
                let message = Problem::new(format!("{} is the file of sinks.{other} too", path.value))
                    .with_remedy("name another one");
                self.at(path.location, message);
            }
        }
        for (name, source) in config.sources.iter() {
            let SourceConfig::Logs(logs) = source else {
                continue;
            };
            for path in &logs.paths {
                if let Some(sink) = written.get(&absolute(path)) {
                    let message = Problem::new(format!(
                        "{} is read by sources.{name} and written by sinks.{sink}",
                        path.value
                    ))
                    .with_remedy("name another file");
                    self.at(path.location, message);
                }
            }
        }
    }

    /// Finds ports that another program holds, or that the configuration uses twice.
    fn ports(&mut self, config: &Config, ours: &[SocketAddr]) {
        for (address, locations) in listens(config) {
            if let [_, second, ..] = locations[..] {
                self.at(
                    second,
                    Problem::new(format!("{address} is listened on twice"))
                        .with_remedy("give one of them another port"),
                );
            }
            if ours.contains(&address) || address.port() == 0 {
                continue;
            }
            if let Err(error) = try_bind(address) {
                self.at(
                    locations[0],
                    Problem::new(format!("cannot listen on {address}: {error}"))
                        .with_remedy(remedy(&error, address)),
                );
            }
        }
    }
}

/// Binds a socket to the address and closes it. It never listens: a client that connects meanwhile is refused, as before the agent
/// listens, and not accepted and then reset.
fn try_bind(address: SocketAddr) -> io::Result<()> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // As the listener does: a port whose last connections are still closing is free.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)
}

/// Returns the names of the formats that accept a mapping.
pub(crate) fn mapped() -> String {
    let all = FORMATS.iter().filter(|format| format.takes_mapping());
    all.map(|format| format.name).collect::<Vec<_>>().join(", ")
}

/// Returns the listening addresses of a configuration.
pub(crate) fn addresses(config: &Config) -> Vec<SocketAddr> {
    listens(config).into_keys().collect()
}

/// Returns the addresses of a configuration on which the agent listens that serves its health address: the agent that this
/// configuration is for. Other users' programs have no visible address.
pub(crate) fn addresses_of_agent(config: &Config) -> Vec<SocketAddr> {
    let owner = config
        .health
        .enabled
        .then(|| port_owner(*config.health.listen))
        .flatten();
    let Some(owner) = owner.filter(|owner| is_agent(owner)) else {
        return Vec::new();
    };
    let mut addresses = addresses(config);
    addresses.retain(|address| port_owner(*address).as_ref() == Some(&owner));
    addresses
}

/// Returns the listening addresses of a configuration, each with its places in the file.
fn listens(config: &Config) -> BTreeMap<SocketAddr, Vec<Location>> {
    let mut listens: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (_, sink) in config.sinks.iter() {
        if let SinkConfig::Prometheus(prometheus) = sink {
            let listen = &prometheus.listen;
            if let Some(address) = listen.0.tcp() {
                listens.entry(address).or_default().push(listen.location);
            }
        }
    }
    for (_, source) in config.sources.iter() {
        if let SourceConfig::Otlp(receiver) = source {
            for listen in &receiver.listen {
                if let Some(address) = listen.0.tcp() {
                    listens.entry(address).or_default().push(listen.location);
                }
            }
        }
    }
    if config.health.enabled {
        let listen = &config.health.listen;
        listens.entry(listen.value).or_default().push(listen.location);
    }
    listens
}

fn remedy(error: &io::Error, address: SocketAddr) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let owner = port_owner(address).unwrap_or_else(|| "the program that has it".to_owned());
            return format!("stop {owner}, or choose another port");
        }
        io::ErrorKind::AddrNotAvailable => "choose an address of this machine, such as 127.0.0.1",
        io::ErrorKind::PermissionDenied => "choose a port above 1023",
        _ => "choose another address",
    }
    .to_owned()
}

/// Checks whether a log can be read, if it exists: missing files may appear, patterns may match nothing yet.
///
/// # Errors
/// Returns the reason and the fix.
pub(crate) fn readable(path: &Path) -> Result<(), Problem> {
    let fault =
        |error: io::Error| Problem::new(error.to_string()).with_remedy("check the path and its permissions");
    let kind = match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        metadata => metadata.map_err(fault)?.file_type(),
    };
    if !kind.is_file() && !kind.is_dir() {
        // Opening a pipe would wait for its writer.
        return Err(Problem::new("it is not a regular file, so it cannot be followed")
            .with_remedy("name a file or a directory"));
    }
    File::open(path).map(drop).map_err(fault)
}
