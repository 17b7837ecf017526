//! Protobuf: length-delimited `io.prometheus.client.MetricFamily`, the only format with native histograms.

use pulsetrain_otlp::{UnixNanos, write::Buffer};

use super::super::{
    escape, labels,
    store::{
        family::{FamilyKind, Head},
        value::{Exemplar, Histogram, Native, SampleValue, Side, Summary},
    },
};

/// The NaN of Prometheus' client libraries. Another NaN is Prometheus' staleness marker.
const NAN: u64 = 0x7ff8_0000_0000_0001;

/// A family in progress.
#[derive(Debug)]
pub(super) struct ProtobufFamily {
    fields: Buffer,
    kind: FamilyKind,
    metric: Buffer,
    inner: Buffer,
    scratch: Buffer,
}

impl ProtobufFamily {
    /// Starts a family. `name` is its name under the client's scheme.
    pub(super) fn new(head: &Head, name: &str) -> Self {
        let mut fields = Buffer::default();
        fields.text(1, name);
        fields.text(2, &head.help);
        fields.uint(3, type_number(head.kind));
        fields.text(5, &head.unit);
        Self {
            fields,
            kind: head.kind,
            metric: Buffer::default(),
            inner: Buffer::default(),
            scratch: Buffer::default(),
        }
    }

    /// Writes the family with its length before it.
    pub(super) fn finish(self, out: &mut Vec<u8>) {
        let mut length = Buffer::default();
        length.varint(self.fields.len() as u64);
        out.extend_from_slice(length.as_slice());
        out.extend_from_slice(self.fields.as_slice());
    }

    /// Adds one series.
    pub(super) fn push_series(
        &mut self,
        labels: &str,
        value: &SampleValue,
        exemplars: &[Exemplar],
        start_nanos: UnixNanos,
    ) {
        self.metric.clear();
        self.inner.clear();
        for (name, value) in labels::read(labels) {
            label_pair(1, &name, value, &mut self.scratch, &mut self.metric);
        }
        let field = match value {
            SampleValue::Number(value) => self.number(*value, exemplars, start_nanos),
            SampleValue::Histogram(histogram) => self.histogram(histogram, exemplars, start_nanos),
            SampleValue::Native(native) => self.native(native, exemplars, start_nanos),
            SampleValue::Summary(summary) => self.summary(summary, start_nanos),
        };
        self.metric.delimited(field, self.inner.as_slice());
        self.fields.delimited(4, self.metric.as_slice());
    }

    fn number(&mut self, value: f64, exemplars: &[Exemplar], start_nanos: UnixNanos) -> u32 {
        double(1, value, &mut self.inner);
        match self.kind {
            FamilyKind::Counter => {
                if let Some(exemplar) = exemplars.first() {
                    self.exemplar(2, exemplar);
                }
                self.start(3, start_nanos);
                3
            }
            FamilyKind::Untyped => 5,
            _ => 2,
        }
    }

    fn histogram(&mut self, histogram: &Histogram, exemplars: &[Exemplar], start_nanos: UnixNanos) -> u32 {
        let total: u64 = histogram
            .buckets
            .iter()
            .fold(0, |total, count| total.saturating_add(*count));
        self.inner.uint(1, total);
        double(2, histogram.sum.unwrap_or_default(), &mut self.inner);
        let bounds = histogram.bounds.values().iter().copied().chain([f64::INFINITY]);
        let mut cumulative = 0u64;
        let mut exemplars = exemplars.iter().peekable();
        for (place, (bound, count)) in bounds.zip(&histogram.buckets).enumerate() {
            cumulative = cumulative.saturating_add(*count);
            let mut bucket = Buffer::default();
            bucket.uint(1, cumulative);
            bucket.double(2, bound);
            if let Some(exemplar) = exemplars.next_if(|exemplar| exemplar.bucket as usize <= place) {
                bucket.delimited(3, encoded(exemplar).as_slice());
            }
            self.inner.delimited(3, bucket.as_slice());
        }
        self.start(15, start_nanos);
        7
    }

    fn native(&mut self, native: &Native, exemplars: &[Exemplar], start_nanos: UnixNanos) -> u32 {
        self.inner.uint(1, native.count);
        double(2, native.sum.unwrap_or_default(), &mut self.inner);
        self.inner.uint(5, zigzag(i64::from(native.schema)));
        double(6, native.zero_threshold, &mut self.inner);
        self.inner.uint(7, native.zero_count);
        self.side(&native.negative, 9, 10);
        self.side(&native.positive, 12, 13);
        // A histogram without spans and observations would be parsed as a classic one.
        if native.positive.is_empty() && native.negative.is_empty() {
            self.inner.delimited(12, &[]);
        }
        self.start(15, start_nanos);
        for exemplar in exemplars.iter().filter(|exemplar| exemplar.unix_nanos.is_known()) {
            self.exemplar(16, exemplar);
        }
        7
    }

    /// Writes the buckets that are not empty: their spans, and delta-encoded counts.
    fn side(&mut self, side: &Side, span_field: u32, delta_field: u32) {
        let mut deltas = Buffer::default();
        let (mut before, mut end) = (0i64, 0i64);
        for (first, counts) in side.runs() {
            self.scratch.clear();
            self.scratch.uint(1, zigzag(i64::from(first) - end));
            self.scratch.uint(2, counts.len() as u64);
            self.inner.delimited(span_field, self.scratch.as_slice());
            end = i64::from(first) + counts.len() as i64;
            for count in counts {
                let count = i64::try_from(*count).unwrap_or(i64::MAX);
                deltas.varint(zigzag(count - before));
                before = count;
            }
        }
        if !deltas.is_empty() {
            self.inner.delimited(delta_field, deltas.as_slice());
        }
    }

    fn summary(&mut self, summary: &Summary, start_nanos: UnixNanos) -> u32 {
        self.inner.uint(1, summary.count);
        double(2, summary.sum, &mut self.inner);
        for (quantile, value) in &summary.quantiles {
            let mut entry = Buffer::default();
            double(1, *quantile, &mut entry);
            double(2, *value, &mut entry);
            self.inner.delimited(3, entry.as_slice());
        }
        self.start(4, start_nanos);
        4
    }

    fn exemplar(&mut self, field: u32, exemplar: &Exemplar) {
        self.inner.delimited(field, encoded(exemplar).as_slice());
    }

    fn start(&mut self, field: u32, start_nanos: UnixNanos) {
        if start_nanos.is_known() {
            self.inner.delimited(field, timestamp(start_nanos).as_slice());
        }
    }
}

impl Side {
    fn is_empty(&self) -> bool {
        self.counts.iter().all(|count| *count == 0)
    }

    /// Returns the runs of buckets that are not empty, each with the index of its first.
    fn runs(&self) -> impl Iterator<Item = (i32, &[u64])> {
        let mut place = 0usize;
        std::iter::from_fn(move || {
            place += self.counts[place..]
                .iter()
                .take_while(|count| **count == 0)
                .count();
            let run = self.counts[place..]
                .iter()
                .take_while(|count| **count != 0)
                .count();
            let first = place;
            place += run;
            (run > 0).then(|| (self.first + first as i32, &self.counts[first..place]))
        })
    }
}

fn encoded(exemplar: &Exemplar) -> Buffer {
    let (mut fields, mut scratch) = (Buffer::default(), Buffer::default());
    for (name, value) in labels::read(&exemplar.labels) {
        label_pair(1, &name, value, &mut scratch, &mut fields);
    }
    double(2, exemplar.value, &mut fields);
    if exemplar.unix_nanos.is_known() {
        fields.delimited(3, timestamp(exemplar.unix_nanos).as_slice());
    }
    fields
}

fn label_pair(field: u32, name: &str, value: &str, scratch: &mut Buffer, out: &mut Buffer) {
    scratch.clear();
    scratch.text(1, name);
    scratch.text(2, &escape::unescaped(value));
    out.delimited(field, scratch.as_slice());
}

fn timestamp(unix_nanos: UnixNanos) -> Buffer {
    let mut fields = Buffer::default();
    fields.uint(1, unix_nanos.0 / 1_000_000_000);
    fields.uint(2, unix_nanos.0 % 1_000_000_000);
    fields
}

fn double(field: u32, value: f64, out: &mut Buffer) {
    if value.is_nan() {
        out.fixed64(field, NAN);
    } else {
        out.double(field, value);
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn type_number(kind: FamilyKind) -> u64 {
    match kind {
        FamilyKind::Counter => 0,
        FamilyKind::Gauge | FamilyKind::Info => 1,
        FamilyKind::Summary => 2,
        FamilyKind::Untyped => 3,
        FamilyKind::Histogram => 4,
    }
}
