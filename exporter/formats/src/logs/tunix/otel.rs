//! Parses Tunix's OpenTelemetry metrics (`enable_opentelemetry`, `tunix/sft/metrics_logger.py`): the JSON of the SDK's console
//! exporter between other lines, or OTLP/JSON. `pulsetrain_mapping::tunix_otel` maps the names.

use pulsetrain_mapping::{CoverageRow, coverage_rules};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::metric;
use serde_json::Value;

use crate::logs::{
    LogFormat, LogParser, ParserFactory, RunHeader, Window,
    parser::Positions,
    python_json::{self, list, number},
};
use crate::tags;
use pulsetrain_mapping::tunix_otel::{MODE, OtelPoint, PREFIX, SCOPE, STEP, TunixOtel};
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};

/// The row of Tunix's OpenTelemetry in the table of formats.
pub(in crate::logs) const FORMAT: LogFormat = LogFormat {
    name: "tunix-otel",
    brief: "Tunix's metrics by OpenTelemetry's console exporter or as OTLP/JSON",
    framework: "tunix",
    continues_after_truncate: true,
    splits: true,
    detect,
    identify,
    parser: ParserFactory::Builtin(|| Box::new(OtelParser::default())),
    coverage,
};

fn detect(head: &[u8]) -> Option<&'static str> {
    let has = |words: &str| memchr::memmem::find(head, words.as_bytes()).is_some();
    let is_text = memchr::memchr(0, head).is_none();
    let is_export = has("\"resource_metrics\"") || has("\"resourceMetrics\"");
    (is_text && is_export && has(MODE)).then_some("metrics with \"tunix.training.mode\"")
}

fn identify(head: &[u8]) -> RunHeader {
    let end = memchr::memmem::find(head, MODE.as_bytes());
    RunHeader {
        first_record: head[..end.unwrap_or(0)].to_vec(),
        ..RunHeader::default()
    }
}

/// Finds the exports in a text.
#[derive(Debug, Default)]
struct OtelParser {
    tunix: TunixOtel,
    /// Whether the next window begins inside a line.
    is_within_line: bool,
}

impl LogParser for OtelParser {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let done = self.exports(window, recorder);
        let last = done.checked_sub(1).map(|last| window.bytes[last]);
        self.is_within_line = last.map_or(self.is_within_line, |last| last != b'\n');
        done
    }

    fn resync(&mut self) {
        self.is_within_line = true;
    }
}

impl OtelParser {
    fn exports(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let mut done = 0;
        let mut positions = Positions::new(window);
        while let Some(start) = self.object_start(window.bytes, done) {
            let rest = &window.bytes[start..];
            let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
            let read = match values.next() {
                // The exporter writes the `NaN` of Python.
                Some(Err(error)) if !error.is_eof() && begins_export(rest) => python_json::first(rest),
                Some(read) => read.map(|export| (values.byte_offset(), export)),
                None => return window.bytes.len(),
            };
            match read {
                Ok((len, export)) => {
                    done = start + len;
                    if self.export(&export, positions.at(start), recorder) {
                        recorder.end_of_record();
                    }
                }
                Err(error) if error.is_eof() && !window.is_last => return start,
                Err(error) if error.is_eof() => {
                    recorder.report(SkipReason::IncompleteRecord, window.position(start), || {
                        "the input ends inside this export; it is skipped".to_owned()
                    });
                    return window.bytes.len();
                }
                Err(error) if begins_export(rest) => {
                    recorder.report(SkipReason::MalformedRecord, positions.at(start), || {
                        format!("the export is not JSON: {error}; it is skipped")
                    });
                    done = start + 1;
                }
                // A line of something else that begins with a brace.
                Err(_) => done = start + 1,
            }
        }
        window.bytes.len()
    }

    /// Returns the offset of the next brace at the beginning of a line.
    fn object_start(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let begins_line = |at: usize| match at.checked_sub(1) {
            Some(before) => bytes[before] == b'\n',
            None => !self.is_within_line,
        };
        let mut braces = memchr::memchr_iter(b'{', &bytes[from..]).map(|at| from + at);
        braces.find(|at| begins_line(*at))
    }
}

impl OtelParser {
    /// Records an export. Returns whether it has metrics of Tunix.
    fn export(&mut self, export: &Value, position: SourcePosition, recorder: &mut Recorder<'_>) -> bool {
        let Some(resources) = either(export, "resource_metrics", "resourceMetrics") else {
            return false;
        };
        let scopes = list(resources)
            .iter()
            .filter_map(|resource| either(resource, "scope_metrics", "scopeMetrics"))
            .flat_map(list);
        let mut is_ours = false;
        for scope in scopes {
            let metrics = list(&scope["metrics"]);
            if scope["scope"]["name"] != SCOPE {
                metrics
                    .iter()
                    .for_each(|_| recorder.skip_value(SkipReason::Ignored("scope_of_another")));
                continue;
            }
            is_ours = true;
            let points: Vec<OtelPoint<'_>> = metrics.iter().flat_map(points).collect();
            self.tunix.record(&points, position, recorder);
        }
        is_ours
    }
}

/// Returns whether bytes begin with an export, in either form.
fn begins_export(bytes: &[u8]) -> bool {
    let key = bytes[1..].trim_ascii_start();
    ["\"resource_metrics\"", "\"resourceMetrics\""]
        .iter()
        .any(|name| key.starts_with(name.as_bytes()))
}

/// Returns the points of a metric, in either form. Incomplete points are skipped.
fn points(metric: &Value) -> impl Iterator<Item = OtelPoint<'_>> {
    let points = metric
        .pointer("/data/data_points")
        .or_else(|| metric.pointer("/gauge/dataPoints"));
    let name = metric["name"].as_str().unwrap_or_default();
    points
        .map_or(&[][..], list)
        .iter()
        .filter_map(move |value| point(name, value))
}

fn point<'v>(name: &'v str, value: &'v Value) -> Option<OtelPoint<'v>> {
    let time = either(value, "time_unix_nano", "timeUnixNano")?;
    let number = ["value", "asDouble", "asInt"]
        .into_iter()
        .find_map(|key| number(&value[key]))?;
    Some(OtelPoint {
        prefix: attribute(&value["attributes"], PREFIX).unwrap_or_default(),
        mode: attribute(&value["attributes"], MODE)?,
        name,
        time_unix_nanos: UnixNanos(time.as_u64().or_else(|| time.as_str()?.parse().ok())?),
        value: number,
    })
}

/// Returns an attribute of a JSON object or of an OTLP list of pairs.
fn attribute<'v>(attributes: &'v Value, name: &str) -> Option<&'v str> {
    if let Some(value) = attributes.get(name) {
        return value.as_str();
    }
    let pair = list(attributes).iter().find(|pair| pair["key"] == name)?;
    pair["value"]["stringValue"].as_str()
}

fn either<'v>(value: &'v Value, one: &str, other: &str) -> Option<&'v Value> {
    value.get(one).or_else(|| value.get(other))
}

fn coverage() -> Vec<CoverageRow> {
    let rules = coverage_rules! {
        STEP => metric::TRAIN_GLOBAL_STEP.name, "from every point of the step";
        "tunix.training.loss, .perplexity, .learning_rate, .gradient.norm" =>
            "the metric of the tag prefix/mode/name", "as for the tag; the names of the tags are below";
        "tunix.a.b of prefix p in mode m" => "the metric of the tag p/m/a/b", "as for the tag";
        "a value of the same step again" => "(left out: exported_again)", "";
        "metrics of other scopes" => "(left out: scope_of_another)", "";
    };
    rules.into_iter().chain(tags::coverage_of("tunix")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::sampled::{Sampled, read_in_chunks};

    fn export(prefix: &str, name: &str, value: &str) -> String {
        let point = format!(
            "{{\"attributes\": {{\"{MODE}\": \"train\", \"{PREFIX}\": \"{prefix}\"}}, \"time_unix_nano\": 5, \"value\": {value}}}"
        );
        format!(
            "{{\"resource_metrics\": [{{\"scope_metrics\": [{{\"scope\": {{\"name\": \"tunix\"}}, \"metrics\": [\
             {{\"name\": \"{name}\", \"data\": {{\"data_points\": [{point}]}}}}]}}]}}]}}"
        )
    }

    #[test]
    fn otel_metric_names_map_to_the_same_metrics_as_tags() {
        let text = [
            ("actor", "tunix.training.loss", "2.5"),
            ("actor", "tunix.training.gradient.norm", "0.5"),
            ("perf", "tunix.sum.rollout_time", "1.25"),
            ("rewards", "tunix.score.mean", "3"),
            ("", "tunix.training.perplexity", "12.5"),
            ("mine", "tunix.novel", "7"),
        ]
        .map(|(prefix, name, value)| export(prefix, name, value))
        .join("\n");
        let read = Sampled::read(&FORMAT, &text);
        assert_eq!(read.values("train.loss"), [2.5]);
        assert_eq!(read.values("train.grad_norm"), [0.5]);
        assert_eq!(read.values("perf.rollout_time"), [1.25]);
        assert_eq!(read.values("rl.score"), [3.0]);
        assert_eq!(read.values("train.perplexity"), [12.5]);
        assert_eq!(
            read.attributes("train.custom"),
            ["train.custom.name=mine/train/novel"]
        );
        assert_eq!((read.counts.records, read.counts.points), (6, 6));
    }

    #[test]
    fn a_trainer_without_a_prefix_has_no_attribute_for_it() {
        let text = export("", "tunix.training.loss", "2.5").replace(&format!(", \"{PREFIX}\": \"\""), "");
        assert!(
            !text.contains(PREFIX) && detect(text.as_bytes()).is_some(),
            "{text}"
        );
        assert_eq!(Sampled::read(&FORMAT, &text).values("train.loss"), [2.5]);
    }

    #[test]
    fn reexported_gauge_is_recorded_only_once() {
        let step = |step: &str| export("perf", STEP, step);
        let time = || export("perf", "tunix.global_step_time", "1.5");
        let text = [step("1"), time(), step("1"), time(), step("2"), time()].join("\n");
        let read = Sampled::read(&FORMAT, &text);
        assert_eq!(read.values("perf.global_step_time"), [1.5, 1.5]);
        assert_eq!(read.values("train.global_step"), [1.0, 2.0]);
    }

    #[test]
    fn text_between_exports_is_skipped_and_a_partial_export_is_reported() {
        let complete = export("actor", "tunix.training.loss", "2.5");
        let text = format!(
            "starting\n{{not json}}\n{complete}\nstep 1\n{}",
            &complete[..complete.len() / 2]
        );
        let read = Sampled::read(&FORMAT, &text);
        assert_eq!(read.values("train.loss"), [2.5]);
        assert_eq!(read.counts.records, 1);
        assert!(read.skipped.has_losses());
    }

    #[test]
    fn non_finite_loss_is_recorded_at_any_chunk_boundary() {
        let nan = export("actor", "tunix.training.loss", "NaN").replace("{\"resource", "{\n    \"resource");
        let infinite = export("rewards", "tunix.score.mean", "-Infinity");
        let text = format!("{nan}\n{infinite}");
        let read = Sampled::read(&FORMAT, &text);
        assert!(read.values("train.loss")[0].is_nan());
        assert_eq!(read.values("rl.score"), [f64::NEG_INFINITY]);
        for cut in 1..text.len() {
            let (counts, _) = read_in_chunks(&FORMAT, text.as_bytes(), cut);
            assert_eq!(counts.records, 2, "{cut}");
        }
        let read = Sampled::read(&FORMAT, &nan[..nan.len() - 3]);
        assert_eq!(read.counts.records, 0);
        assert!(read.skipped.has_losses());
    }

    #[test]
    fn malformed_export_is_reported_and_does_not_affect_the_next() {
        let good = export("actor", "tunix.training.loss", "2.5");
        for (from, to) in [
            (": 5,", ": 5, nan"),
            ("\"tunix\"", "\"tunix"),
            ("}}", "}"),
            ("[{\"attributes", "{\"attributes"),
        ] {
            assert!(good.contains(from), "{from}");
            let broken = good.replacen(from, to, 1);
            let read = Sampled::read(&FORMAT, &format!("{broken}\n{good}\n"));
            assert_eq!(read.values("train.loss"), [2.5], "{broken}");
            assert!(read.skipped.has_losses(), "{broken}");
        }
    }

    #[test]
    fn export_is_recognised_only_at_the_start_of_a_line() {
        let complete = export("actor", "tunix.training.loss", "2.5");
        for (text, records) in [
            (format!("{{}}{complete}\n{complete}"), 1),
            (format!("x{complete}\n{{{complete}\n"), 0),
            (format!("x\n{complete}\n\n{complete}"), 2),
        ] {
            assert_eq!(Sampled::read(&FORMAT, &text).counts.records, records, "{text}");
            let (counts, _) = read_in_chunks(&FORMAT, text.as_bytes(), text.len());
            assert_eq!(counts.records, records, "{text}");
        }
    }
}
