//! The entries from which goodput is counted, by a JSON parser, in the order of their times.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::expected::ExpectedLog;

/// A file of one `LogEntry` a line, or of a list of them.
pub(crate) fn goodput_entries(bytes: &[u8]) -> ExpectedLog {
    let text = String::from_utf8_lossy(bytes);
    let mut entries: Vec<Value> = match serde_json::from_str(&text) {
        Ok(list) => list,
        Err(_) => text
            .lines()
            .map(|line| serde_json::from_str(line).expect("an entry"))
            .collect(),
    };
    entries.sort_by_key(|entry| entry["insertId"].as_str().map(str::to_owned));
    let (mut expected, mut begun, mut last) = (ExpectedLog::default(), BTreeMap::new(), None);
    let mut events = 0.0;
    for entry in &entries {
        let payload = entry["jsonPayload"].as_object().expect("a payload");
        let number = |key: &str| payload.get(key).and_then(Value::as_f64);
        let (key, secs) = payload
            .keys()
            .find_map(|key| {
                let is_time = key.ends_with("_time") || key.ends_with("_timestamp");
                is_time.then(|| (key.as_str(), number(key).expect("a time")))
            })
            .expect("an entry has a time");
        expected.time = Some((secs * 1e9) as u64);
        if let Some(step) = number("step_count") {
            if let Some((before, start)) = last.replace((step, secs))
                && step == before + 1.0
            {
                expected.number("step", secs - start - events);
                expected.spans += 1;
            }
            events = 0.0;
            expected.steps.push(step);
        } else if let Some(work) = key.strip_suffix("_start_time") {
            if ["job", "tpu_init", "training_prep", "elastic_reinit"].contains(&work) {
                last = None;
            }
            begun.insert(work.to_owned(), secs);
        } else if let Some(work) = key.strip_suffix("_end_time") {
            let duration = secs - begun.remove(work).expect("what ends has begun");
            expected.spans += 1;
            match payload.get("custom_badput_event_type").and_then(Value::as_str) {
                Some("EVAL_STEP") => expected.number("eval", duration),
                None if work == "data_loading" => expected.number("data", duration),
                _ => {}
            }
            if work == "custom_badput_event" {
                events += duration;
            }
        }
        for slices in ["active_slices", "total_slices", "available_slices"] {
            if let Some(count) = number(slices) {
                expected.number(slices, count);
            }
        }
    }
    expected
}
