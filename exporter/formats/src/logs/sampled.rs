//! Parses a text with a format, for the tests of the formats.

use pulsetrain_mapping::Mapping;
use std::{cell::RefCell, sync::Arc};

use pulsetrain_otlp::{
    Signal, UnixNanos,
    view::{AnyValue, KeyValue, Metric},
    walk,
    write::Encoded,
};
use pulsetrain_run::{SeriesPoint, SeriesTracker};
use pulsetrain_semconv::metric;

use super::{LogFormat, LogReader, ReadLimits, ReadTime};
use pulsetrain_record::{Counts, ParseReport, Recorder, Run, SkipReason};

/// The output of a parser.
pub(crate) struct Sampled {
    pub(crate) counts: Counts,
    pub(crate) skipped: ParseReport,
    batches: Vec<Encoded>,
}

/// 2026-11-22 00:00:00 UTC.
const NEAR: UnixNanos = UnixNanos(1_795_305_600_000_000_000);

impl Sampled {
    /// Reads a text as a finished file.
    pub(super) fn read(format: &LogFormat, text: &str) -> Self {
        Self::read_mapped(format, &Arc::default(), text)
    }

    /// Reads a text as a finished file with a mapping.
    pub(super) fn read_mapped(format: &LogFormat, mapping: &Arc<Mapping>, text: &str) -> Self {
        Self::read_bytes(format, mapping, text.as_bytes())
    }

    /// Reads a binary file.
    pub(crate) fn read_file(format: &LogFormat, file: &[u8]) -> Self {
        Self::read_bytes(format, &Arc::default(), file)
    }

    fn read_bytes(format: &LogFormat, mapping: &Arc<Mapping>, bytes: &[u8]) -> Self {
        let batches = RefCell::new(Vec::new());
        let mut recorder = Recorder::new(Run::default(), |batch| batches.borrow_mut().push(batch));
        let mut reader = LogReader::mapped(format, mapping, ReadLimits::default());
        reader.set_time(ReadTime {
            unix_nanos: NEAR,
            is_live: false,
        });
        // In chunks, so that every test splits lines too.
        bytes
            .chunks(7)
            .for_each(|piece| reader.push(piece, &mut recorder));
        reader.finish(&mut recorder);
        let (counts, skipped) = recorder.finish();
        Self {
            counts,
            skipped,
            batches: batches.into_inner(),
        }
    }

    /// Returns the values of a metric's points in order; of a histogram, the increases of its sum.
    pub(crate) fn values(&self, name: &str) -> Vec<f64> {
        let mut values = Vec::new();
        self.each_metric(name, |metric| {
            let mut tracker = SeriesTracker::default();
            let collected = metric.each_point(|point| {
                values.push(match SeriesPoint::from_point(&point) {
                    Some(point) if point.count.is_some() => tracker.observe(&point).unwrap().sum,
                    _ => point.number().unwrap().as_f64(),
                });
            });
            collected.unwrap();
        });
        values
    }

    /// Returns the times of the points of a metric in order.
    pub(super) fn times(&self, name: &str) -> Vec<u64> {
        let mut times = Vec::new();
        self.each_metric(name, |metric| {
            metric.each_point(|point| times.push(point.time().0)).unwrap();
        });
        times
    }

    /// Returns the last state that a state set entered, without the name of its attribute.
    pub(super) fn state(&self, name: &str) -> Option<String> {
        let states = self.attributes(name).into_iter().zip(self.values(name));
        let mut entered = states.filter(|(_, value)| *value == 1.0);
        let state = entered.next_back()?.0;
        state.split_once('=').map(|(_, state)| state.to_owned())
    }

    /// Returns the attributes of the points of a metric, each as `key=value` in order.
    pub(crate) fn attributes(&self, name: &str) -> Vec<String> {
        let mut all = Vec::new();
        self.each_metric(name, |metric| {
            let collected = metric.each_point(|point| {
                let attributes = point.attributes().iter().map(Result::unwrap);
                let shown: Vec<String> = attributes.map(|pair| shown(&pair)).collect();
                all.push(shown.join(" "));
            });
            collected.unwrap();
        });
        all
    }

    /// Returns the values of a series such as `eval.loss{data.name=math}`, or the number of items of a kind.
    fn numbers(&self, name: &str) -> Vec<f64> {
        let items = match name {
            "records" => self.counts.records,
            "points" => self.counts.points,
            "spans" => self.counts.spans,
            "events" => self.counts.events,
            _ => {
                let (metric, attributes) = name.split_once('{').unwrap_or((name, ""));
                assert!(metric::find(metric).is_some(), "the registry has no {metric}");
                if metric == name {
                    return self.values(metric);
                }
                let attributes = attributes.trim_end_matches('}').replace(',', " ");
                let values = self.attributes(metric).into_iter().zip(self.values(metric));
                let of_series = values.filter(|(found, _)| *found == attributes);
                return of_series.map(|(_, value)| value).collect();
            }
        };
        vec![items as f64]
    }

    /// Returns the skipped values as `REASON=COUNT REASON=COUNT`.
    fn skipped(&self, is_shown: impl Fn(SkipReason) -> bool) -> String {
        let counts = self.skipped.counts().filter(|(reason, _)| is_shown(*reason));
        let words = counts.map(|(reason, count)| format!("{}={count}", reason.as_str()));
        words.collect::<Vec<_>>().join(" ")
    }

    fn each_metric(&self, name: &str, mut visit: impl FnMut(&Metric<'_>)) {
        let metrics = |batch: &&Encoded| batch.signal == Signal::Metrics;
        for batch in self.batches.iter().filter(metrics) {
            for resource in walk::metrics(&batch.bytes) {
                let metrics = resource.unwrap().items().map(Result::unwrap);
                metrics
                    .filter(|metric| metric.name == name)
                    .for_each(|metric| visit(&metric));
            }
        }
    }
}

/// Checks cases of a format: a line `## TITLE`, the lines of a log, and lines of expectations, `-> NAME VALUES, NAME VALUES`.
///
/// A name is that of a series, or `points` and similar for the number of items. `skipped not_measured=2` lists all skipped values,
/// `losses malformed_record=1` those that are losses. A case without these two has no losses.
pub(super) fn check(format: &LogFormat, cases: &str) {
    for case in cases.split("\n## ").skip(1) {
        let (title, lines) = case.split_once('\n').unwrap();
        let (rows, log): (Vec<&str>, Vec<&str>) = lines.lines().partition(|line| line.starts_with("-> "));
        let read = Sampled::read(format, &(log.join("\n") + "\n"));
        let mut may_lose = false;
        for row in rows.iter().flat_map(|row| row[3..].split(", ")) {
            let (name, expected) = row.split_once(' ').unwrap_or((row, ""));
            let found = match name {
                "skipped" => read.skipped(|_| true),
                "losses" => read.skipped(SkipReason::is_loss),
                _ => {
                    let expected: Vec<f64> = expected.split_whitespace().map(number).collect();
                    // As text, for NaN is not equal to itself.
                    let found = format!("{:?}", read.numbers(name));
                    assert_eq!(found, format!("{expected:?}"), "{title}: {name}");
                    continue;
                }
            };
            assert_eq!(found, expected, "{title}");
            may_lose = true;
        }
        let losses = read.skipped(SkipReason::is_loss);
        assert!(may_lose || losses.is_empty(), "{title}: {losses}");
    }
}

/// Parses a number of an expectation, with an optional `GiB`.
fn number(text: &str) -> f64 {
    let (digits, factor) = match text.strip_suffix("GiB") {
        Some(digits) => (digits, f64::from(1 << 30)),
        None => (text, 1.0),
    };
    digits.parse::<f64>().unwrap() * factor
}

/// Reads a finished file in chunks of `size` bytes. Returns the counts without the output.
pub(crate) fn read_in_chunks(format: &LogFormat, bytes: &[u8], size: usize) -> (Counts, ParseReport) {
    let mut recorder = Recorder::new(Run::default(), |_| {});
    let mut reader = LogReader::new(format, ReadLimits::default());
    bytes
        .chunks(size)
        .for_each(|chunk| reader.push(chunk, &mut recorder));
    reader.finish(&mut recorder);
    recorder.finish()
}

/// Reads a finished file in one chunk. Panics unless the counts are the same in chunks of all `sizes`.
pub(crate) fn read_in_any_chunks(
    format: &LogFormat,
    bytes: &[u8],
    sizes: impl IntoIterator<Item = usize>,
) -> (Counts, ParseReport) {
    let complete = read_in_chunks(format, bytes, bytes.len());
    for size in sizes {
        assert_eq!(read_in_chunks(format, bytes, size), complete, "chunks of {size}");
    }
    complete
}

/// Returns the reasons of a report with their counts.
pub(crate) fn reasons(skipped: &ParseReport) -> Vec<(SkipReason, u64)> {
    skipped.counts().collect()
}

fn shown(pair: &KeyValue<'_>) -> String {
    match pair.value.unwrap() {
        AnyValue::String(text) => format!("{}={text}", pair.key),
        other => format!("{}={other:?}", pair.key),
    }
}
