//! The live page and `/metrics` of `run --listen`, without a configuration file.

use std::{
    ffi::OsString,
    net::{SocketAddr, TcpListener},
};

use pulsetrain_page::PageStore;
use pulsetrain_pipeline::{CancellationToken, Problem, Requirement, Sink};
use pulsetrain_tail::Checkpointer;

use crate::{
    cli::RunArguments,
    config::{self, Config, PrometheusSection, SinkConfig, Spanned},
    topology::{self, RetainedStores},
};

/// The sinks of the page.
pub(super) struct Page {
    pub(super) address: SocketAddr,
    pub(super) sinks: Vec<(Box<dyn Sink>, Requirement)>,
    /// The history of the page.
    pub(super) store: Option<PageStore>,
}

/// Returns whether `--listen` is the only target: there is no `--to`, no `--config`, and no variable sets an endpoint.
pub(super) fn is_only_target(
    arguments: &RunArguments,
    mut variables: impl Iterator<Item = OsString>,
) -> bool {
    let is_endpoint = |name: OsString| {
        let name = name.to_string_lossy();
        name.starts_with("OTEL_EXPORTER_OTLP_") && name.ends_with("ENDPOINT")
    };
    arguments.listen.is_some()
        && arguments.to.is_empty()
        && arguments.config.is_none()
        && !variables.any(is_endpoint)
}

/// Serves the page at this address; port 0 picks a free port. Must be called inside a runtime.
///
/// # Errors
/// Returns an error if the address is in use: if several ranks share a machine, only one of them can bind the port.
pub(super) async fn open(address: SocketAddr, config: &Config) -> Result<Page, Problem> {
    let in_use = |error: std::io::Error| {
        let owner =
            config::port_owner(address).map_or(String::new(), |process| format!(", in use by {process}"));
        Problem::new(format!("cannot listen on {address}: {error}{owner}"))
            .with_remedy("name another address with --listen")
    };
    let address = TcpListener::bind(address)
        .and_then(|listener| listener.local_addr())
        .map_err(in_use)?;
    let page = PrometheusSection::with_address(address);
    let section = SinkConfig::Prometheus(Box::new(Spanned::without_location(page)));
    let built = topology::build_sink(
        "page",
        &section,
        &config.perfetto,
        &Checkpointer::in_memory(),
        RetainedStores::default(),
        CancellationToken::new(),
    )
    .await
    .map_err(|error| error.problem())?;
    built.server.map(tokio::spawn);
    let sinks = built.sinks.into_iter();
    Ok(Page {
        address,
        sinks: sinks.map(|sink| (sink, section.requirement())).collect(),
        store: built.page,
    })
}
