//! Samples that consist of lines, split at their delimiters.

use crate::expected::{ExpectedLog, clock, lines, number};

/// The time and the text of a line with absl's prefix, or the line.
fn absl(line: &str) -> (Option<u64>, &str) {
    let is_prefixed = line.starts_with("I1121 ") && line.contains(".py:");
    match line.split_once("] ") {
        Some((prefix, text)) if is_prefixed => (Some(clock(&prefix[6..21])), text),
        _ => (None, line),
    }
}

/// Standard error and output of MaxText.
pub(crate) fn maxtext(bytes: &[u8]) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    for line in lines(bytes) {
        let (time, text) = absl(&line);
        expected.time = time;
        expected.attributes = Vec::new();
        let text = text.strip_prefix("[Rampup Batch Size Phase], ").unwrap_or(text);
        let step = text
            .strip_prefix("completed ")
            .and_then(|rest| rest.split_once("step: "));
        if let Some((_, rest)) = step {
            expected.steps.push(number(rest));
            expected.spans += usize::from(time.is_some() && rest.contains("seconds: "));
            maxtext_pairs("", rest, &mut expected);
        } else if text.starts_with("Completed eval ") || text.starts_with("eval metrics after ") {
            maxtext_pairs("eval ", text, &mut expected);
        } else if let Some((_, result)) = text.split_once("average loss after step=3: ") {
            maxtext_pairs("eval ", &["", result].join(", "), &mut expected);
        } else if let Some((_, values)) = text.split_once("Distillation metrics | ") {
            for (key, value) in values.split(' ').filter_map(|part| part.split_once('=')) {
                expected.number(key, number(value));
            }
        } else if let Some((step, values)) =
            text.strip_prefix("step ").and_then(|rest| rest.split_once(" | "))
        {
            expected.steps.push(number(step));
            expected.spans += 1;
            for part in values.split(['|', ',', '(']) {
                let (key, value) = part.split_once(['=', ':']).expect("a key has a value");
                expected.number(key.trim(), number(value));
            }
        } else if [
            "Config param ",
            "System Information: ",
            "TFRT ",
            "Built on ",
            "Aborting ",
            "restoring ",
            "Started ",
            "No existing checkpoints ",
            "Checkpointing disabled",
        ]
        .iter()
        .any(|begin| text.starts_with(begin))
        {
            expected.events += 1;
        } else if text.trim().starts_with("Memstats unavailable") {
            expected.leave_out("not_measured");
        } else if let Some((memory, available)) = text.split_once("-->  Available:") {
            let (used, limit) = memory.split_once(" / ").expect("so much of so much");
            expected.number(
                "RAMstats used",
                number(used.trim().trim_start_matches("Using (GB) ")),
            );
            expected.number("RAMstats limit", number(limit));
            expected.number("RAMstats available", number(available));
            expected.leave_out("share_of_used_and_limit");
        } else if let Some((used, rest)) = text
            .trim()
            .strip_prefix("Using (GB) ")
            .and_then(|rest| rest.split_once(" / "))
        {
            let (limit, rest) = rest.split_once(" (").expect("a share follows");
            let device = rest.split(" on ").nth(1).and_then(|name| name.split('(').next());
            expected.attributes = vec![("device.id", device.expect("a device").to_owned())];
            for (key, value) in [("used", used), ("limit", limit), ("share", rest)] {
                expected.number(format!("Memstats {key}"), number(value));
            }
        } else {
            maxtext_fact(text, &mut expected);
        }
    }
    expected
}

/// Parses `key: value` and `key=value` between commas; any other part is not a value.
fn maxtext_pairs(kind: &str, text: &str, expected: &mut ExpectedLog) {
    for part in text.split(", ").skip(1) {
        let (key, value) = part
            .split_once(": ")
            .or_else(|| part.split_once('='))
            .expect("a key has a value");
        expected.number(format!("{kind}{key}"), number(value));
    }
}

const GIB: f64 = 1_073_741_824.0;

/// Lines of one fact each, of memory that is estimated, and of goodput.
fn maxtext_fact(text: &str, expected: &mut ExpectedLog) {
    const FACTS: [&str; 3] = ["number parameters", "Num_devices", " Total TFLOPs"];
    if let Some((_, goodput)) = text.split_once(" completed with total goodput: ") {
        expected.number("goodput", number(goodput));
    } else if text.starts_with("Total estimated memory size: ") {
        for (key, value) in text.split(", ").filter_map(|part| part.split_once(": ")) {
            expected.number(key, number(value));
        }
    } else if let Some(sizes) = text.strip_suffix(", in bytes.") {
        for (key, value) in sizes.split(", ").filter_map(|part| part.split_once(": ")) {
            expected.number(format!("bytes {}", key.to_lowercase()), number(value) / GIB);
        }
    } else if let Some(rest) = text.strip_prefix(" split as ") {
        for (share, key) in rest.split(" and ").filter_map(|part| part.split_once("% ")) {
            expected.number(key, number(share));
        }
    } else if let Some((key, value)) = text.split_once(": ")
        && (FACTS.contains(&key) || value.ends_with('%'))
    {
        let key = if key == "Total job goodput" {
            "goodput"
        } else {
            key
        };
        expected.number(key, number(value));
        // The line has the mesh after the number of devices.
        expected.events += usize::from(value.contains(", shape "));
    }
}

/// Standard output of KempnerForge.
pub(crate) fn kempnerforge(bytes: &[u8]) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    for line in lines(bytes) {
        let Some(text) = line.strip_prefix("[rank 0] INFO     ") else {
            continue;
        };
        if let Some(rest) = text.strip_prefix("[step ") {
            let (step, values) = rest.split_once("] ").expect("a step ends");
            if values.starts_with("loss=") {
                expected.steps.push(number(step));
            }
            for (key, value) in values.split(" | ").filter_map(|part| part.split_once('=')) {
                let mut parts = value.split('/');
                expected.number(key, number(parts.next().expect("a value")));
                if let Some(total) = parts.next() {
                    expected.number(format!("{key} total"), number(total));
                }
            }
        } else if let Some(parameters) = text.strip_prefix("Model: ") {
            expected.number("Model", number(parameters));
        } else {
            let event_prefixes = [
                "Training c",
                "Starting training: ",
                "Sync ch",
                "Checkpoint committed: ",
            ];
            expected.events += usize::from(event_prefixes.iter().any(|begin| text.starts_with(begin)));
        }
    }
    expected
}

/// Standard error of Tunix.
pub(crate) fn tunix(bytes: &[u8]) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    for line in lines(bytes) {
        let (time, text) = absl(&line);
        expected.time = time;
        if let Some(rest) = text.strip_prefix("Train step ") {
            let (step, values) = rest.split_once(' ').expect("a step ends");
            if values.starts_with("training") {
                expected.steps.push(number(step));
            }
            for (key, value) in values.split(" - ").filter_map(|part| part.split_once(": ")) {
                expected.number(key.trim(), number(value));
            }
        } else if let Some(size) = text.strip_prefix("Compiled train_step cache size: ") {
            expected.number("Compiled train_step cache size", number(size));
        } else if text.starts_with("Train loop finished in: ") {
            expected.events += 1;
        } else if text.starts_with("Training with full_batch_size=") {
            expected.events += text.matches('=').count();
        } else if text.starts_with("Rollout string metric ") {
            expected.leave_out("private_content");
        }
    }
    expected
}

/// Standard output of the Trainer of Hugging Face: dictionaries of Python.
pub(crate) fn hf_trainer(bytes: &[u8]) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    for line in lines(bytes) {
        if line.starts_with("{'") {
            let json = line.replace('\'', "\"").replace(": nan", ": \"nan\"");
            let row = serde_json::from_str(&json).expect("a flat dictionary");
            expected.fields("", &row, &[]);
        } else if line.contains(" >>   Num") || line.contains(" >>   Total") {
            expected.events += 1;
        }
    }
    expected
}

/// Training lines of Megatron-LM.
pub(crate) fn megatron(bytes: &[u8]) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    for line in lines(bytes).iter().filter(|line| line.contains("] iteration ")) {
        let (time, rest) = line.split_once("] iteration ").expect("it is there");
        expected.time = Some(clock(&time[" [2026-11-21 ".len()..]));
        let (iteration, rest) = rest.split_once(" | ").expect("values follow");
        let (step, of) = iteration.split_once('/').expect("a step and the number of steps");
        expected.steps.push(number(step));
        expected.number("iteration", number(step) / number(of));
        for (key, value) in rest.split(" | ").filter_map(|part| part.split_once(": ")) {
            expected.number(key, number(value));
        }
    }
    expected
}

/// Lines of torchtitan: a key is a word that ends in a colon, its value the next one.
pub(crate) fn torchtitan(bytes: &[u8]) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    let mut total = f64::NAN;
    for line in lines(bytes).iter().filter(|line| line.starts_with("[titan] ")) {
        expected.time = Some(clock(
            &line["[titan] 2026-11-21 ".len()..][..12].replace(',', "."),
        ));
        let Some((prefix, rest)) = line.split_once("step: ") else {
            total = torchtitan_other_line(line, &mut expected).unwrap_or(total);
            continue;
        };
        let is_eval = prefix.ends_with("validate ");
        let kind = if is_eval { "validate " } else { "" };
        let mut words = rest.split_whitespace();
        let step = words.next().expect("a step");
        if !is_eval {
            expected.steps.push(number(step));
            expected.number("progress", number(step) / total);
        }
        while let (Some(key), Some(value)) = (words.next(), words.next()) {
            let key = format!("{kind}{}", key.trim_end_matches(':'));
            if value == "N/A" {
                expected.leave_out("not_measured");
            } else if let Some((size, percent)) = value.split_once("GiB(") {
                expected.number(format!("{key} GiB"), number(size));
                expected.number(format!("{key} %"), number(percent));
            } else {
                expected.number(key, number(value));
            }
        }
    }
    expected
}

/// Reads torchtitan's lines outside steps. Returns the number of steps if a line has it.
fn torchtitan_other_line(line: &str, expected: &mut ExpectedLog) -> Option<f64> {
    let after = |sign: &str| line.split_once(sign).map(|(_, rest)| rest);
    for (sign, key) in [
        (" size: ", "total parameters"),
        ("computing MFU: ", "peak"),
        ("H100 with ", "capacity"),
    ] {
        if let Some(rest) = after(sign) {
            expected.number(key, number(rest));
        }
    }
    if let Some(rest) = after("is enabled)in ") {
        expected.number("checkpoint", number(rest));
        expected.spans += 1;
    }
    let settings = after("initialized with ")?;
    expected.events += settings.split(", ").count();
    after("total steps ").map(number)
}

/// Lines of `key=value` of no system. Without a mapping their time is unknown.
pub(crate) fn any_pairs(bytes: &[u8]) -> ExpectedLog {
    let mut expected = ExpectedLog::default();
    for line in lines(bytes).iter().filter(|line| line.contains(" step=")) {
        for (key, value) in line.split(' ').filter_map(|word| word.split_once('=')) {
            if key == "step" {
                expected.steps.push(number(value));
            } else {
                expected.number(key, number(value));
            }
        }
    }
    expected
}
