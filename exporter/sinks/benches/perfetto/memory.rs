//! What a conversion of 4 GB takes of memory, with the settings of the program: of the mapper by itself, which is given messages
//! of 512 spans as they are made, and of the program, which reads them from a file.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
    process::Command,
};

use nix::{
    sys::resource::{UsageWho, getrusage},
    time::ClockId,
};
use pulsetrain_otlp::{Signal, frames};
use pulsetrain_sinks::{PerfettoConfig, PerfettoMapper};

use crate::{cpu_secs, input, secs_of};

const BYTES: usize = 4_000_000_000;
/// The steps that are made at once.
const STEPS: u64 = 256;

/// Messages until they have as many bytes as are asked for.
fn messages() -> impl Iterator<Item = Vec<u8>> {
    let mut left = BYTES;
    (0..)
        .flat_map(|chunk| input::messages(chunk * STEPS..(chunk + 1) * STEPS))
        .take_while(move |message| {
            let before = left;
            left = left.saturating_sub(message.len());
            before > 0
        })
}

/// The mapper by itself.
pub(crate) fn measure() {
    println!("cargo bench -p pulsetrain-sinks --bench perfetto -- --memory");
    let mut mapper = PerfettoMapper::new(PerfettoConfig::default());
    let (mut bytes, mut secs) = (0, 0.0);
    for message in messages() {
        let start = cpu_secs();
        bytes += message.len();
        mapper.add(Signal::Traces, message).unwrap();
        secs += cpu_secs() - start;
    }
    let start = cpu_secs();
    let (trace, summary) = mapper.write(tempfile::tempfile().unwrap()).unwrap();
    secs += cpu_secs() - start;
    println!(
        "{bytes} bytes of protobuf, {} spans -> {} bytes of trace; {} bytes through temporary files; {:.0} s of CPU, {:.0} MB/s",
        summary.spans,
        trace.metadata().unwrap().len(),
        summary.spilled_bytes,
        secs,
        bytes as f64 / secs / 1e6
    );
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    println!("peak resident memory: {}", peak.split_once(':').unwrap().1.trim());
}

/// The program, as it is run; input and trace lie in a folder that is removed afterwards.
pub(crate) fn measure_program(program: &OsStr) {
    println!("cargo bench -p pulsetrain-sinks --bench perfetto -- --memory-of target/release/pulsetrain");
    let folder = tempfile::tempdir().unwrap();
    let (input, trace) = (
        folder.path().join("spans.binpb"),
        folder.path().join("spans.pftrace"),
    );
    write_input(&input);
    let start = secs_of(ClockId::CLOCK_MONOTONIC);
    let status = Command::new(program)
        .arg("convert")
        .arg(&input)
        .arg("-o")
        .arg(&trace)
        .status()
        .unwrap();
    let secs = secs_of(ClockId::CLOCK_MONOTONIC) - start;
    assert!(status.success(), "{status}");
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let cpu = used.user_time() + used.system_time();
    println!(
        "pulsetrain convert spans.binpb -o spans.pftrace: {} bytes -> {} bytes of trace; {secs:.0} s, {} s of CPU",
        input.metadata().unwrap().len(),
        trace.metadata().unwrap().len(),
        cpu.tv_sec()
    );
    println!("peak resident memory: {} kB", used.max_rss());
}

fn write_input(path: &Path) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    let mut frame = Vec::new();
    for message in messages() {
        frame.clear();
        frames::append_binary(&message, &mut frame).unwrap();
        file.write_all(&frame).unwrap();
    }
    file.flush().unwrap();
}
