//! A driver, the agent on it, and both outputs: an OTLP file, and a page that a real Prometheus scrapes.

use std::{
    path::Path,
    sync::{Mutex, PoisonError},
};

use pulsetrain_tests::{
    FakeNvml, Folder, Judge, Process, Prometheus, command, free_port, http::is_open, wait_until,
};

use crate::{
    gpu_faults::page::{name_of, selector},
    point::{self, Point},
};

/// The driver, the agent and its outputs.
pub(crate) struct World {
    pub(crate) fake: FakeNvml,
    pub(crate) page: u16,
    /// The port of the health address.
    pub(crate) health: u16,
    folder: Folder,
    agent: Process,
    prometheus: Prometheus,
    file: Mutex<(Vec<Point>, usize)>,
}

impl World {
    /// Starts a world with a scenario and changes to it; `None` without a Prometheus, which is reported.
    pub(crate) fn start(scenario: &str, changes: &str) -> Option<Self> {
        Self::named(scenario, changes, "gpu")
    }

    /// As [`start`](Self::start), with the selected semantic conventions.
    pub(crate) fn named(scenario: &str, changes: &str, semconv: &str) -> Option<Self> {
        let program = Judge::Prometheus.require_or_skip()?;
        let fake = FakeNvml::with(scenario, changes);
        let folder = Folder::new();
        let page = free_port();
        let health = free_port();
        let agent = start_agent(&folder, (page, health), &fake.library(), semconv);
        let address = format!("127.0.0.1:{page}");
        let prometheus = Prometheus::start(&program, &[("page", address)], &[]);
        Some(Self {
            fake,
            page,
            health,
            folder,
            agent,
            prometheus,
            file: Mutex::default(),
        })
    }

    /// Returns the points of a metric with these attributes in the file so far.
    pub(crate) fn points(&self, name: &str, attributes: &[(&str, &str)]) -> Vec<Point> {
        self.with_points(|points| {
            let is = |point: &&Point| point.is(name, attributes);
            points.iter().filter(is).cloned().collect()
        })
    }

    /// Calls `act` with all points of the file so far.
    pub(crate) fn with_points<T>(&self, act: impl FnOnce(&[Point]) -> T) -> T {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let (new, end) = point::read(&self.folder.path("gpus.jsonl"), file.1);
        file.0.extend(new);
        file.1 = end;
        act(&file.0)
    }

    /// Waits until the file's last point of the series and Prometheus' value both match.
    pub(crate) fn wait_both(
        &self,
        name: &str,
        attributes: &[(&str, &str)],
        wanted: impl Fn(f64) -> bool,
    ) -> Point {
        let last = self.wait_last(name, attributes, "as it should be", |last| {
            !last.ends && wanted(last.value)
        });
        let selector = selector(&name_of(&last), attributes);
        wait_until(&format!("Prometheus has {selector} as it should be"), || {
            self.scraped(&selector).is_some_and(&wanted)
        });
        last
    }

    /// As [`wait_both`](Self::wait_both), for one value.
    pub(crate) fn wait_value(&self, name: &str, attributes: &[(&str, &str)], value: f64) -> Point {
        self.wait_both(name, attributes, |found| found == value)
    }

    /// Waits until the series has ended in the file and in Prometheus.
    pub(crate) fn wait_ended(&self, name: &str, attributes: &[(&str, &str)]) -> Point {
        let last = self.wait_last(name, attributes, "ended", |last| last.ends);
        let selector = selector(&name_of(&last), attributes);
        wait_until(&format!("Prometheus has no {selector} any more"), || {
            self.prometheus.query(&selector).is_empty()
        });
        last
    }

    /// Returns the current value of a single series in Prometheus; `None` if there is no series, or several.
    pub(crate) fn scraped(&self, query: &str) -> Option<f64> {
        let found = self.prometheus.query(query);
        let [series] = found.as_slice() else { return None };
        series["value"][1].as_str()?.parse().ok()
    }

    /// Waits until the log of the agent has these words, and returns the lines with them.
    pub(crate) fn wait_for_log(&self, words: &str) -> Vec<String> {
        let mut lines = Vec::new();
        wait_until(&format!("the agent logs {words:?}"), || {
            let log = self.agent.log();
            lines = log
                .lines()
                .filter(|line| line.contains(words))
                .map(str::to_owned)
                .collect();
            !lines.is_empty()
        });
        lines
    }

    fn wait_last(
        &self,
        name: &str,
        attributes: &[(&str, &str)],
        how: &str,
        wanted: impl Fn(&Point) -> bool,
    ) -> Point {
        let mut last = None;
        wait_until(&format!("{name} {attributes:?} is {how} in the file"), || {
            let is = |point: &&Point| point.is(name, attributes);
            last = self.with_points(|points| points.iter().rev().find(is).cloned());
            last.as_ref().is_some_and(&wanted)
        });
        last.expect("it was waited for")
    }
}

/// Starts an agent that only monitors the GPUs of a driver.
pub(crate) fn start_agent(
    folder: &Folder,
    (page, health): (u16, u16),
    library: &Path,
    semconv: &str,
) -> Process {
    let configuration = format!(
        "state_folder: {}
gpu: {{library: {}, interval: 250ms, semconv: {semconv}}}
sinks:
  page: {{prometheus: {{listen: 127.0.0.1:{page}}}}}
  file: {{file: {{path: {}}}}}
health: {{listen: 127.0.0.1:{health}}}
",
        folder.path("state").display(),
        library.display(),
        folder.path("gpus.jsonl").display()
    );
    let config = folder.file("agent.yaml", configuration);
    let mut agent = Process::start("pulsetrain agent", command(["agent", "--config"]).arg(config));
    agent.wait_until_ready(|| is_open(page));
    agent
}
