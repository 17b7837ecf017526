//! Records that become events instead of points: each word and number of a command, an option, a message, a GPU model and a
//! list of maxima is in the event of its record.

use pulsetrain_tests::{Import, Items, SurogateLog, corpus};
use serde_json::Value;

/// Kinds of records that become one event each, and the name of the event.
const EVENTS: [(&str, &str); 5] = [
    ("cmd", "run.command"),
    ("option", "run.option"),
    ("info", "run.message"),
    ("gpu-model", "run.gpu_model"),
    ("abs-maxes", "train.tensor_abs_max"),
];

/// The type and time fields of a record, for which the event has dedicated fields.
const HEAD: [&str; 3] = ["log", "time", "step"];

#[test]
fn every_text_and_number_of_a_record_is_in_its_event() {
    for log in ["surogate/training_dense.json", "surogate/training_moe.json"] {
        let finished = Import::new(corpus(log)).to("-").run().expect_code(0);
        let (items, records) = (Items::parse(&finished.stdout), SurogateLog::read(&corpus(log)));
        for (kind, name) in EVENTS {
            let events: Vec<_> = items
                .of_kind("log")
                .into_iter()
                .map(|item| &item["log"])
                .filter(|log| log["eventName"] == name)
                .collect();
            let records = records.of_kind(kind);
            assert_eq!(events.len(), records.len(), "{name} in {log}");
            for record in records {
                let time = record.time().to_string();
                let event = events.iter().find(|event| event["timeUnixNano"] == time.as_str());
                let event = event.unwrap_or_else(|| panic!("no {name} at {time}"));
                all_in(&leaves(record.fields()), &leaves(event));
            }
        }
    }
}

fn all_in(leaves: &[String], event: &[String]) {
    assert!(!leaves.is_empty());
    for leaf in leaves {
        assert!(event.contains(leaf), "{leaf} is not in {event:?}");
    }
}

/// Returns the words and numbers of a record or an event in normalized form: numbers as doubles, booleans as 1 and 0,
/// milliseconds as seconds.
fn leaves(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| !HEAD.contains(&key.as_str()))
            .flat_map(|(key, value)| match value.as_f64() {
                Some(millis) if key == "duration_ms" => vec![spelled(millis / 1e3)],
                _ => leaves(value),
            })
            .collect(),
        Value::Array(elements) => elements.iter().flat_map(leaves).collect(),
        Value::Bool(yes) => vec![spelled(f64::from(u8::from(*yes)))],
        Value::Number(number) => vec![spelled(number.as_f64().unwrap_or(f64::NAN))],
        Value::String(text) => vec![text.parse().map_or_else(|_| text.clone(), spelled)],
        Value::Null => Vec::new(),
    }
}

fn spelled(number: f64) -> String {
    format!("{number:?}")
}
