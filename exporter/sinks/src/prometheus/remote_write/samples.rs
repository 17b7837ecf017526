//! The points of one batch, by series.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
};

use bytes::Bytes;
use pulsetrain_otlp::write::Buffer;

use super::{
    super::{
        Rejection,
        escape::{self, NAME_LABEL},
        ingest::{Place, PointReceiver},
        labels,
        render::{classic_buckets, go_float},
        store::{
            TARGET_INFO,
            family::{Change, Head, Kind, Point},
            target::Target,
            value::Value,
        },
    },
    request::{self, Sample},
};

/// The most samples of one request, as Prometheus itself sends them by default (`max_samples_per_send`: 2,000).
const MOST_SAMPLES: usize = 2_000;
/// How far samples of `target_info` are apart, in milliseconds: half of Prometheus' lookback.
const TARGET_INFO_MILLIS: u64 = 150_000;
/// The NaN that ends a series, and the one that is a value (prometheus/prometheus, model/value/value.go).
const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);
const NAN: f64 = f64::from_bits(0x7ff8_0000_0000_0001);

/// Gathers the points of a batch.
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
    /// Whether each sample counts one point: true for numbers and for the `_count` of a histogram or summary.
    counts_points: bool,
}

/// The body of one request.
pub(super) struct Body {
    pub(super) bytes: Bytes,
    /// The number of points in it.
    pub(super) points: u64,
}

/// The name of a sample, its labels as text, and one label more: `le` or `quantile`.
type SeriesKey = (String, Box<str>, Option<(&'static str, String)>);

impl Samples {
    /// Forgets the points of the batch before.
    pub(super) fn clear(&mut self) {
        self.series.clear();
        self.undelivered.clear();
    }

    /// Notes that every request of the batch was delivered.
    pub(super) fn note_delivered(&mut self) {
        self.targets.extend(self.undelivered.drain());
    }

    /// Encodes what was gathered as bodies of requests.
    pub(super) fn requests(&mut self) -> Vec<Body> {
        let mut requests = Vec::new();
        let (mut request, mut count, mut points) = (Buffer::default(), 0, 0);
        let body = |request: &Buffer, points| Body {
            bytes: request::snappy_block(request.as_slice()),
            points,
        };
        for ((name, labels, extra), gathered) in std::mem::take(&mut self.series) {
            let labels = sorted_labels(&name, &labels, extra.as_ref());
            for part in one_a_millisecond(gathered.samples).chunks(MOST_SAMPLES) {
                request::push_series(&labels, part, &mut request);
                count += part.len();
                points += if gathered.counts_points {
                    part.len() as u64
                } else {
                    0
                };
                if count >= MOST_SAMPLES {
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
        let millis = point.time_unix_nanos / 1_000_000;
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
            Change::End if matches!(family.kind, Kind::Counter | Kind::Gauge | Kind::Untyped) => {
                self.add(family.name.clone(), point.labels, None, ((time, STALE), true));
            }
            // Which buckets a histogram had is not known here.
            Change::End => {}
            Change::Add(_) => return Err(Rejection::Temporality),
        }
        self.describe(point.target, millis);
        Ok(())
    }

    /// Adds a sample of `target_info` where the last one is too far away.
    fn describe(&mut self, target: &Target, millis: u64) {
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
    fn latest(_: u64) -> u64 {
        u64::MAX
    }

    fn record<'p>(&mut self, place: &Place<'_>, points: impl Iterator<Item = Point<'p>>) -> Vec<Rejection> {
        points
            .filter_map(|point| self.record_point(&place.family.head, &point).err())
            .collect()
    }
}

/// Gives out the samples of a value: the suffix of the name, the label `le` or `quantile`, and the number.
fn each_sample(value: &Value, mut add: impl FnMut(&str, Option<(&'static str, String)>, f64)) {
    let mut count_and_sum = |count: u64, sum: Option<f64>| {
        add("_count", None, count as f64);
        sum.into_iter().for_each(|sum| add("_sum", None, sum));
    };
    match value {
        Value::Number(value) => add("", None, *value),
        Value::Histogram(histogram) => {
            count_and_sum(histogram.buckets.iter().sum(), histogram.sum);
            let mut cumulative = 0u64;
            for (bound, count) in histogram.bounds.texts(true).zip(&histogram.buckets) {
                cumulative = cumulative.saturating_add(*count);
                add("_bucket", Some(("le", bound.to_owned())), cumulative as f64);
            }
        }
        Value::Native(native) => {
            count_and_sum(native.count, native.sum);
            for (bound, cumulative) in classic_buckets(native) {
                add(
                    "_bucket",
                    Some(("le", go_float::open_metrics(bound))),
                    cumulative as f64,
                );
            }
        }
        Value::Summary(summary) => {
            count_and_sum(summary.count, Some(summary.sum));
            for (quantile, value) in &summary.quantiles {
                add("", Some(("quantile", go_float::open_metrics(*quantile))), *value);
            }
        }
    }
}

/// All labels of a series by name, as the protocol demands.
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

/// The samples in order of time, of those of one millisecond the last.
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
