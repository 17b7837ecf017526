//! What a conversion of 4 GB takes of memory, with the settings of the program: the input is made as it goes, in messages of 512
//! spans, and the trace is written to a file.

use std::fs;

use pulsetrain_otlp::Signal;
use pulsetrain_sinks::{PerfettoConfig, PerfettoMapper};

use crate::{cpu_secs, input};

const BYTES: usize = 4_000_000_000;
/// The steps that are made at once.
const STEPS: u64 = 256;

pub(crate) fn measure() {
    println!("cargo bench -p pulsetrain-sinks --bench perfetto -- --memory");
    let mut mapper = PerfettoMapper::new(PerfettoConfig::default());
    let (mut step, mut bytes, mut secs) = (0, 0, 0.0);
    while bytes < BYTES {
        let messages = input::messages(step..step + STEPS);
        step += STEPS;
        let start = cpu_secs();
        for message in messages {
            bytes += message.len();
            mapper.add(Signal::Traces, message).unwrap();
        }
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
