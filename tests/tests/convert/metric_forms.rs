//! The forms in which clients send the same metrics: totals or deltas, ranks as integers or as text, explicit or exponential
//! histograms. Derived signals and the shown run are the same in all of them.

use std::collections::BTreeSet;

use pulsetrain_tests::{Finished, Folder, Items, command, convert, otlp};
use serde_json::{Value, json};

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_700_000_000 * SECOND;
const STEPS: u64 = 60;
const RANKS: u64 = 2;

/// The form of a client's metrics.
#[derive(Clone, Copy, Debug, Default)]
struct Form {
    is_delta: bool,
    has_rank_as_text: bool,
    is_exponential: bool,
    /// Whether each message is sent twice, as after a lost answer.
    is_repeated: bool,
}

/// Returns every form of messages that are sent once. The first has totals, integers and explicit histograms.
fn forms() -> impl Iterator<Item = Form> {
    (0..8).map(|bits| Form {
        is_delta: bits & 1 > 0,
        has_rank_as_text: bits & 2 > 0,
        is_exponential: bits & 4 > 0,
        is_repeated: false,
    })
}

impl Form {
    /// Returns the messages of all ranks, in order of time. A step takes one second and 1,000 tokens, a quarter of it for data.
    fn messages(self) -> String {
        let mut lines = Vec::new();
        for step in 1..=STEPS {
            for rank in 0..RANKS {
                let line = self.message(rank, step).to_string();
                lines.extend(vec![line; 1 + usize::from(self.is_repeated)]);
            }
        }
        lines.join("\n")
    }

    fn message(self, rank: u64, step: u64) -> Value {
        let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let rank_value = match self.has_rank_as_text {
            true => json!({"stringValue": rank.to_string()}),
            false => json!({"intValue": rank.to_string()}),
        };
        let resource = json!({"attributes": [
            text("service.name", "trainer"),
            text("service.instance.id", &format!("toyrun/{rank}")),
            text("train.run.id", "toyrun"),
            {"key": "train.rank", "value": rank_value},
        ]});
        let metrics = json!([
            self.gauge("train.global_step", "{step}", step, step as f64),
            self.gauge("train.loss", "1", step, 4.0 / step as f64),
            self.sum("train.tokens", "{token}", step, 1000),
            self.histogram("train.step.duration", step, 1.0),
            self.histogram("perf.data_time", step, 0.25),
        ]);
        json!({"resourceMetrics": [{
            "resource": resource,
            "scopeMetrics": [{"scope": {"name": "trainer"}, "metrics": metrics}],
        }]})
    }

    fn gauge(self, name: &str, unit: &str, step: u64, value: f64) -> Value {
        let point = json!({"timeUnixNano": time(step), "asDouble": value});
        json!({"name": name, "unit": unit, "gauge": {"dataPoints": [point]}})
    }

    /// Returns the start of a point, and the steps that it counts.
    fn interval(self, step: u64) -> (String, u64) {
        match self.is_delta {
            true => (time(step - 1), 1),
            false => (time(0), step),
        }
    }

    fn temporality(self) -> u8 {
        if self.is_delta { 1 } else { 2 }
    }

    fn sum(self, name: &str, unit: &str, step: u64, increase: u64) -> Value {
        let (start, steps) = self.interval(step);
        let value = (increase * steps).to_string();
        let point = json!({"startTimeUnixNano": start, "timeUnixNano": time(step), "asInt": value});
        json!({"name": name, "unit": unit, "sum": {
            "dataPoints": [point], "aggregationTemporality": self.temporality(), "isMonotonic": true,
        }})
    }

    fn histogram(self, name: &str, step: u64, secs: f64) -> Value {
        let (start, steps) = self.interval(step);
        let count = steps.to_string();
        let mut point = json!({
            "startTimeUnixNano": start, "timeUnixNano": time(step),
            "count": count, "sum": secs * steps as f64, "min": secs, "max": secs,
        });
        let kind = match self.is_exponential {
            true => {
                // At scale 0 the bucket of index i ends with 2^(i + 1), inclusively.
                point["scale"] = json!(0);
                point["positive"] = json!({"offset": secs.log2() as i64 - 1, "bucketCounts": [count]});
                "exponentialHistogram"
            }
            false => {
                point["explicitBounds"] = json!([10.0]);
                point["bucketCounts"] = json!([count, "0"]);
                "histogram"
            }
        };
        json!({"name": name, "unit": "s", kind: {
            "dataPoints": [point], "aggregationTemporality": self.temporality(),
        }})
    }
}

fn time(step: u64) -> String {
    (START + step * SECOND).to_string()
}

/// Returns the derived points of `convert --derive`, without the type of their rank.
fn derived(form: Form) -> BTreeSet<String> {
    let folder = Folder::new();
    let (input, output) = (folder.file("in.jsonl", form.messages()), folder.path("out.jsonl"));
    convert(&[input], &output, &["--derive"]).expect_code(0);
    let items = Items::read(&output);
    let points = items.of_kind("point").into_iter();
    let derived = points.filter(|item| item["scope"]["name"] == "pulsetrain.derive");
    derived
        .map(|item| {
            let instance = otlp::text_of(&item["resource"], "service.instance.id");
            json!([instance, item["metric"]["name"], item["point"]]).to_string()
        })
        .collect()
}

/// Returns the text of `show --text`.
fn shown(form: Form) -> String {
    let folder = Folder::new();
    let input = folder.file("in.jsonl", form.messages());
    let finished = Finished::run(command(["show", "--text"]).arg(input)).expect_code(0);
    finished.stdout.replace(&folder.root().display().to_string(), "")
}

#[test]
fn derived_signals_are_equal_in_every_form_of_the_metrics() {
    let expected = derived(Form::default());
    let points = |metric: &str| {
        let of_metric = expected
            .iter()
            .filter(|point| point.contains(&format!("{metric:?}")));
        of_metric.count()
    };
    for metric in [
        "train.throughput.tokens",
        "train.smoothed.step_time",
        "train.straggler.score",
    ] {
        assert_eq!(points(metric) as u64, RANKS * STEPS, "{metric}");
    }
    for form in forms() {
        let found = derived(form);
        assert!(
            found == expected,
            "{form:?}: lost {:#?}, new {:#?}",
            expected.difference(&found).take(3).collect::<Vec<_>>(),
            found.difference(&expected).take(3).collect::<Vec<_>>()
        );
    }
}

#[test]
fn deltas_that_are_sent_twice_derive_the_same_signals() {
    let form = Form {
        is_delta: true,
        is_repeated: true,
        ..Form::default()
    };
    assert_eq!(derived(form), derived(Form::default()));
}

#[test]
fn shown_run_is_equal_in_every_form_of_the_metrics() {
    let expected = shown(Form::default());
    for words in ["2 ranks", "1000 token/s", "Step time 1 s", "Data wait 25.0 %"] {
        assert!(expected.contains(words), "{expected}");
    }
    for form in forms() {
        assert_eq!(shown(form), expected, "{form:?}");
    }
}
