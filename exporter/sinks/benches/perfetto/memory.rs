//! What a conversion of 4 GB takes of memory, with the settings of the program: of the mapper by itself, which is given messages
//! of 512 spans as they are made, and of the program, which reads each kind of input from a pipe.

mod cases;

use std::{
    env,
    ffi::OsStr,
    fs,
    io::{BufWriter, Write},
    process::{Command, Stdio},
};

use nix::{
    sys::resource::{UsageWho, getrusage},
    time::ClockId,
};
use pulsetrain_otlp::{Signal, frames};
use pulsetrain_sinks::{PerfettoConfig, PerfettoMapper};

use self::cases::{BYTES, CASES, Case};
use crate::{cpu_secs, secs_of};

/// The mapper by itself, with the input that `only` names or with the first.
pub(crate) fn measure(only: Option<&str>) {
    let case = CASES
        .iter()
        .find(|case| Some(case.name) == only)
        .unwrap_or(&CASES[0]);
    println!("cargo bench -p pulsetrain-sinks --bench perfetto -- --memory");
    let mut mapper = PerfettoMapper::new(PerfettoConfig::default());
    let (mut bytes, mut secs) = (0, 0.0);
    for message in case.messages() {
        if bytes >= BYTES {
            break;
        }
        let start = cpu_secs();
        bytes += message.len();
        mapper.add(Signal::Traces, message).unwrap();
        secs += cpu_secs() - start;
    }
    let start = cpu_secs();
    let (trace, summary) = mapper.write(tempfile::tempfile().unwrap()).unwrap();
    secs += cpu_secs() - start;
    println!(
        "{}: {bytes} bytes of protobuf, {} spans -> {} bytes of trace; {} bytes through temporary files; {:.0} s of CPU, {:.0} MB/s",
        case.name,
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

/// The program, as it is run, with the input that `only` names, or with each in turn: from a process of its own,
/// which has no other child.
pub(crate) fn measure_program(program: &OsStr, only: Option<&str>) {
    if let Some(case) = CASES.iter().find(|case| Some(case.name) == only) {
        return measure_case(program, *case);
    }
    println!("cargo bench -p pulsetrain-sinks --bench perfetto -- --memory-of target/release/pulsetrain");
    for case in CASES {
        let own = Command::new(env::current_exe().unwrap())
            .arg("--memory-of")
            .arg(program)
            .arg(case.name)
            .status();
        assert!(own.unwrap().success(), "{}", case.name);
    }
}

fn measure_case(program: &OsStr, case: Case) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("spans.pftrace");
    let start = secs_of(ClockId::CLOCK_MONOTONIC);
    let mut child = Command::new(program)
        .args(["convert", "--json", "-", "-o"])
        .arg(&trace)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (spans, bytes) = write_input(case, child.stdin.take().unwrap());
    let output = child.wait_with_output().unwrap();
    let secs = secs_of(ClockId::CLOCK_MONOTONIC) - start;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let summary: serde_json::Value = serde_json::from_str(&said).unwrap();
    let mapped = &summary["mapped"];
    assert_eq!(mapped["spans"], spans);
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let cpu = used.user_time() + used.system_time();
    println!(
        "{}: {bytes} bytes, {spans} spans -> {} bytes of trace, {} lanes; {} bytes through temporary files; \
         {secs:.0} s, {} s of CPU; peak resident memory {} kB",
        case.name,
        trace.metadata().unwrap().len(),
        mapped["lanes"],
        mapped["spilled_bytes"],
        cpu.tv_sec(),
        used.max_rss()
    );
}

/// Writes the input, and says how many spans and bytes it has.
fn write_input(case: Case, to: impl Write) -> (u64, usize) {
    let mut to = BufWriter::with_capacity(1 << 20, to);
    let (mut spans, mut bytes, mut frame) = (0, 0, Vec::new());
    for message in case.messages() {
        if bytes >= BYTES {
            break;
        }
        frame.clear();
        if case.is_text {
            frames::append_json_line(Signal::Traces, &message, &mut frame).unwrap();
        } else {
            frames::append_binary(&message, &mut frame).unwrap();
        }
        let limits = pulsetrain_otlp::limits::Limits::default();
        spans += pulsetrain_otlp::limits::check(Signal::Traces, &message, &limits)
            .unwrap()
            .items;
        bytes += frame.len();
        to.write_all(&frame).unwrap();
    }
    to.flush().unwrap();
    (spans, bytes)
}
