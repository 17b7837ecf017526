//! The two text formats: Prometheus text 0.0.4 and OpenMetrics 1.0.
//!
//! They differ in the name of a counter's family, in units, exemplars and the end mark. Start times (`_created`) are left
//! out: a Prometheus without a feature flag takes them for series of their own.

use std::io::Write;

use super::{
    super::store::{
        family::{Head, Kind},
        value::{Exemplar, Histogram, Native, Summary, Value},
    },
    classic::{self, Bucket},
    go_float,
    number::{push, push_count},
    sample_name::{self, SampleName},
};

/// The names of a family's samples.
#[derive(Debug)]
pub(super) struct TextFamily {
    open_metrics: bool,
    kind: Kind,
    /// As `# TYPE` has it.
    name: String,
    plain: SampleName,
    bucket: SampleName,
    sum: SampleName,
    count: SampleName,
}

impl TextFamily {
    /// `name` is the family's name under the client's scheme.
    pub(super) fn new(head: &Head, name: &str, open_metrics: bool) -> Self {
        let base = name.strip_suffix("_total").unwrap_or(name);
        let counter = open_metrics && head.kind == Kind::Counter;
        let sample = |suffix: &str| SampleName::new(&format!("{name}{suffix}"));
        Self {
            open_metrics,
            kind: head.kind,
            name: sample_name::in_comment(if counter { base } else { name }),
            plain: if counter {
                SampleName::new(&format!("{base}_total"))
            } else {
                sample("")
            },
            bucket: sample("_bucket"),
            sum: sample("_sum"),
            count: sample("_count"),
        }
    }

    /// Writes the lines that stand before the series.
    pub(super) fn push_head(&self, head: &Head, out: &mut Vec<u8>) {
        if !head.help.is_empty() {
            self.push_comment("HELP", &help(&head.help, self.open_metrics), out);
        }
        self.push_comment("TYPE", type_word(self.kind, self.open_metrics), out);
        if self.open_metrics && !head.unit.is_empty() {
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
    pub(super) fn push_series(&self, labels: &str, value: &Value, exemplars: &[Exemplar], out: &mut Vec<u8>) {
        match value {
            Value::Number(value) => {
                self.plain.push(labels, None, out);
                out.push(b' ');
                push(*value, out);
                if self.kind == Kind::Counter {
                    self.push_exemplar(exemplars.first(), out);
                }
                out.push(b'\n');
            }
            Value::Histogram(histogram) => self.push_histogram(labels, histogram, exemplars, out),
            Value::Native(native) => self.push_native(labels, native, exemplars, out),
            Value::Summary(summary) => self.push_summary(labels, summary, out),
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
            self.push_exemplar(
                exemplars.next_if(|exemplar| exemplar.bucket as usize <= bucket),
                out,
            );
            out.push(b'\n');
        }
        self.push_sum_and_count(labels, histogram.sum, cumulative, out);
    }

    /// Text has no exponential buckets: what they hold is told in some with bounds.
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
            out.push(b'\n');
        }
        self.push_sum_and_count(labels, Some(summary.sum), summary.count, out);
    }

    fn push_sum_and_count(&self, labels: &str, sum: Option<f64>, count: u64, out: &mut Vec<u8>) {
        if let Some(sum) = sum {
            self.sum.push(labels, None, out);
            out.push(b' ');
            push(sum, out);
            out.push(b'\n');
        }
        self.count.push(labels, None, out);
        out.push(b' ');
        push_count(count, out);
        out.push(b'\n');
    }

    fn push_exemplar(&self, exemplar: Option<&Exemplar>, out: &mut Vec<u8>) {
        let Some(exemplar) = exemplar.filter(|_| self.open_metrics) else {
            return;
        };
        out.extend_from_slice(b" # {");
        out.extend_from_slice(exemplar.labels.as_bytes());
        out.extend_from_slice(b"} ");
        push(exemplar.value, out);
        if exemplar.unix_nanos != 0 {
            let (seconds, nanos) = (
                exemplar.unix_nanos / 1_000_000_000,
                exemplar.unix_nanos % 1_000_000_000,
            );
            let _ = write!(out, " {seconds}.{nanos:09}");
        }
    }
}

fn type_word(kind: Kind, open_metrics: bool) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Untyped if open_metrics => "unknown",
        Kind::Untyped => "untyped",
        Kind::Histogram => "histogram",
        Kind::Summary => "summary",
    }
}

/// Help on one line; quotes are escaped in OpenMetrics only.
fn help(help: &str, open_metrics: bool) -> String {
    let escaped = help.replace('\\', "\\\\").replace('\n', "\\n");
    if open_metrics {
        escaped.replace('"', "\\\"")
    } else {
        escaped
    }
}
