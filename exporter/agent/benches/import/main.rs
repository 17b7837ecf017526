//! Measures the import throughput of a Surogate log of 200 MB, compared with a naive importer over serde_json and prost.
//!
//! `cargo bench -p pulsetrain-agent --bench import` prints one table. A megabyte is a million bytes of the log. Each row is
//! the best of three rounds; "per core" divides by the processor time, so that threads do not make a row look faster.

#![expect(clippy::disallowed_methods, reason = "a bench measures real time")]

mod log;
mod naive;

use std::{
    error::Error,
    fs,
    io::{self, Write},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use pulsetrain_formats::{LogReader, ReadLimits, format_by_name};
use pulsetrain_record::{Counts, Recorder, Run};

const LOG_BYTES: usize = 200_000_000;
const ROUNDS: usize = 3;

/// The cost and the result of one import.
struct Measured {
    wall: Duration,
    processor: Duration,
    items: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "$ cargo bench -p pulsetrain-agent --bench import\n{}\n",
        machine()
    )?;
    writeln!(
        out,
        "{:<7} {:<42} {:>7} {:>14} {:>11} {:>9}",
        "log", "way", "MB/s", "MB/s per core", "items", "x naive"
    )?;
    for model in ["dense", "moe"] {
        let log = log::generate(&corpus(model), LOG_BYTES)?;
        let naive = best(|| in_process(|| naive::import(&log)))?;
        let parse = best(|| in_process(|| import(&log)))?;
        assert!(
            naive.items.abs_diff(parse.items) < parse.items / 100,
            "the naive importer makes {} items and not {}",
            naive.items,
            parse.items
        );
        let binary = best(|| import_by_the_binary(&log))?;
        for (way, measured) in [
            ("naive: serde_json::Value a line, prost", &naive),
            ("parse, record and encode, one thread", &parse),
            ("pulsetrain import --to x.binpb", &binary),
        ] {
            let megabytes = log.len() as f64 / 1e6;
            writeln!(
                out,
                "{model:<7} {way:<42} {:>7.0} {:>14.0} {:>11} {:>9.1}",
                megabytes / measured.wall.as_secs_f64(),
                megabytes / measured.processor.as_secs_f64(),
                measured.items,
                naive.processor.as_secs_f64() / measured.processor.as_secs_f64()
            )?;
        }
    }
    Ok(())
}

/// Runs the import in process: the part of the binary between the read of the file and the first queue.
fn import(log: &[u8]) -> u64 {
    /// The read size of the source.
    const CHUNK: usize = 1 << 20;
    let format = format_by_name("surogate").expect("invariant: the format is in the table");
    let mut bytes = 0;
    let mut recorder = Recorder::new(Run::default(), |encoded| bytes += encoded.bytes.len());
    let mut reader = LogReader::new(format, ReadLimits::default());
    for chunk in log.chunks(CHUNK) {
        reader.push(chunk, &mut recorder);
    }
    reader.finish(&mut recorder);
    let (counts, skipped) = recorder.finish();
    assert!(
        !skipped.has_losses(),
        "the log is complete: {:?}",
        skipped.problems()
    );
    assert!(bytes > log.len() / 2, "only {bytes} bytes came out");
    items(counts)
}

fn import_by_the_binary(log: &[u8]) -> Result<Measured, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (input, output) = (folder.path().join("training.json"), folder.path().join("x.binpb"));
    fs::write(&input, log)?;
    let before = processor(getrusage(UsageWho::RUSAGE_CHILDREN)?);
    let begun = Instant::now();
    let finished = Command::new(env!("CARGO_BIN_EXE_pulsetrain"))
        .args(["import", "--json", "--to"])
        .args([&output, &input])
        .stdin(Stdio::null())
        .output()?;
    let wall = begun.elapsed();
    let after = processor(getrusage(UsageWho::RUSAGE_CHILDREN)?);
    assert!(
        finished.status.success(),
        "{}",
        String::from_utf8_lossy(&finished.stderr)
    );
    let summary: serde_json::Value = serde_json::from_slice(&finished.stderr)?;
    Ok(Measured {
        wall,
        processor: after - before,
        items: summary["delivered"]
            .as_u64()
            .ok_or("the summary has the delivered counts")?,
    })
}

fn in_process(import: impl FnOnce() -> u64) -> Result<Measured, Box<dyn Error>> {
    let before = processor(getrusage(UsageWho::RUSAGE_SELF)?);
    let begun = Instant::now();
    let items = import();
    Ok(Measured {
        wall: begun.elapsed(),
        processor: processor(getrusage(UsageWho::RUSAGE_SELF)?) - before,
        items,
    })
}

fn best(mut measure: impl FnMut() -> Result<Measured, Box<dyn Error>>) -> Result<Measured, Box<dyn Error>> {
    let mut best = measure()?;
    for _ in 1..ROUNDS {
        let next = measure()?;
        best = if next.processor < best.processor {
            next
        } else {
            best
        };
    }
    Ok(best)
}

fn processor(usage: Usage) -> Duration {
    let time = |value: nix::sys::time::TimeVal| {
        Duration::from_micros((value.tv_sec() * 1_000_000 + value.tv_usec()) as u64)
    };
    time(usage.user_time()) + time(usage.system_time())
}

fn items(counts: Counts) -> u64 {
    counts.points + counts.spans + counts.events
}

fn corpus(model: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/corpus/surogate/training_{model}.json"))
}

/// Returns the name of the processor.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name"));
    model
        .map_or("unknown processor", |model| {
            model.trim_start_matches([' ', '\t', ':'])
        })
        .to_owned()
}
