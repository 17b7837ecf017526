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

/// The agent that runs with the configuration; empty if none runs.
#[derive(Debug, Default)]
pub(super) struct RunningAgent {
    /// Its addresses.
    pub(super) addresses: Vec<SocketAddr>,
    /// Whether it is the agent of another user, who may write other files than this one.
    pub(super) is_of_other_user: bool,
    /// The address of its readiness.
    url: String,
    /// The reason why it is not ready, and its failing sinks.
    problems: Vec<String>,
}

impl RunningAgent {
    /// Finds the agent: the program at the health address, and at the addresses with the same owner. The ports of another user
    /// have no visible owner.
    pub(super) async fn find(config: &Config, timeout: Duration, findings: &mut Findings) -> Self {
        let health = &config.health;
        if !health.enabled {
            return Self::default();
        }
        let host = format!("http://{}", reachable(*health.listen));
        let url = format!("{host}/readyz");
        let owner = config::port_owner(*health.listen);
        let mut problems = Vec::new();
        match readiness(&host, timeout).await {
            Some(answer) => answer.lines().for_each(|line| match line {
                "ready" => findings.fine(Subject::Endpoint(url.clone()), "the agent runs and is ready"),
                _ => problems.push(line.to_owned()),
            }),
            // The agent may require TLS or a password.
            None if owner
                .as_ref()
                .is_some_and(|owner| owner.starts_with("pulsetrain ")) =>
            {
                findings.fine(Subject::Endpoint(url.clone()), "the agent runs");
            }
            None => return Self::default(),
        }
        let mut addresses = config::addresses(config);
        addresses.retain(|address| config::port_owner(*address) == owner);
        Self {
            addresses,
            is_of_other_user: owner.is_none(),
            url,
            problems,
        }
    }

    /// Reports the problems of the agent that no other finding explains.
    pub(super) fn report(&self, findings: &mut Findings) {
        for problem in &self.problems {
            let (what, fix) = problem
                .split_once("; ")
                .unwrap_or((problem, "look at the log of the agent"));
            if !findings.explain(problem) {
                findings.wrong(Subject::Endpoint(self.url.clone()), what, fix);
            }
        }
    }
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
