//! OTLP to Perfetto: the mapper, the lower bound for any conversion (`floor`) and a conversion with prost types (`plain`), in
//! one run, from protobuf and from JSON; and the size of the trace, compressed and uncompressed.
//!
//! The three are measured alternately, so that other load on the machine affects all alike. CPU time is that of the thread,
//! from the kernel.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints its table, and stops at what it does not expect"
)]

mod floor;
mod input;
mod memory;
mod plain;

use std::{ffi::OsString, hint::black_box, io::Write, path::Path};

use bytes::Bytes;
use nix::time::{ClockId, clock_gettime};
use pulsetrain_otlp::{Signal, frames::FrameReader, limits::Limits};
use pulsetrain_to_perfetto::{AttributePolicy, PerfettoConfig, PerfettoMapper};

use input::{Input, Values};

const SPANS: u64 = 200_000;
const ROUNDS: usize = 7;
const PROFILE_ROUNDS: usize = 60;

type Way<'a> = (&'static str, &'a dyn Fn(&mut Vec<u8>));

fn main() {
    if let Some(arguments) = program_arguments("--memory-of") {
        return memory::measure_program(&arguments);
    }
    if let Some(arguments) = program_arguments("--memory-table") {
        return memory::print_table(&arguments);
    }
    let mut arguments = std::env::args().skip_while(|argument| argument != "--memory");
    if arguments.next().is_some() {
        return memory::measure(arguments.next().as_deref());
    }
    println!("cargo bench -p pulsetrain-convert --bench perfetto");
    println!("one core, CPU time of the thread, best of {ROUNDS} rounds in turns\n");
    let mut arguments = std::env::args().skip_while(|argument| argument != "--profile");
    if let Some(what) = arguments.nth(1) {
        let rounds = arguments.next().and_then(|rounds| rounds.parse().ok());
        let unlike = arguments.next().is_some_and(|values| values == "unlike");
        let values = if unlike { Values::Unlike } else { Values::Repeating };
        return profile(
            &what,
            rounds.unwrap_or(PROFILE_ROUNDS),
            &Input::new(SPANS, values),
        );
    }
    let input = Input::new(SPANS, Values::Repeating);
    let messages: Vec<Bytes> = input.messages.iter().cloned().map(Bytes::from).collect();
    compare("attributes that repeat", &input, &messages);
    through_files(&messages, input.bytes(), input.spans);
    sizes(&messages, input.spans);
    let input = Input::new(SPANS, Values::Unlike);
    let messages: Vec<Bytes> = input.messages.iter().cloned().map(Bytes::from).collect();
    compare("attributes that never repeat", &input, &messages);
    sizes(&messages, input.spans);
}

/// Returns the arguments after an option. The first one is the path of a program. A relative path is relative to the
/// workspace, because Cargo starts benches in the folder of their crate.
fn program_arguments(option: &str) -> Option<Vec<OsString>> {
    let mut arguments = std::env::args_os().skip_while(|argument| argument != option);
    let program = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(arguments.nth(1)?);
    Some(std::iter::once(program.into()).chain(arguments).collect())
}

/// Compares the three conversions from both encodings.
fn compare(title: &str, input: &Input, messages: &[Bytes]) {
    let (spans, bytes, text) = (input.spans, input.bytes(), input.lines.len());
    println!(
        "{title}: {spans} spans with 5 attributes, 8 ranks; protobuf {bytes} bytes, {} a span; JSON {text} bytes, {}",
        bytes as u64 / spans,
        text as u64 / spans
    );
    let each = bytes_a_span(input, messages);
    let protobuf: [Way<'_>; 4] = [
        ("floor", &|out| floor::protobuf(&input.messages, each, out)),
        ("pulsetrain", &|out| {
            protobuf(messages, AttributePolicy::Lean, out);
        }),
        ("prost", &|out| plain::protobuf(&input.messages, out)),
        ("floor in any order", &|out| {
            floor::protobuf_in_any_order(&input.messages, each, out);
        }),
    ];
    table("protobuf -> Perfetto", bytes, spans, &protobuf);
    let json: [Way<'_>; 4] = [
        ("floor", &|out| floor::json(&input.lines, each, out)),
        ("pulsetrain", &|out| json(&input.lines, out)),
        ("prost, serde_json", &|out| plain::json(&input.lines, out)),
        ("every field read", &|out| {
            floor::fields_of_json(&input.lines, each, out);
        }),
    ];
    table("JSON -> Perfetto", text, spans, &json);
}

/// Returns the number of bytes per span in the trace.
fn bytes_a_span(input: &Input, messages: &[Bytes]) -> usize {
    let mut trace = Vec::new();
    protobuf(messages, AttributePolicy::Lean, &mut trace);
    trace.len().div_ceil(input.spans as usize)
}

fn protobuf(messages: &[Bytes], attributes: AttributePolicy, out: &mut Vec<u8>) {
    let mut mapper = mapper(attributes);
    for message in messages {
        mapper.add(Signal::Traces, message.clone()).unwrap();
    }
    mapper.write(out).unwrap();
}

/// Measures the mapper with a fraction of the memory that the spans need, so that all of them are spilled.
fn through_files(messages: &[Bytes], bytes: usize, spans: u64) {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = cpu_secs();
        let mut mapper = PerfettoMapper::new(PerfettoConfig {
            memory_bytes: bytes / 4,
            ..PerfettoConfig::default()
        });
        for message in messages {
            mapper.add(Signal::Traces, message.clone()).unwrap();
        }
        black_box(mapper.write(Vec::new()).unwrap());
        best = best.min(cpu_secs() - start);
    }
    println!(
        "protobuf -> Perfetto through temporary files, a quarter of the input in memory: {:.0} MB/s, {:.0} ns/span\n",
        bytes as f64 / best / 1e6,
        best / spans as f64 * 1e9
    );
}

/// Repeats the mapper from `protobuf` or `json`, only the decoding of JSON, or the `floor`, for a profiler.
fn profile(what: &str, rounds: usize, input: &Input) {
    let mut out = Vec::new();
    let mut best = f64::INFINITY;
    let messages: Vec<Bytes> = input.messages.iter().cloned().map(Bytes::from).collect();
    let each = bytes_a_span(input, &messages);
    for _ in 0..rounds {
        out.clear();
        let start = cpu_secs();
        match what {
            "json" => json(&input.lines, black_box(&mut out)),
            "decode" => decode(&input.lines),
            "any-order" => floor::protobuf_in_any_order(&input.messages, each, black_box(&mut out)),
            "floor" => floor::protobuf(&input.messages, each, black_box(&mut out)),
            _ => protobuf(&messages, AttributePolicy::Lean, black_box(&mut out)),
        }
        best = best.min(cpu_secs() - start);
    }
    println!("{what}: {:.0} ns/span", best / input.spans as f64 * 1e9);
}

fn decode(lines: &[u8]) {
    for frame in FrameReader::new(lines, Limits::default()) {
        black_box(frame.unwrap());
    }
}

fn json(lines: &[u8], out: &mut Vec<u8>) {
    let mut mapper = mapper(AttributePolicy::Lean);
    for frame in FrameReader::new(lines, Limits::default()) {
        let frame = frame.unwrap();
        mapper.add(frame.signal, frame.bytes).unwrap();
    }
    mapper.write(out).unwrap();
}

fn mapper(attributes: AttributePolicy) -> PerfettoMapper {
    PerfettoMapper::new(PerfettoConfig {
        attributes,
        ..PerfettoConfig::default()
    })
}

/// Measures implementations of the same work, the floor first, the mapper second and the plain one third, and prints the
/// results; a fourth one is another, higher lower bound.
fn table(title: &str, bytes: usize, spans: u64, ways: &[Way<'_>; 4]) {
    let mut best = [f64::INFINITY; 4];
    let mut out = Vec::new();
    let mut written = [0; 4];
    for _ in 0..ROUNDS {
        for (place, (_, work)) in ways.iter().enumerate() {
            out.clear();
            let start = cpu_secs();
            work(&mut out);
            best[place] = best[place].min(cpu_secs() - start);
            written[place] = black_box(&out).len();
        }
    }
    println!(
        "{title:<24} {:>8} {:>12} {:>9} {:>14}",
        "MB/s", "spans/s", "ns/span", "bytes written"
    );
    for ((name, _), (secs, written)) in ways.iter().zip(best.into_iter().zip(written)) {
        println!(
            "{name:<24} {:>8.0} {:>12.0} {:>9.0} {written:>14}",
            bytes as f64 / secs / 1e6,
            spans as f64 / secs,
            secs / spans as f64 * 1e9
        );
    }
    print!(
        "of the floor: {:.0} %; prost / ours {:.1}x",
        100.0 * best[0] / best[1],
        best[2] / best[1]
    );
    println!("; of \"{}\": {:.0} %\n", ways[3].0, 100.0 * best[3] / best[1]);
}

/// Prints the size of the trace for each policy, uncompressed and compressed.
fn sizes(messages: &[Bytes], spans: u64) {
    println!(
        "{:<24} {:>12} {:>12} {:>14} {:>14}",
        "size", "bytes", "a span", "gzip -1", "zstd -3"
    );
    let only = AttributePolicy::Only(Vec::new());
    for (name, policy) in [
        ("no attributes", only),
        ("lean", AttributePolicy::Lean),
        ("full", AttributePolicy::Full),
    ] {
        let mut trace = Vec::new();
        protobuf(messages, policy, &mut trace);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&trace).unwrap();
        println!(
            "{name:<24} {:>12} {:>12.1} {:>14} {:>14}",
            trace.len(),
            trace.len() as f64 / spans as f64,
            gzip.finish().unwrap().len(),
            zstd::encode_all(trace.as_slice(), 3).unwrap().len()
        );
    }
}

fn cpu_secs() -> f64 {
    secs_of(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn secs_of(clock: ClockId) -> f64 {
    let time = clock_gettime(clock).unwrap();
    time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9
}
