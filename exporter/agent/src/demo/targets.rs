//! The targets of the demo: the page, files in a new folder, or the targets from the command line.

use std::{
    fs, io,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_page::PageStore;
use pulsetrain_pipeline::{CancellationToken, Requirement, Sink, SinkTaskConfig};
use pulsetrain_prometheus::PrometheusStore;
use pulsetrain_tail::Checkpointer;

use tokio::{task::JoinHandle, time::timeout};

use super::arguments::DemoArguments;
use crate::{
    config::{self, Config, FileSection, PerfettoSection, PrometheusSection, SinkConfig, Spanned},
    failure::Failure,
    topology::{self, RetainedStores},
};

/// The names of the files in the folder.
pub(super) const OTLP_FILE: &str = "telemetry.binpb";
/// The deadline for the end of a server.
const SERVER_END: Duration = Duration::from_secs(10);
const PERFETTO_FILES: &str = "trace.pftrace";

/// The sinks of the demo, and the locations to print.
#[derive(Default)]
pub(super) struct Targets {
    /// The sinks.
    pub(super) sinks: Vec<(Box<dyn Sink>, Requirement, SinkTaskConfig)>,
    /// The address of the page.
    pub(super) page: Option<SocketAddr>,
    /// The series of the page.
    pub(super) series: Option<PrometheusStore>,
    /// The histories of live pages, which show the sinks.
    pub(super) live_pages: Vec<PageStore>,
    /// The folder of the files.
    pub(super) folder: Option<PathBuf>,
    /// The background tasks of the sinks.
    servers: Vec<JoinHandle<()>>,
}

impl Targets {
    /// Opens the sinks; `stop` ends their servers.
    ///
    /// # Errors
    /// Returns an error if a target is invalid, or a port or a folder cannot be used.
    pub(super) async fn open(
        arguments: &DemoArguments,
        config: &Config,
        time_unix_nanos: UnixNanos,
        stop: &CancellationToken,
    ) -> Result<Self, Failure> {
        let mut targets = Self::default();
        let is_default = arguments.to.is_empty() && arguments.config.is_none();
        if is_default || arguments.listen.is_some() {
            let address = page_address(arguments.listen)?;
            targets.open_page(config, address, stop).await?;
        }
        if arguments.config.is_some() && arguments.to.is_empty() {
            for (name, section) in config.sinks.iter() {
                section.warn_sources_ignored(name);
                targets.add(name, section, config, stop).await?;
            }
        }
        if !arguments.to.is_empty() {
            let sinks = topology::sinks(&arguments.to, &[], None)?;
            let required = |sink| (sink, Requirement::Required, config.limits.task_config());
            targets.sinks.extend(sinks.into_iter().map(required));
        }
        if is_default || arguments.out.is_some() {
            let folder = folder(arguments.out.as_deref(), time_unix_nanos)?;
            let file = FileSection {
                path: Spanned::without_location(text(&folder.join(OTLP_FILE))),
                ..FileSection::default()
            };
            let traces = PerfettoSection {
                path: Spanned::without_location(text(&folder.join(PERFETTO_FILES))),
                ..PerfettoSection::default()
            };
            for (name, section) in [
                ("archive", SinkConfig::File(Spanned::without_location(file))),
                ("traces", SinkConfig::Perfetto(Spanned::without_location(traces))),
            ] {
                targets.add(name, &section, config, stop).await?;
            }
            targets.folder = Some(folder);
        }
        Ok(targets)
    }

    /// Waits until the background tasks have ended, including the answers in progress.
    pub(super) async fn end(self) {
        for server in self.servers {
            // A server disconnects idle clients; its own limit is shorter than this.
            let _ = timeout(SERVER_END, server).await;
        }
    }

    async fn open_page(
        &mut self,
        config: &Config,
        address: SocketAddr,
        stop: &CancellationToken,
    ) -> Result<(), Failure> {
        let page = PrometheusSection::with_address(address);
        self.series = self
            .add(
                "page",
                &SinkConfig::Prometheus(Box::new(Spanned::without_location(page))),
                config,
                stop,
            )
            .await?;
        self.page = Some(address);
        Ok(())
    }

    /// Opens a sink; returns the series of a page.
    async fn add(
        &mut self,
        name: &str,
        section: &SinkConfig,
        config: &Config,
        stop: &CancellationToken,
    ) -> Result<Option<PrometheusStore>, Failure> {
        let checkpointer = Checkpointer::in_memory();
        let built = topology::build_sink(
            name,
            section,
            &config.perfetto,
            &checkpointer,
            RetainedStores::default(),
            stop.clone(),
        )
        .await
        .map_err(Failure::failed)?;
        let sinks = built.sinks.into_iter();
        let task_config = || section.task_config(&config.limits);
        self.sinks
            .extend(sinks.map(|sink| (sink, section.requirement(), task_config())));
        self.live_pages.extend(built.page);
        self.servers.extend(built.server.map(tokio::spawn));
        Ok(built.series)
    }
}

/// Returns the address of the page: the requested one, or the default one, or the default one with a free port.
fn page_address(asked: Option<SocketAddr>) -> Result<SocketAddr, Failure> {
    let usual = PrometheusSection::default().listen.0.tcp();
    let usual = usual.expect("invariant: the default is a TCP address");
    let address = asked.unwrap_or(usual);
    match free(address) {
        Ok(address) => Ok(address),
        Err(_) if asked.is_none() => free(SocketAddr::new(usual.ip(), 0)).map_err(|error| {
            Failure::failed(format!(
                "no free port on {}: {error}; name an address with --listen",
                usual.ip()
            ))
        }),
        Err(error) => {
            let owner =
                config::port_owner(address).map_or(String::new(), |who| format!(" (in use by {who})"));
            Err(Failure::failed(format!(
                "cannot serve the page at {address}: {error}{owner}; name another address with --listen, or omit --listen to use a free port"
            )))
        }
    }
}

/// Returns the address with its port if no program listens on it.
fn free(address: SocketAddr) -> io::Result<SocketAddr> {
    TcpListener::bind(address)?.local_addr()
}

/// Creates the folder of the files.
fn folder(asked: Option<&Path>, time_unix_nanos: UnixNanos) -> Result<PathBuf, Failure> {
    let folder = asked.map_or_else(|| usual_folder(time_unix_nanos), Path::to_owned);
    let failed = |error| {
        Failure::failed(format!(
            "cannot write to the folder {}: {error}; name another folder with --out",
            folder.display()
        ))
    };
    fs::create_dir_all(&folder).map_err(failed)?;
    match fs::read_dir(&folder).map_err(failed)?.next() {
        None => Ok(folder),
        Some(_) => Err(Failure::failed(format!(
            "the folder {} is not empty; name a new folder with --out",
            folder.display()
        ))),
    }
}

/// Returns `pulsetrain-demo-20261122-150405`, in UTC.
fn usual_folder(time_unix_nanos: UnixNanos) -> PathBuf {
    let seconds = (time_unix_nanos.0 / 1_000_000_000) as i64;
    let time = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    PathBuf::from(format!("pulsetrain-demo-{}", time.strftime("%Y%m%d-%H%M%S")))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
