//! Text logs as users have them: with zeros after a crash of the machine, with garbage, truncated, with messages of other
//! programs between the lines, with two runs in one file. Faults are reported with their position, the rest is parsed, and no
//! value is invented.

use std::fs;

use pulsetrain_tests::{Finished, Folder, Import, Items, corpus};

const LOGS: [&str; 10] = [
    "surogate/console_dense.log",
    "written/surogate_metrics.jsonl",
    "kempnerforge/dense.stdout",
    "maxtext/demo.stderr",
    "maxtext/demo.metrics.jsonl",
    "torchspec/perf.stderr",
    "tunix/colocated/stderr_absl.log",
    "hf-trainer/stdout.log",
    "written/torchtitan.log",
    "written/megatron.log",
];

#[test]
fn zero_bytes_and_garbage_between_lines_are_reported_and_lose_nothing() {
    for log in LOGS {
        let (bytes, expected) = (read(log), losses_of(log));
        let middle = after_line(&bytes, bytes.len() / 2);
        let (zeros, garbage) = (vec![0; 4096], [garbage(), b"\n".to_vec()].concat());
        for (bad, at) in [
            (&zeros, middle),
            (&zeros, 0),
            (&zeros, bytes.len()),
            (&garbage, middle),
        ] {
            let damaged = [&bytes[..at], bad, &bytes[at..]].concat();
            let (finished, losses) = import(&damaged);
            let context = format!("{} bytes at {at} of {log}: {}", bad.len(), finished.stderr);
            assert_eq!(losses, expected, "{context}");
            finished
                .expect_code(1)
                .expect_words(&["zero bytes in a text file", &format!("\"offset\":{at}")]);
        }
    }
}

#[test]
fn zero_bytes_in_a_line_lose_only_that_line() {
    for log in LOGS {
        let (bytes, expected) = (read(log), losses_of(log));
        let line = after_line(&bytes, bytes.len() / 2);
        let at = line + 12;
        let damaged = [&bytes[..at], &[0; 64], &bytes[at + 8..]].concat();
        let (finished, losses) = import(&damaged);
        assert!(
            losses.len() + 2 > expected.len(),
            "{log}: {} of {}",
            losses.len(),
            expected.len()
        );
        assert!(
            is_part(&losses, &expected),
            "{log}: {losses:?} and not {expected:?}"
        );
        finished
            .expect_code(1)
            .expect_words(&["64 zero bytes in a text file"]);
    }
}

#[test]
fn truncated_log_yields_a_prefix_of_its_losses() {
    for log in LOGS {
        let (bytes, expected) = (read(log), losses_of(log));
        for part in [4, 5, 6, 7] {
            let (finished, losses) = import(&bytes[..bytes.len() * part / 8]);
            assert!(
                expected.starts_with(&losses),
                "{log}: {losses:?} and not {expected:?}"
            );
            let words = ["incomplete_record", "none of the formats", "\"skipped\":{"];
            assert!(
                words.iter().any(|word| finished.stderr.contains(word)),
                "{}",
                finished.stderr
            );
        }
    }
}

#[test]
fn foreign_lines_and_a_second_run_lose_no_records() {
    for log in LOGS {
        let (bytes, expected) = (read(log), losses_of(log));
        let noise: &[u8] = b"Traceback (most recent call last):\nM\xfcnchen: \xe9t\xe9, \xc2\n";
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let noisy: Vec<u8> = lines.flat_map(|line| [noise, line].concat()).collect();
        let (finished, losses) = import(&noisy);
        assert_eq!(losses, expected, "{log}: {}", finished.stderr);
        // A file that only the trainer writes has no messages of other programs.
        finished.expect_code(i32::from(log.ends_with(".jsonl")));
        let (finished, losses) = import(&bytes.repeat(2));
        // Losses with the same time are adjacent.
        let twice = [&expected[..], &expected].concat();
        assert_eq!(losses.len(), twice.len(), "{log}: {}", finished.stderr);
        assert!(is_part(&losses, &twice), "{log}: {losses:?} and not {twice:?}");
        finished.expect_code(0);
    }
}

#[test]
fn decimal_comma_is_a_malformed_number() {
    for log in ["surogate/console_dense.log", "kempnerforge/dense.stdout"] {
        let text = String::from_utf8(read(log)).expect("it is text");
        let mut letters: Vec<char> = text.chars().collect();
        for at in 1..letters.len() - 1 {
            if letters[at] == '.' && letters[at - 1].is_ascii_digit() && letters[at + 1].is_ascii_digit() {
                letters[at] = ',';
            }
        }
        let (finished, losses) = import(letters.iter().collect::<String>().as_bytes());
        assert_eq!(losses, [""; 0], "{log}");
        finished
            .expect_code(1)
            .expect_words(&["malformed_record", "loss: expected a number such as 1234.5"]);
    }
}

#[test]
fn file_with_logs_of_two_formats_asks_for_the_format() {
    let both = [
        read("surogate/console_dense.log"),
        read("kempnerforge/dense.stdout"),
    ]
    .concat();
    let (finished, losses) = import(&both);
    assert_eq!(losses, [""; 0]);
    finished
        .expect_code(1)
        .expect_words(&["surogate-console", "kempnerforge", "--format"]);
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let named = Import::new(folder.file("train.log", &both))
        .arg("--format")
        .arg("kempnerforge")
        .to(&out)
        .run();
    named.expect_code(0);
    assert_eq!(shown(&Items::read(&out)), losses_of("kempnerforge/dense.stdout"));
}

/// Imports bytes; returns the process output and the losses.
fn import(bytes: &[u8]) -> (Finished, Vec<String>) {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let finished = Import::new(folder.file("train.log", bytes)).to(&out).run();
    let losses = if out.exists() {
        shown(&Items::read(&out))
    } else {
        Vec::new()
    };
    (finished, losses)
}

fn losses_of(log: &str) -> Vec<String> {
    let (finished, losses) = import(&read(log));
    finished.expect_code(0);
    assert!(losses.len() > 2, "{log} has losses");
    losses
}

/// Returns the losses as strings, because NaN is not equal to itself.
fn shown(items: &Items) -> Vec<String> {
    items
        .values("train.loss")
        .iter()
        .map(|(_, loss)| loss.to_string())
        .collect()
}

fn read(log: &str) -> Vec<u8> {
    fs::read(corpus(log)).expect("the corpus can be read")
}

/// Returns the offset of the next line.
fn after_line(bytes: &[u8], at: usize) -> usize {
    let end = bytes[at..].iter().position(|byte| *byte == b'\n');
    at + end.expect("lines follow") + 1
}

/// Returns bytes that are not valid text; the first is zero.
fn garbage() -> Vec<u8> {
    let byte = |n: u32| (n.wrapping_mul(2_654_435_761) >> 13) as u8;
    (0..5000).map(byte).collect()
}

/// Returns whether the multiset `complete` contains `part`. A line that has lost its rank prefix may be sent later.
fn is_part(part: &[String], complete: &[String]) -> bool {
    let mut rest = complete.to_vec();
    part.iter().all(|one| {
        let found = rest.iter().position(|other| other == one);
        found.map(|at| rest.swap_remove(at)).is_some()
    })
}
