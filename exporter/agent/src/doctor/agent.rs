//! Finds the agent that runs with the configuration: its ports are in use, and it reports its readiness.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use pulsetrain_otlp::Signal;
use pulsetrain_sinks::ask_host;

use super::finding::{Findings, Subject};
use crate::{
    config::{self, Config},
    topology,
};

/// Returns the addresses of the configuration that belong to the running agent: the program at the health address. The ports of
/// another user have no visible owner.
pub(super) async fn addresses(
    config: &Config,
    timeout: Duration,
    findings: &mut Findings,
) -> Vec<SocketAddr> {
    let health = &config.health;
    if !health.enabled {
        return Vec::new();
    }
    let url = format!("http://{}", reachable(*health.listen));
    let place = Subject::Endpoint(format!("{url}/readyz"));
    let owner = config::port_owner(*health.listen);
    match readiness(&url, timeout).await {
        Some(answer) => answer.lines().for_each(|line| match line {
            "ready" => findings.fine(place.clone(), "the agent runs and is ready"),
            _ => findings.wrong(place.clone(), line, "look at the log of the agent"),
        }),
        // The agent may require TLS or a password.
        None if owner
            .as_ref()
            .is_some_and(|owner| owner.starts_with("pulsetrain ")) =>
        {
            findings.fine(place, "the agent runs");
        }
        None => return Vec::new(),
    }
    let mut addresses = config::addresses(config);
    addresses.retain(|address| config::port_owner(*address) == owner);
    addresses
}

/// Returns the address that a client connects to.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, listen.port())
}

/// Returns the answer of an agent about its readiness, or `None` if no agent answers.
async fn readiness(url: &str, timeout: Duration) -> Option<String> {
    let config = topology::otlp_target(url).ok()?;
    let answer = ask_host(config.signal(Signal::Metrics), "/readyz", timeout).await?;
    let text = String::from_utf8(answer.body.to_vec()).ok()?;
    (text.starts_with("ready\n") || text.starts_with("not ready: ")).then_some(text)
}
