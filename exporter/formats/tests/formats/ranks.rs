//! Logs in which a launcher prefixes each line of each worker: the prefix is removed, and the resource has the rank.

use std::collections::BTreeMap;

use pulsetrain_formats::{detect, format_by_name};
use serde_json::Value;

use crate::imported::{head, json, read, sample_text};

/// The samples that a launcher may prefix, and their formats.
const SAMPLES: [(&str, &str); 12] = [
    ("hf-trainer/stdout.log", "hf-trainer"),
    ("kempnerforge/dense.stdout", "kempnerforge"),
    ("maxtext/demo.stderr", "maxtext"),
    ("surogate/console_moe.log", "surogate-console"),
    ("surogate/console_verbose.log", "surogate-console"),
    ("torchspec/perf.stderr", "torchspec"),
    (
        "torchtitan/training.global_rank_0.20261121-002911-Z3DKG9.jsonl",
        "torchtitan-structured",
    ),
    ("tunix/colocated/stderr_absl.log", "tunix"),
    ("written/hf_trainer_trl.log", "hf-trainer"),
    ("written/maxtext.log", "maxtext"),
    ("written/megatron.log", "megatron"),
    ("written/torchtitan.log", "torchtitan"),
];

/// Returns the prefix of a rank's lines.
type Prefix = fn(u32) -> String;

/// Prefixes with the rank of the worker on its own host.
const WITH_LOCAL_RANK: [Prefix; 2] = [
    |rank| format!("[rank{rank}]:"),
    |rank| format!("[default{rank}]: "),
];
const WITH_RANK: [Prefix; 6] = [
    WITH_LOCAL_RANK[0],
    WITH_LOCAL_RANK[1],
    |rank| format!("[Rank {rank}] "),
    |rank| format!("{rank}: "),
    |rank| format!("[1,{rank}]<stdout>:"),
    |rank| format!("\u{1b}[36m(TrainActor(rank={rank}) pid=47{rank}, ip=10.0.0.1)\u{1b}[0m "),
];

/// Splits a text into lines that keep their newlines.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n')
}

/// The messages of an import, grouped by the rank of their resource.
fn by_rank(format: &str, text: &str) -> BTreeMap<String, Vec<Value>> {
    let bytes = text.as_bytes();
    let (found, sign) = detect("it", head(bytes)).expect("it is recognised");
    assert_eq!(found.name, format, "{sign}");
    let (batches, _, skipped) = read(found, bytes);
    assert!(!skipped.has_losses(), "{:?}", skipped.problems());
    let mut ranks = BTreeMap::<String, Vec<Value>>::new();
    for line in json(&batches).lines() {
        let mut message: Value = serde_json::from_str(line).expect("a line is JSON");
        let signals = message.as_object_mut().expect("a message is an object");
        for resource in signals.values_mut().filter_map(Value::as_array_mut).flatten() {
            let attributes = resource["resource"]["attributes"].take();
            let attributes = attributes.as_array().expect("a resource has attributes").clone();
            let of = |key: &str| {
                let found = attributes.iter().find(|attribute| attribute["key"] == key);
                found.expect("it is there")["value"].clone()
            };
            let rank = of("train.rank")["intValue"]
                .as_str()
                .expect("a number")
                .to_owned();
            assert_eq!(of("service.instance.id")["stringValue"], format!("golden/{rank}"));
            ranks.entry(rank).or_default().push(resource.clone());
        }
    }
    ranks
}

/// Removes times of reading and ids derived from a rank, in which two equal imports differ.
fn without_times(messages: &[Value]) -> Vec<String> {
    let text = messages.iter().map(Value::to_string);
    let mut kept: Vec<String> = text
        .flat_map(|text| {
            let parts = text.split(['{', '}', ',']).map(str::to_owned);
            parts.collect::<Vec<_>>()
        })
        .filter(|part| {
            let is_volatile = ["imeUnixNano", "spanId", "arentSpanId"]
                .iter()
                .any(|word| part.contains(word));
            !is_volatile && !part.is_empty()
        })
        .collect();
    kept.sort();
    kept
}

#[test]
fn rank_prefix_does_not_change_the_values_of_a_line() {
    for (name, format) in SAMPLES {
        let text = sample_text(name);
        let plain = by_rank(format, &text);
        assert_eq!(plain.keys().collect::<Vec<_>>(), ["0"], "{name}");
        for prefix in WITH_RANK {
            let prefixed_text: String = lines(&text).map(|line| prefix(3) + line).collect();
            // The structured log has its own rank.
            let rank = if format == "torchtitan-structured" {
                "0"
            } else {
                "3"
            };
            let found = by_rank(format, &prefixed_text);
            assert_eq!(found.keys().collect::<Vec<_>>(), [rank], "{name} {}", prefix(3));
            assert_eq!(
                without_times(&found[rank]),
                without_times(&plain["0"]),
                "{name} {}",
                prefix(3)
            );
        }
    }
}

#[test]
fn only_the_torchrun_prefix_also_sets_the_local_rank() {
    let text = sample_text("tunix/colocated/stderr_absl.log");
    for prefix in WITH_RANK {
        // Rank 0 is that of the run itself, until a line has a prefix.
        let mixed: String = lines(&text)
            .flat_map(|line| [0, 3].map(|rank| prefix(rank) + line))
            .collect();
        let is_local = WITH_LOCAL_RANK.iter().any(|local| local(7) == prefix(7));
        let format = format_by_name("tunix").expect("it is a format");
        let (batches, ..) = read(format, mixed.as_bytes());
        let text = json(&batches);
        let has = |key: &str, rank: u32| {
            text.contains(&format!(
                "{{\"key\":\"{key}\",\"value\":{{\"intValue\":\"{rank}\"}}}}"
            ))
        };
        for rank in [0, 3] {
            assert!(has("train.rank", rank), "{}", prefix(rank));
            assert_eq!(has("train.local_rank", rank), is_local, "{}", prefix(rank));
        }
    }
}

#[test]
fn ray_lines_without_a_rank_belong_to_rank_zero() {
    for (name, format) in SAMPLES {
        let text = sample_text(name);
        let prefix = "(TrainActor pid=4711, ip=10.0.0.1) ";
        let prefixed_text: String = lines(&text).map(|line| format!("{prefix}{line}")).collect();
        let (plain, found) = (by_rank(format, &text), by_rank(format, &prefixed_text));
        assert_eq!(without_times(&found["0"]), without_times(&plain["0"]), "{name}");
    }
}

/// Each rank has its own sums and its own last step.
#[test]
fn interleaved_ranks_are_separated() {
    for (name, format) in SAMPLES {
        if ["torchtitan-structured", "kempnerforge"].contains(&format) {
            continue;
        }
        let text = sample_text(name);
        let plain = by_rank(format, &text);
        for prefix in WITH_RANK {
            let mixed: String = lines(&text)
                .flat_map(|line| (1..4).map(move |rank| prefix(rank) + line))
                .collect();
            let found = by_rank(format, &mixed);
            assert_eq!(found.keys().collect::<Vec<_>>(), ["1", "2", "3"], "{name}");
            for (rank, messages) in &found {
                assert_eq!(
                    without_times(messages),
                    without_times(&plain["0"]),
                    "rank {rank} of {name}"
                );
            }
        }
    }
}
