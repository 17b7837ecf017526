//! Gauges that the agent reads at each collection instead of recording them: their series end when their subject is gone.
//!
//! The SDK repeats the last value of a gauge forever, so these gauges are exported separately.

use std::{collections::BTreeMap, time::Duration};

use pulsetrain_otlp::{UnixNanos, write::AttributeValue};
use pulsetrain_pipeline::SinkCounts;
use pulsetrain_record::{SeriesLimits, SeriesWriter};
use pulsetrain_semconv::{Attribute, Metric, attribute, metric};
use pulsetrain_tail::{LogState, LogStatus};

use super::instrumented_source::SourceGauges;

/// The time without a batch after which a source has no lag: its runs have ended, or they are silent.
const SILENCE: Duration = Duration::from_secs(300);

/// The limits for the series: a few for each sink, each source and the agent. Series beyond them have no end.
pub(super) const SERIES: SeriesLimits = SeriesLimits {
    per_metric: 0,
    ended: 1 << 14,
};

/// A series of gauges: a metric with its subject as an attribute, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Series {
    Lag,
    LastSuccess,
    /// The logs in the state of this name.
    Logs(&'static str),
    LogLag,
    SinkUp,
    DiskItems,
    DiskSize,
    OldestAge,
    BuildInfo,
    LastReloadSuccess,
}

/// The current values.
#[derive(Debug, Default)]
pub(super) struct Levels {
    now: BTreeMap<(Series, String), f64>,
}

impl Series {
    fn metric(self) -> &'static Metric {
        match self {
            Self::Lag => &metric::PULSETRAIN_SOURCE_LAG,
            Self::LastSuccess => &metric::PULSETRAIN_SOURCE_LAST_SUCCESS_TIME,
            Self::Logs(_) => &metric::PULSETRAIN_SOURCE_LOGS,
            Self::LogLag => &metric::PULSETRAIN_SOURCE_LOG_LAG,
            Self::SinkUp => &metric::PULSETRAIN_SINK_UP,
            Self::DiskItems => &metric::PULSETRAIN_QUEUE_DISK_ITEMS,
            Self::DiskSize => &metric::PULSETRAIN_QUEUE_DISK_SIZE,
            Self::OldestAge => &metric::PULSETRAIN_QUEUE_OLDEST_AGE,
            Self::BuildInfo => &metric::PULSETRAIN_BUILD_INFO,
            Self::LastReloadSuccess => &metric::PULSETRAIN_CONFIG_LAST_RELOAD_SUCCESS,
        }
    }

    /// Returns the attribute with the subject.
    fn attribute(self) -> Option<&'static Attribute> {
        match self {
            Self::Lag | Self::LastSuccess | Self::Logs(_) | Self::LogLag => {
                Some(&attribute::PULSETRAIN_SOURCE_NAME)
            }
            Self::SinkUp | Self::DiskItems | Self::DiskSize | Self::OldestAge => {
                Some(&attribute::PULSETRAIN_SINK_NAME)
            }
            Self::BuildInfo => Some(&attribute::PULSETRAIN_VERSION),
            Self::LastReloadSuccess => None,
        }
    }

    /// Returns the attributes of the series of a subject.
    fn attributes(self, subject: &str) -> impl Iterator<Item = (&'static Attribute, AttributeValue<'_>)> {
        let subject = (self.attribute()).map(|attribute| (attribute, AttributeValue::Text(subject)));
        let state = match self {
            Self::Logs(state) => Some((&attribute::PULSETRAIN_LOG_STATE, AttributeValue::Text(state))),
            _ => None,
        };
        subject.into_iter().chain(state)
    }
}

impl Levels {
    /// Replaces the values by the current ones.
    pub(super) fn read<'a>(
        &mut self,
        sinks: &[SinkCounts],
        sources: impl IntoIterator<Item = (&'a String, &'a SourceGauges)>,
        last_reload_succeeded: bool,
        now: Duration,
    ) {
        self.now.clear();
        for sink in sinks {
            let is_up = f64::from(u8::from(sink.any_failure().is_none()));
            self.now.insert((Series::SinkUp, sink.name.clone()), is_up);
            if let Some(on_disk) = &sink.on_disk {
                let age = on_disk.oldest_age.unwrap_or_default().as_secs_f64();
                let levels = [
                    (Series::DiskItems, on_disk.items as f64),
                    (Series::DiskSize, on_disk.file_bytes as f64),
                    (Series::OldestAge, age),
                ];
                let of_sink = levels.map(|(series, level)| ((series, sink.name.clone()), level));
                self.now.extend(of_sink);
            }
        }
        for (name, gauges) in sources {
            let last = gauges.last_success();
            if let Some(last) = last {
                self.now
                    .insert((Series::LastSuccess, name.clone()), last.as_secs_f64());
            }
            let is_silent = last.is_none_or(|last| now.saturating_sub(last) > SILENCE);
            if let Some(lag) = gauges.lag().filter(|_| !is_silent) {
                self.now.insert((Series::Lag, name.clone()), lag.as_secs_f64());
            }
            self.read_logs(name, &gauges.logs().unwrap_or_default());
        }
        let version = env!("CARGO_PKG_VERSION").to_owned();
        self.now.insert((Series::BuildInfo, version), 1.0);
        let reloaded = f64::from(u8::from(last_reload_succeeded));
        self.now
            .insert((Series::LastReloadSuccess, String::new()), reloaded);
    }

    /// Counts the logs of a source by state, and finds the longest lag.
    fn read_logs(&mut self, source: &str, logs: &[LogStatus]) {
        if logs.is_empty() {
            return;
        }
        for state in LogState::ALL {
            let count = logs.iter().filter(|log| log.state == state).count();
            let series = (Series::Logs(state.as_str()), source.to_owned());
            self.now.insert(series, count as f64);
        }
        if let Some(lag) = logs.iter().filter_map(LogStatus::lag).max() {
            self.now
                .insert((Series::LogLag, source.to_owned()), lag.as_secs_f64());
        }
    }

    /// Writes the values, and the end of each series that has no value any more.
    pub(super) fn write(&self, writer: &mut SeriesWriter, time: UnixNanos) {
        for ((series, subject), value) in &self.now {
            let attributes: Vec<_> = series.attributes(subject).collect();
            // Every value of a gauge is written.
            let _ = writer.record(series.metric(), time, *value, &attributes);
        }
        writer.end_silent(time);
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_otlp::{Signal, view::NumberValue, walk, write::Envelope};
    use pulsetrain_pipeline::{Batch, clock};

    use super::*;

    /// Returns the written points of the lag: values, and ends as `None`.
    fn written_lags(levels: &Levels, writer: &mut SeriesWriter) -> Vec<Option<f64>> {
        levels.write(writer, UnixNanos(7));
        let encoded = writer
            .finish(&Envelope::new(&[], "test", "", ""))
            .expect("points");
        let mut lags = Vec::new();
        for metric in walk::metrics(&encoded.bytes)
            .flatten()
            .flat_map(|resource| resource.items())
        {
            let metric = metric.expect("our own bytes");
            if metric.name == metric::PULSETRAIN_SOURCE_LAG.name {
                let read = metric.each_point(|point| lags.push(point.number().map(NumberValue::as_f64)));
                read.expect("our own bytes");
            }
        }
        lags
    }

    #[test]
    fn lag_stops_growing_after_the_last_item_and_ends_when_idle() {
        let gauges = std::sync::Arc::<SourceGauges>::default();
        let watch = super::super::instrumented_source::noting(std::sync::Arc::clone(&gauges));
        let now = clock::unix_now();
        let mut writer = SeriesWriter::new(SERIES);
        let second_ago = UnixNanos::since_1970(now - Duration::from_secs(1));
        let recorded = writer.record(&metric::TRAIN_LOSS, second_ago, 1.0, &[]);
        recorded.expect("a gauge");
        let encoded = writer
            .finish(&Envelope::new(&[], "test", "", ""))
            .expect("a point");
        watch(&Batch::new(Signal::Metrics, 1, encoded.bytes));
        let (mut levels, mut writer) = (Levels::default(), SeriesWriter::new(SERIES));
        let name = "log".to_owned();
        let mut lags_after = |seconds| {
            let later = now + Duration::from_secs(seconds);
            levels.read(&[], [(&name, &*gauges)], true, later);
            written_lags(&levels, &mut writer)
        };
        let first = lags_after(0);
        assert!(
            matches!(first[..], [Some(lag)] if (1.0..60.0).contains(&lag)),
            "{first:?}"
        );
        assert_eq!(lags_after(200), first, "it is the age at arrival");
        assert_eq!(lags_after(400), [None], "the series ends");
        assert_eq!(lags_after(401), []);
    }
}
