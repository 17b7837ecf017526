//! Logs each change of a sink's state: a line when it fails, one a minute during the outage, one when it delivers again;
//! warnings once a minute.

use std::{collections::BTreeMap, time::Duration};

use pulsetrain_otlp::Signals;
use pulsetrain_pipeline::{Failure, SinkCounts, clock::Instant};

use crate::log::Level;

/// The interval at which an outage is logged again, and at which the drops of a working sink are logged.
const REPEAT: Duration = Duration::from_secs(60);

/// The logged state of every sink.
#[derive(Debug, Default)]
pub(super) struct SinkWatch {
    sinks: BTreeMap<String, WatchedSink>,
}

/// A message about a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SinkMessage {
    pub(super) sink: String,
    pub(super) level: Level,
    pub(super) message: String,
}

#[derive(Debug, Default)]
struct WatchedSink {
    account: u64,
    has_delivered: bool,
    /// The outage that was logged.
    outage: Option<Outage>,
    /// The time of the last log line about an outage, whether it is over or not.
    named: Option<Instant>,
    /// The number of logged drops, and the time of the log line.
    dropped: u64,
    counted: Option<Instant>,
    /// The number of logged warnings, and the time of the last log line.
    warnings: u64,
    warned: Option<Instant>,
    /// The unsupported signals that were logged.
    unsupported: Signals,
}

#[derive(Debug)]
struct Outage {
    since: Instant,
    dropped_before: u64,
}

impl SinkWatch {
    /// Returns the messages for the changes since the last call.
    pub(super) fn observe(&mut self, sinks: &[SinkCounts], now: Instant) -> Vec<SinkMessage> {
        self.sinks
            .retain(|name, _| sinks.iter().any(|counts| counts.name == *name));
        sinks
            .iter()
            .filter_map(|counts| {
                let watched = self.sinks.entry(counts.name.clone()).or_default();
                if watched.account != counts.account {
                    *watched = WatchedSink {
                        account: counts.account,
                        ..WatchedSink::default()
                    };
                }
                let (level, message) = watched.observe(counts, now)?;
                Some(SinkMessage {
                    sink: counts.name.clone(),
                    level,
                    message,
                })
            })
            .collect()
    }
}

impl WatchedSink {
    fn observe(&mut self, counts: &SinkCounts, now: Instant) -> Option<(Level, String)> {
        match &counts.failure {
            Some(failure) => Some((Level::Error, self.failing(counts, failure, now)?)),
            None => self.working(counts, now),
        }
    }

    fn failing(&mut self, counts: &SinkCounts, failure: &Failure, now: Instant) -> Option<String> {
        if self.named.is_some_and(|named| now - named < REPEAT) {
            return None;
        }
        self.named = Some(now);
        let dropped = counts.lost_items();
        let is_new = self.outage.is_none();
        let outage = self.outage.get_or_insert(Outage {
            since: failure.since,
            dropped_before: self.dropped,
        });
        let state = if is_new {
            "fails".to_owned()
        } else {
            format!("has failed for {} s", (now - outage.since).as_secs())
        };
        self.dropped = dropped;
        Some(format!(
            "{state}: {}; {} items wait, {} dropped",
            failure.problem,
            counts.queued,
            dropped.saturating_sub(outage.dropped_before)
        ))
    }

    fn working(&mut self, counts: &SinkCounts, now: Instant) -> Option<(Level, String)> {
        let is_first =
            counts.delivered > 0 && !std::mem::replace(&mut self.has_delivered, counts.delivered > 0);
        let dropped = counts.lost_items();
        if let Some(outage) = self.outage.take() {
            self.dropped = dropped;
            let dropped = dropped.saturating_sub(outage.dropped_before);
            let level = if dropped > 0 { Level::Warn } else { Level::Info };
            let message = format!(
                "delivers again after {} s; {dropped} items were dropped meanwhile",
                (now - outage.since).as_secs(),
            );
            return Some((level, message));
        }
        let is_due = self.counted.is_none_or(|counted| now - counted >= REPEAT);
        if dropped > self.dropped && is_due {
            self.counted = Some(now);
            let new = dropped - std::mem::replace(&mut self.dropped, dropped);
            let message = format!("dropped {new} items ({})", reasons(counts));
            return Some((Level::Error, message));
        }
        let warning = |message| (Level::Warn, message);
        is_first
            .then(|| (Level::Info, "delivers".to_owned()))
            .or_else(|| self.unsupported(counts).map(warning))
            .or_else(|| self.warning(counts, now).map(warning))
    }

    /// Returns the newest warning, at most once a minute.
    fn warning(&mut self, counts: &SinkCounts, now: Instant) -> Option<String> {
        let is_due = self.warned.is_none_or(|warned| now - warned >= REPEAT);
        if counts.warnings <= self.warnings || !is_due {
            return None;
        }
        (self.warnings, self.warned) = (counts.warnings, Some(now));
        let message = counts.warning_message.as_deref().unwrap_or_default();
        Some(format!("warns: {message}"))
    }

    /// Returns a message about a signal that the receiver does not support, once.
    fn unsupported(&mut self, counts: &SinkCounts) -> Option<String> {
        let is_new = |signal| !self.unsupported.contains(signal);
        let drop = counts.unsupported().find(|drop| is_new(drop.signal))?;
        self.unsupported.insert(drop.signal);
        let message = drop.message.as_deref().unwrap_or_default();
        Some(format!("does not support {}: {message}", drop.signal))
    }
}

/// Returns the reasons for all drops of a sink: `queue full`, `refused: no such tenant`.
fn reasons(counts: &SinkCounts) -> String {
    let reasons: Vec<String> = counts
        .losses()
        .map(|dropped| {
            let reason = dropped.reason.as_str().replace('_', " ");
            match &dropped.message {
                Some(message) => format!("{reason}: {message}"),
                None => reason,
            }
        })
        .collect();
    reasons.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulsetrain_otlp::Signal;
    use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Ledger, Pipeline, Sink, clock};
    use std::{
        collections::VecDeque,
        sync::{Arc, Mutex},
    };

    const SECOND: Duration = Duration::from_secs(1);

    /// A sink that answers from a script, and delivers after its end.
    struct Scripted(Arc<Mutex<VecDeque<Delivery>>>);

    impl Sink for Scripted {
        fn name(&self) -> &str {
            "o"
        }

        fn deliver<'a>(&'a mut self, _: &'a Batch) -> BoxFuture<'a, Delivery> {
            let answer = self.0.lock().unwrap().pop_front().unwrap_or(Delivery::Delivered);
            Box::pin(async { answer })
        }
    }

    fn retry() -> Delivery {
        Delivery::Retry {
            after: Some(SECOND),
            problem: "connection refused".into(),
        }
    }

    fn refuse() -> Delivery {
        Delivery::Refused("401".into())
    }

    /// Returns the log lines of this many seconds, with a batch of two items per second.
    async fn lines(script: Vec<Delivery>, seconds: u32) -> Vec<String> {
        let sink = Box::new(Scripted(Arc::new(Mutex::new(script.into()))));
        let (pipeline, ingress) = Pipeline::builder().sink(sink).start();
        let ledger: Ledger = pipeline.ledger().clone();
        let (mut watch, mut lines) = (SinkWatch::default(), Vec::new());
        for _ in 0..seconds {
            ingress
                .try_send_or_drop(Batch::new(Signal::Metrics, 2, vec![0; 4]))
                .unwrap();
            tokio::time::sleep(SECOND).await;
            lines.extend(texts(watch.observe(&ledger.snapshot(), clock::now())));
        }
        lines
    }

    fn texts(messages: Vec<SinkMessage>) -> impl Iterator<Item = String> {
        let text = |message: SinkMessage| format!("sink {}: {}", message.sink, message.message);
        messages.into_iter().map(text)
    }

    #[tokio::test(start_paused = true)]
    async fn outage_is_logged_at_start_every_minute_and_at_end() {
        let lines = lines(vec![retry(); 130], 200).await;
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(
            lines[0].starts_with("sink o: fails: connection refused"),
            "{lines:?}"
        );
        assert!(lines[1].contains("has failed for 6"), "{lines:?}");
        assert!(lines[2].contains("has failed for 12"), "{lines:?}");
        assert!(lines[3].contains("delivers again after 13"), "{lines:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn outage_log_line_counts_rejected_batches() {
        let lines = lines(vec![refuse(); 100], 110).await;
        assert!(
            lines[0].contains("fails: 401; 0 items wait, 2 dropped"),
            "{lines:?}"
        );
        assert!(
            lines.last().unwrap().contains("200 items were dropped meanwhile"),
            "{lines:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn sink_that_fails_every_other_time_does_not_flood_the_log() {
        let flapping = [refuse(), Delivery::Delivered]
            .into_iter()
            .cycle()
            .take(120)
            .collect();
        let lines = lines(flapping, 120).await;
        assert!(lines.len() <= 7, "{lines:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn unsupported_signal_is_logged_once_and_is_not_an_outage() {
        let unsupported = Delivery::Unsupported("404".into());
        let script = vec![Delivery::Delivered, unsupported];
        let sink = Box::new(Scripted(Arc::new(Mutex::new(script.into()))));
        let (pipeline, ingress) = Pipeline::builder().sink(sink).start();
        let (mut watch, mut lines) = (SinkWatch::default(), Vec::new());
        for signal in [Signal::Metrics, Signal::Traces, Signal::Metrics] {
            ingress
                .try_send_or_drop(Batch::new(signal, 2, vec![0; 4]))
                .unwrap();
        }
        for _ in 0..200 {
            tokio::time::sleep(SECOND).await;
            let counts = pipeline.ledger().snapshot();
            assert_eq!(counts[0].failure, None);
            lines.extend(texts(watch.observe(&counts, clock::now())));
        }
        assert_eq!(
            lines,
            ["sink o: delivers", "sink o: does not support traces: 404"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn sink_warning_is_logged_at_most_once_a_minute() {
        let warning = Delivery::Partial {
            rejected: 0,
            problem: "check the clock".into(),
        };
        let lines = lines(vec![warning; 100], 100).await;
        assert_eq!(lines[..2], ["sink o: delivers", "sink o: warns: check the clock"]);
        assert!((3..=4).contains(&lines.len()), "{lines:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn working_sink_is_logged_once() {
        assert_eq!(lines(Vec::new(), 100).await, ["sink o: delivers"]);
    }

    #[tokio::test(start_paused = true)]
    async fn replacement_of_a_failing_sink_is_not_logged_as_recovered() {
        let mut watch = SinkWatch::default();
        let mut lines = Vec::new();
        for script in [vec![refuse(); 5], vec![refuse()]] {
            let sink = Box::new(Scripted(Arc::new(Mutex::new(script.into()))));
            let (pipeline, ingress) = Pipeline::builder().sink(sink).start();
            lines.extend(texts(watch.observe(&pipeline.ledger().snapshot(), clock::now())));
            ingress
                .try_send_or_drop(Batch::new(Signal::Metrics, 2, vec![0; 4]))
                .unwrap();
            tokio::time::sleep(SECOND).await;
            lines.extend(texts(watch.observe(&pipeline.ledger().snapshot(), clock::now())));
        }
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines.iter().all(|line| line.contains("fails: 401")), "{lines:?}");
    }
}
