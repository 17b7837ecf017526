//! A day of runs, one after another and several at a time, through the agent to a real Prometheus: no series remain.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use pulsetrain_tests::{
    Judge, Prometheus, SurogateWriter, corpus, some_or_return, surogate_records, unix_nanos, wait_until,
};
use tokio::time::Instant;

use crate::prometheus::following::Agent;

/// A run every twelve minutes of a simulated day, each of some minutes; scrapes and staleness are in real seconds.
const RUNS: usize = 120;
const MINUTES_BETWEEN: usize = 12;
const AT_ONCE: usize = 4;
const STALE_AFTER: Duration = Duration::from_secs(2);

/// The time in which a run is written and delivered, on a busy machine.
const SLACK: Duration = Duration::from_secs(6);

/// The limit of the memory growth of the agent per run after the first third of the day. The number of followed logs grows:
/// about 90 KiB of heap each, and two to three times that resident, because of fragmentation.
const MAX_GROWTH_OF_RUN_KIB: u64 = 448;

/// A query for the number of runs that Prometheus has ever seen.
const EVER: &str = "count(last_over_time(train_loss[1h]))";

/// The way in which a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Its log does not change any more.
    Silent,
    /// It is killed during the write of a record.
    Torn,
    /// Its log is deleted.
    Deleted,
    /// The next run truncates its log.
    Restarted,
}

const ENDS: [End; AT_ONCE] = [End::Silent, End::Torn, End::Deleted, End::Restarted];

#[test]
fn a_day_of_runs_leaves_no_series_in_agent_or_prometheus() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let mut agent = Agent::following("*/training.json");
    agent.start("      stale_after: 2s\n", "");
    let prometheus = Prometheus::start(&program, &[("ours", agent.address())], &[]);
    wait_until("Prometheus has a scrape", || {
        prometheus.value("scrape_samples_scraped").is_some()
    });
    let mut most = Bound::default();
    let mut memory_kib = 0;
    for wave in 0..RUNS / AT_ONCE {
        if wave == RUNS / AT_ONCE / 3 {
            memory_kib = agent.process().memory_kib();
        }
        for (place, end) in ENDS.into_iter().enumerate() {
            write_run(&agent, wave, place, end);
        }
        let first = wave * AT_ONCE;
        wait_until("the page shows the runs", || {
            most.look(&agent.page());
            most.shown.len() == first + AT_ONCE
        });
        wait_until("Prometheus has them", || {
            most.look(&agent.page());
            prometheus.value(EVER) == Some((first + AT_ONCE) as f64)
        });
        let deleted = log_of(&agent, wave, 2);
        fs::remove_file(deleted).expect("a log can be removed");
    }
    most.assert_bounded();
    let after_kib = agent.process().memory_kib();
    assert!(
        after_kib < memory_kib + MAX_GROWTH_OF_RUN_KIB * (RUNS as u64 * 2 / 3),
        "{memory_kib} KiB, {after_kib} KiB at the end"
    );

    wait_until("the runs have left the page", || by_run(&agent.page()).is_empty());
    // Prometheus has seen every run, and none is active.
    assert_eq!(prometheus.value(EVER), Some(RUNS as f64));
    wait_until("Prometheus knows that they have ended", || {
        prometheus.query("{train_run_id!=\"\"}").is_empty()
    });
    let since = unix_nanos() / 1_000_000_000 + 1;
    let (head, scrapes) = (prometheus.head_series(), "count_over_time(up[1h])");
    let before = prometheus.value(scrapes).expect("Prometheus scrapes");
    wait_until("Prometheus has scraped on", || {
        prometheus
            .value(scrapes)
            .is_some_and(|after| after > before + 3.0)
    });
    assert_eq!(
        prometheus.head_series(),
        head,
        "nothing new comes of what has ended"
    );
    let left = prometheus.series_since("{via=\"ours\"}", since);
    let of_a_run = |series: &&serde_json::Value| series.get("train_run_id").is_some();
    assert_eq!(left.iter().find(of_a_run), None);
    assert!(!left.is_empty(), "the agent's own metrics remain");
    // The agent's own count equals the page: the series are gone, not only hidden.
    let own = agent.page().lines().filter(|line| !line.starts_with('#')).count();
    let counted = value(&agent.page(), "pulsetrain_series_active");
    assert!(
        counted <= own as f64,
        "{counted} series are kept, and {own} shown"
    );
    assert!(agent.stop().success());
}

/// The maximum sizes of the page and the numbers of runs and series.
#[derive(Default)]
struct Bound {
    /// The time at which each run first appeared on the page, which is its last change, because it is written at once.
    shown: BTreeMap<String, Instant>,
    lines_of_a_run: usize,
    /// The maximum number of runs that were on the page for longer than allowed; must be 0.
    excess: usize,
    most_runs: usize,
    most_series: f64,
}

impl Bound {
    fn look(&mut self, page: &str) {
        let begun = Instant::now();
        let by_run = by_run(page);
        for (run, lines) in &by_run {
            self.shown.entry(run.clone()).or_insert(begun);
            self.lines_of_a_run = self.lines_of_a_run.max(*lines);
        }
        let is_of_lately = |at: &&Instant| at.elapsed() < STALE_AFTER + SLACK;
        let lately = self.shown.values().filter(is_of_lately).count();
        let overdue = by_run
            .keys()
            .filter(|run| !is_of_lately(&&self.shown[*run]))
            .count();
        self.excess = self.excess.max(overdue);
        self.most_runs = self.most_runs.max(lately);
        self.most_series = self.most_series.max(value(page, "pulsetrain_series_active"));
    }

    fn assert_bounded(&self) {
        assert_eq!(self.excess, 0, "a run was on the page for longer than it may be");
        let Self {
            most_runs,
            lines_of_a_run,
            most_series,
            ..
        } = self;
        assert!(
            2 * most_runs < RUNS,
            "the runs start too fast for the measurement: {most_runs}"
        );
        // The agent's own series are included; there are fewer than those of a run.
        assert!(*most_series <= ((most_runs + 1) * lines_of_a_run) as f64);
    }
}

/// Writes a run: the records before its first step, and steps a minute apart.
fn write_run(agent: &Agent, wave: usize, place: usize, end: End) {
    let path = log_of(agent, wave, place);
    fs::create_dir_all(path.parent().expect("a log has a folder")).expect("a folder can be made");
    let mut log = SurogateWriter::create(&path);
    let start = (wave * AT_ONCE + place) * MINUTES_BETWEEN;
    let at = |minute: usize| {
        format!(
            "2026-11-21 {:02}:{:02}",
            (start + minute) / 60 % 24,
            (start + minute) % 60
        )
    };
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    let is_step = |record: &&String| record.contains("\"log\": \"step\"");
    let opening = records.iter().take_while(|record| !is_step(record));
    opening.for_each(|record| log.append(&record.replace("2026-11-21 00:18", &at(0))));
    for step in 0..3 {
        log.append(&step_record(step, &at(step)));
    }
    if end == End::Torn {
        let record = step_record(3, &at(3));
        log.append_torn(&record, &[], || {});
        let complete = fs::metadata(&path).expect("the log is there").len();
        let file = fs::OpenOptions::new().write(true).open(&path);
        file.and_then(|file| file.set_len(complete - record.len() as u64 / 2))
            .expect("a log can be cut");
    }
}

fn step_record(step: usize, at: &str) -> String {
    format!(
        r#"{{"log": "step", "time": "{at}:59.000000000", "step": {step}, "epoch": 0.5, "step_tokens": 16384, "duration_ms": 123, "norm": 1.5, "loss": 2.5, "lr": 2e-05, "phase": "converging"}}"#
    )
}

/// Returns the log of a run; a restarted run has the same log as the previous one.
fn log_of(agent: &Agent, wave: usize, place: usize) -> PathBuf {
    let name = if ENDS[place] == End::Restarted {
        "restarting".to_owned()
    } else {
        format!("run-{wave}-{place}")
    };
    Path::join(agent.folder(), name).join("training.json")
}

/// Returns the number of lines of each run on the page.
fn by_run(page: &str) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    let of_runs = page.lines().filter(|line| !line.starts_with("target_info"));
    for line in of_runs {
        if let Some((_, rest)) = line.split_once("train_run_id=\"") {
            let run = rest.split('"').next().unwrap_or_default();
            *lines.entry(run.to_owned()).or_default() += 1;
        }
    }
    lines
}

fn value(page: &str, name: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with(&format!("{name}{{")));
    let number = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    number.unwrap_or_default()
}
