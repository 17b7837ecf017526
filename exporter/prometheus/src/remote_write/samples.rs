//! Groups the points of one batch by series.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use bytes::Bytes;
use pulsetrain_otlp::{UnixNanos, write::Buffer};

use super::{
    super::{
        Rejection,
        escape::{self, NAME_LABEL},
        go_float,
        ingest::{PointContext, PointReceiver},
        labels,
        render::classic_buckets,
        store::{
            TARGET_INFO,
            family::{Change, FamilyKind, Head, Point},
            target::ScrapeTarget,
            value::SampleValue,
        },
    },
    request::{self, Sample},
};

/// The maximum number of samples of one request, the default of Prometheus (`max_samples_per_send`: 2,000).
const MAX_SAMPLES: usize = 2_000;
/// The interval of `target_info` samples in milliseconds: half of Prometheus' lookback.
const TARGET_INFO_MILLIS: u64 = 150_000;
/// The staleness marker, and the NaN that is a value (prometheus/prometheus, model/value/value.go).
const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);
const NAN: f64 = f64::from_bits(0x7ff8_0000_0000_0001);

/// The points of a batch.
#[derive(Default)]
pub(super) struct Samples {
    series: BTreeMap<SeriesKey, SeriesSamples>,
    /// The time of the last delivered `target_info` of each target, in milliseconds since 1970.
    targets: HashMap<Box<str>, u64>,
    /// The same for this batch, which is not delivered yet.
    undelivered: HashMap<Box<str>, u64>,
}

/// The samples of one series.
#[derive(Default)]
struct SeriesSamples {
    samples: Vec<Sample>,
    /// Whether each sample counts as one point: true for numbers and for the `_count` of a histogram or
    /// summary.
    counts_points: bool,
}

/// The body of one request.
pub struct RemoteWriteBody {
    /// A `WriteRequest` in a snappy block.
    pub bytes: Bytes,
    /// The number of points in it.
    pub points: u64,
}

/// The name of a sample, its labels as text, and the additional label `le` or `quantile`.
type SeriesKey = (String, Box<str>, Option<(&'static str, String)>);

impl Samples {
    /// Clears the points of the previous batch.
    pub(super) fn clear(&mut self) {
        self.series.clear();
        self.undelivered.clear();
    }

    /// Records that every request of the batch was delivered.
    pub(super) fn record_delivered(&mut self) {
        self.targets.extend(self.undelivered.drain());
    }

    /// Encodes the samples as request bodies.
    pub(super) fn requests(&mut self) -> Vec<RemoteWriteBody> {
        let mut requests = Vec::new();
        let (mut request, mut count, mut points) = (Buffer::default(), 0, 0);
        let body = |request: &Buffer, points| RemoteWriteBody {
            bytes: request::snappy_block(request.as_slice()),
            points,
        };
        for ((name, labels, extra), gathered) in std::mem::take(&mut self.series) {
            let labels = sorted_labels(&name, &labels, extra.as_ref());
            for part in one_a_millisecond(gathered.samples).chunks(MAX_SAMPLES) {
                request::push_series(&labels, part, &mut request);
                count += part.len();
                points += if gathered.counts_points {
                    part.len() as u64
                } else {
                    0
                };
                if count >= MAX_SAMPLES {
                    requests.push(body(&request, points));
                    request.clear();
                    (count, points) = (0, 0);
                }
            }
        }
        if count > 0 {
            requests.push(body(&request, points));
        }
        requests
    }

    fn add(
        &mut self,
        name: String,
        labels: &str,
        extra: Option<(&'static str, String)>,
        (sample, counts_points): (Sample, bool),
    ) {
        let gathered = self.series.entry((name, labels.into(), extra)).or_default();
        gathered.samples.push(sample);
        gathered.counts_points = counts_points;
    }

    fn record_point(&mut self, family: &Head, point: &Point<'_>) -> Result<(), Rejection> {
        let millis = point.time_unix_nanos.as_millis();
        let time = i64::try_from(millis).map_err(|_| Rejection::Malformed)?;
        match &point.change {
            Change::Set(value) => each_sample(value, |suffix, extra, value| {
                let value = if value.is_nan() { NAN } else { value };
                let counts_points = extra.is_none() && suffix != "_sum";
                self.add(
                    format!("{}{suffix}", family.name),
                    point.labels,
                    extra,
                    ((time, value), counts_points),
                );
            }),
            Change::End
                if matches!(
                    family.kind,
                    FamilyKind::Counter | FamilyKind::Gauge | FamilyKind::Untyped
                ) =>
            {
                self.add(family.name.clone(), point.labels, None, ((time, STALE), true));
            }
            // The buckets of the histogram are unknown here.
            Change::End => {}
            Change::Add(_) => return Err(Rejection::Temporality),
        }
        self.describe(point.target, millis);
        Ok(())
    }

    /// Adds a sample of `target_info` if the last one is too old.
    fn describe(&mut self, target: &ScrapeTarget, millis: u64) {
        let last = (self.undelivered.get(&target.info)).or_else(|| self.targets.get(&target.info));
        let is_due = last.is_none_or(|last| millis.abs_diff(*last) >= TARGET_INFO_MILLIS);
        if is_due && !target.info.is_empty() {
            self.undelivered.insert(target.info.clone(), millis);
            let sample = (millis.cast_signed(), 1.0);
            self.add(TARGET_INFO.to_owned(), &target.info, None, (sample, false));
        }
    }
}

impl PointReceiver for Samples {
    fn latest(_: UnixNanos) -> UnixNanos {
        UnixNanos::MAX
    }

    fn record<'p>(
        &mut self,
        place: &PointContext<'_>,
        points: impl Iterator<Item = Point<'p>>,
    ) -> Vec<Rejection> {
        points
            .filter_map(|point| self.record_point(&place.family.head, &point).err())
            .collect()
    }
}

/// Calls `add` for each sample of a value: the suffix of the name, the label `le` or `quantile`, and the
/// number.
fn each_sample(value: &SampleValue, mut add: impl FnMut(&str, Option<(&'static str, String)>, f64)) {
    let mut count_and_sum = |count: u64, sum: Option<f64>| {
        add("_count", None, count as f64);
        sum.into_iter().for_each(|sum| add("_sum", None, sum));
    };
    match value {
        SampleValue::Number(value) => add("", None, *value),
        SampleValue::Histogram(histogram) => {
            count_and_sum(histogram.buckets.iter().sum(), histogram.sum);
            let mut cumulative = 0u64;
            for (bound, count) in histogram.bounds.texts(true).zip(&histogram.buckets) {
                cumulative = cumulative.saturating_add(*count);
                add("_bucket", Some(("le", bound.to_owned())), cumulative as f64);
            }
        }
        SampleValue::Native(native) => {
            count_and_sum(native.count, native.sum);
            for (bound, cumulative) in classic_buckets(native) {
                add(
                    "_bucket",
                    Some(("le", go_float::open_metrics(bound))),
                    cumulative as f64,
                );
            }
        }
        SampleValue::Summary(summary) => {
            count_and_sum(summary.count, Some(summary.sum));
            for (quantile, value) in &summary.quantiles {
                add("", Some(("quantile", go_float::open_metrics(*quantile))), *value);
            }
        }
    }
}

/// Returns all labels of a series, sorted by name as the protocol requires.
fn sorted_labels<'a>(
    name: &'a str,
    labels: &'a str,
    extra: Option<&'a (&'static str, String)>,
) -> Vec<(Cow<'a, str>, Cow<'a, str>)> {
    let read = labels::read(labels).map(|(name, value)| (name, escape::unescaped(value)));
    let extra = extra.map(|(name, value)| (Cow::Borrowed(*name), Cow::Borrowed(value.as_str())));
    let mut all: Vec<_> = [(Cow::Borrowed(NAME_LABEL), Cow::Borrowed(name))]
        .into_iter()
        .chain(extra)
        .chain(read)
        .collect();
    all.sort();
    all
}

/// Sorts the samples by time and keeps the last of each millisecond.
fn one_a_millisecond(mut samples: Vec<Sample>) -> Vec<Sample> {
    samples.sort_by_key(|(millis, _)| *millis);
    let mut kept: Vec<Sample> = Vec::with_capacity(samples.len());
    for sample in samples {
        match kept.last_mut() {
            Some(last) if last.0 == sample.0 => *last = sample,
            _ => kept.push(sample),
        }
    }
    kept
}
