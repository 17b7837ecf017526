//! Generates a long log: repeats the last ten steps of a short one and the lines between them, within one phase, with
//! other numbers. Records over several lines are omitted, because the naive importer reads line by line.

use std::{fs, io, path::Path};

/// A part of a record.
enum Part {
    /// Constant text.
    Text(String),
    /// The time of the record.
    Time,
    /// The step number.
    Step,
    /// A number, in the notation of the sample.
    Number(String),
}

/// Generates a log of about `size` bytes from the records of `sample`, the same at every call.
pub(crate) fn generate(sample: &Path, size: usize) -> io::Result<Vec<u8>> {
    let sample = fs::read_to_string(sample)?;
    let is_whole = |line: &&str| line.contains("{\"log\"") && line.trim_end_matches(',').ends_with('}');
    let records: Vec<&str> = sample.lines().filter(is_whole).collect();
    let is_gpu = |place: &usize| records[*place].contains("{\"log\": \"gpu\"");
    let settled = (0..records.len()).rev().filter(is_gpu).nth(1);
    let (head, body) = records.split_at(settled.unwrap_or_default());
    let body: Vec<Vec<Part>> = body
        .iter()
        .map(|record| parts(record.trim_end_matches(',')))
        .collect();
    let mut random = fastrand::Rng::with_seed(1);
    let mut log = format!("[\n{}", head.join("\n"));
    log.reserve(size);
    for step in 0.. {
        for record in &body {
            log.push_str(if log.ends_with(',') { "\n" } else { ",\n" });
            write(record, step, &mut random, &mut log);
        }
        if log.len() >= size {
            break;
        }
    }
    log.push_str("\n]\n");
    Ok(log.into_bytes())
}

fn parts(record: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut key = "";
    for piece in record.split_inclusive(": ") {
        let value_end = piece.find([',', '}', ']']).unwrap_or(piece.len());
        let (value, rest) = piece.split_at(value_end);
        match key {
            "" | "log" => parts.push(Part::Text(piece.to_owned())),
            "time" => parts.extend([Part::Time, Part::Text(rest.to_owned())]),
            "step" => parts.extend([Part::Step, Part::Text(rest.to_owned())]),
            _ if value.starts_with(|first: char| first.is_ascii_digit()) => {
                parts.extend([Part::Number(value.to_owned()), Part::Text(rest.to_owned())]);
            }
            _ => parts.push(Part::Text(piece.to_owned())),
        }
        key = piece.rsplit('"').nth(1).unwrap_or_default();
    }
    parts
}

fn write(record: &[Part], step: u64, random: &mut fastrand::Rng, log: &mut String) {
    for part in record {
        match part {
            Part::Text(text) => log.push_str(text),
            Part::Time => {
                let (hour, minute, second) = (step / 3_600 % 24, step / 60 % 60, step % 60);
                log.push_str(&format!(
                    "\"2026-11-21 {hour:02}:{minute:02}:{second:02}.{:09}\"",
                    random.u32(..1_000_000_000)
                ));
            }
            Part::Step => log.push_str(&step.to_string()),
            Part::Number(number) => vary(number, random, log),
        }
    }
}

/// Returns the number with random digits after the first: same length, same magnitude, same cost to parse.
fn vary(number: &str, random: &mut fastrand::Rng, log: &mut String) {
    let exponent = number.find('e').unwrap_or(number.len());
    for (place, digit) in number.char_indices() {
        let fixed = place == 0 || place > exponent || !digit.is_ascii_digit();
        log.push(if fixed {
            digit
        } else {
            char::from(b'0' + random.u8(..10))
        });
    }
}
