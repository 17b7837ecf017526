//! Finds the agent that runs with the configuration: its ports are in use, and it reports its readiness.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use pulsetrain_otlp::Signal;
use pulsetrain_sinks::ask_host;

use super::finding::{Findings, Subject};
use crate::{
    agent::{REPORT_PATH, ReadinessReport, ReportedProblem},
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
    problems: Vec<ReportedProblem>,
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
            Some(report) => {
                if report.ready {
                    findings.fine(Subject::Endpoint(url.clone()), "the agent runs and is ready");
                }
                problems = report.problems;
            }
            // The agent may require TLS or a password.
            None if owner.as_ref().is_some_and(|owner| config::is_agent(owner)) => {
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
        for ReportedProblem {
            part,
            subject,
            what,
            remedy,
        } in &self.problems
        {
            if !findings.explain(what) {
                let subject = subject.iter().map(|subject| format!("{subject}: "));
                let what = format!("{part}: {}{what}", subject.collect::<String>());
                let fix = remedy.as_deref().unwrap_or("look at the log of the agent");
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

/// Returns the report of an agent about its readiness, or `None` if no agent answers.
async fn readiness(url: &str, timeout: Duration) -> Option<ReadinessReport> {
    let config = topology::otlp_target(url).ok()?;
    let answer = ask_host(config.signal(Signal::Metrics), REPORT_PATH, timeout).await?;
    serde_json::from_slice(&answer.body).ok()
}
