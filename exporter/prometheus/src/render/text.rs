//! The two text formats: Prometheus text 0.0.4 and OpenMetrics 1.0.
//!
//! They differ in the name of a counter's family, in units, exemplars and the end marker. Start times
//! (`_created`) are left out, because a Prometheus without a feature flag stores them as separate series.

use std::io::Write;

use super::{
    super::{
        go_float,
        store::{
            family::{FamilyKind, Head},
            value::{Exemplar, Histogram, Native, SampleValue, Summary},
        },
    },
    classic::{self, Bucket},
    number::{push, push_count},
    sample_name::{self, SampleName},
};

/// The names of a family's samples.
#[derive(Debug)]
pub(crate) struct TextFamily {
    open_metrics: bool,
    kind: FamilyKind,
    /// The name in `# TYPE`.
    name: String,
    /// Whether the name ends with the unit, as OpenMetrics requires. Under some schemes a unit of several
    /// words does not.
    has_unit: bool,
    plain: SampleName,
    bucket: SampleName,
    sum: SampleName,
    count: SampleName,
    /// A space and the time of the samples, or empty on a page, whose samples have the time of the scrape.
    time: String,
}

impl TextFamily {
    /// Starts a family. `name` is its name under the client's scheme.
    pub(crate) fn new(head: &Head, name: &str, open_metrics: bool) -> Self {
        let suffix = match head.kind {
            FamilyKind::Counter if open_metrics => "_total",
            FamilyKind::Info if open_metrics => "_info",
            _ => "",
        };
        let base = name.strip_suffix(suffix).unwrap_or(name);
        let sample = |suffix: &str| SampleName::new(&format!("{base}{suffix}"));
        let has_unit = base
            .strip_suffix(head.unit.as_str())
            .is_some_and(|stem| stem.ends_with('_'));
        Self {
            open_metrics,
            kind: head.kind,
            name: sample_name::in_comment(base),
            has_unit: has_unit && !head.unit.is_empty(),
            plain: sample(suffix),
            bucket: sample("_bucket"),
            sum: sample("_sum"),
            count: sample("_count"),
            time: String::new(),
        }
    }

    /// Sets the time of the following samples, in the unit of the format.
    pub(crate) fn set_time(&mut self, time: &str) {
        self.time.clear();
        self.time.extend([" ", time]);
    }

    /// Writes the lines before the series.
    pub(crate) fn push_head(&self, head: &Head, out: &mut Vec<u8>) {
        if !head.help.is_empty() {
            self.push_comment("HELP", &help(&head.help, self.open_metrics), out);
        }
        self.push_comment("TYPE", type_word(self.kind, self.open_metrics), out);
        if self.open_metrics && self.has_unit {
            self.push_comment("UNIT", &head.unit, out);
        }
    }

    fn push_comment(&self, word: &str, text: &str, out: &mut Vec<u8>) {
        let parts = ["# ", word, " ", &self.name, " ", text, "\n"];
        parts
            .iter()
            .for_each(|part| out.extend_from_slice(part.as_bytes()));
    }

    /// Writes the lines of one series.
    #[inline]
    pub(crate) fn push_series(
        &self,
        labels: &str,
        value: &SampleValue,
        exemplars: &[Exemplar],
        out: &mut Vec<u8>,
    ) {
        match value {
            SampleValue::Number(value) => {
                self.plain.push(labels, None, out);
                out.push(b' ');
                push(*value, out);
                self.push_time(out);
                if self.kind == FamilyKind::Counter {
                    self.push_exemplar(exemplars.first(), out);
                }
                out.push(b'\n');
            }
            SampleValue::Histogram(histogram) => self.push_histogram(labels, histogram, exemplars, out),
            SampleValue::Native(native) => self.push_native(labels, native, exemplars, out),
            SampleValue::Summary(summary) => self.push_summary(labels, summary, out),
        }
    }

    fn push_histogram(&self, labels: &str, histogram: &Histogram, exemplars: &[Exemplar], out: &mut Vec<u8>) {
        let mut cumulative = 0u64;
        let mut exemplars = exemplars.iter().peekable();
        let buckets = histogram.bounds.texts(self.open_metrics).zip(&histogram.buckets);
        for (bucket, (bound, count)) in buckets.enumerate() {
            cumulative = cumulative.saturating_add(*count);
            self.bucket.push(labels, Some(("le", bound)), out);
            out.push(b' ');
            push_count(cumulative, out);
            self.push_time(out);
            self.push_exemplar(
                exemplars.next_if(|exemplar| exemplar.bucket as usize <= bucket),
                out,
            );
            out.push(b'\n');
        }
        let has_negative = histogram
            .bounds
            .values()
            .first()
            .is_some_and(|bound| *bound < 0.0);
        let sum = histogram.sum.filter(|_| !(self.open_metrics && has_negative));
        self.push_sum_and_count(labels, sum, cumulative, out);
    }

    /// Writes a native histogram as classic buckets, because text has no exponential buckets.
    fn push_native(&self, labels: &str, native: &Native, exemplars: &[Exemplar], out: &mut Vec<u8>) {
        let text = if self.open_metrics {
            go_float::open_metrics
        } else {
            go_float::text
        };
        let mut before = f64::NEG_INFINITY;
        let last = Bucket {
            bound: f64::INFINITY,
            cumulative: native.count,
        };
        for Bucket { bound, cumulative } in classic::buckets(native).into_iter().chain([last]) {
            self.bucket.push(labels, Some(("le", &text(bound))), out);
            out.push(b' ');
            push_count(cumulative, out);
            self.push_time(out);
            self.push_exemplar(classic::exemplar(exemplars, before, bound), out);
            out.push(b'\n');
            before = bound;
        }
        self.push_sum_and_count(labels, native.sum, native.count, out);
    }

    fn push_summary(&self, labels: &str, summary: &Summary, out: &mut Vec<u8>) {
        let text = if self.open_metrics {
            go_float::open_metrics
        } else {
            go_float::text
        };
        for (quantile, value) in &summary.quantiles {
            self.plain.push(labels, Some(("quantile", &text(*quantile))), out);
            out.push(b' ');
            push(*value, out);
            self.push_time(out);
            out.push(b'\n');
        }
        self.push_sum_and_count(labels, Some(summary.sum), summary.count, out);
    }

    fn push_sum_and_count(&self, labels: &str, sum: Option<f64>, count: u64, out: &mut Vec<u8>) {
        // OpenMetrics 1.0, "Histogram": a sum only increases, and a count requires a sum. The bucket +Inf has
        // the count.
        let sum = sum.filter(|sum| !self.open_metrics || *sum >= 0.0);
        if sum.is_none() && self.open_metrics && self.kind == FamilyKind::Histogram {
            return;
        }
        if let Some(sum) = sum {
            self.sum.push(labels, None, out);
            out.push(b' ');
            push(sum, out);
            self.push_time(out);
            out.push(b'\n');
        }
        self.count.push(labels, None, out);
        out.push(b' ');
        push_count(count, out);
        self.push_time(out);
        out.push(b'\n');
    }

    #[inline]
    fn push_time(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.time.as_bytes());
    }

    fn push_exemplar(&self, exemplar: Option<&Exemplar>, out: &mut Vec<u8>) {
        let Some(exemplar) = exemplar.filter(|_| self.open_metrics) else {
            return;
        };
        out.extend_from_slice(b" # {");
        out.extend_from_slice(exemplar.labels.as_bytes());
        out.extend_from_slice(b"} ");
        push(exemplar.value, out);
        if exemplar.unix_nanos.is_known() {
            let (seconds, nanos) = (
                exemplar.unix_nanos.0 / 1_000_000_000,
                exemplar.unix_nanos.0 % 1_000_000_000,
            );
            let _ = write!(out, " {seconds}.{nanos:09}");
        }
    }
}

fn type_word(kind: FamilyKind, open_metrics: bool) -> &'static str {
    match kind {
        FamilyKind::Counter => "counter",
        FamilyKind::Info if open_metrics => "info",
        FamilyKind::Gauge | FamilyKind::Info => "gauge",
        FamilyKind::Untyped if open_metrics => "unknown",
        FamilyKind::Untyped => "untyped",
        FamilyKind::Histogram => "histogram",
        FamilyKind::Summary => "summary",
    }
}

/// Returns help text on one line. Only OpenMetrics escapes quotes.
fn help(help: &str, open_metrics: bool) -> String {
    let escaped = help.replace('\\', "\\\\").replace('\n', "\\n");
    if open_metrics {
        escaped.replace('"', "\\\"")
    } else {
        escaped
    }
}
