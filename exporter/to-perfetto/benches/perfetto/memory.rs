//! The memory for a conversion of 4 GB, with the settings of the program: of the mapper alone, with generated messages of 512
//! spans, and of the program, which reads each kind of input from a pipe.

mod cases;
mod table;

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::{BufWriter, Write},
    path::Path,
    process::{Child, Command, Stdio},
};

use nix::{
    sys::resource::{UsageWho, getrusage},
    time::ClockId,
};
use pulsetrain_otlp::{Signal, frames};
use pulsetrain_to_perfetto::{PerfettoConfig, PerfettoMapper};

use self::cases::{CASES, Case, Form, bytes_wanted};
pub(crate) use self::table::print as print_table;
use crate::{cpu_secs, secs_of};

/// The beginning of a JSON document.
const DOCUMENT: &[u8] = b"{\"resourceSpans\":[";

/// Measures the mapper alone, with the input that `only` names or with the first one.
pub(crate) fn measure(only: Option<&str>) {
    let case = CASES
        .iter()
        .find(|case| Some(case.name) == only)
        .unwrap_or(&CASES[0]);
    println!("cargo bench -p pulsetrain-convert --bench perfetto -- --memory");
    let mut mapper = PerfettoMapper::new(PerfettoConfig::default());
    let wanted = bytes_wanted();
    let (mut bytes, mut secs) = (0, 0.0);
    for message in case.messages() {
        if bytes >= wanted {
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

/// Measures the program with the input that the second argument names, or with each in turn. Each measurement is a separate
/// process, which has no other child. The third and fourth argument are the direction and the folder for such a process.
pub(crate) fn measure_program(arguments: &[OsString]) {
    let text = |place: usize| arguments.get(place).and_then(|argument| argument.to_str());
    let program = arguments[0].as_os_str();
    let only = text(1);
    if let (Some(way), Some(folder)) = (text(2), arguments.get(3)) {
        let case = CASES.iter().find(|case| Some(case.name) == only).unwrap();
        return match way {
            "there" => go_there(program, *case, Path::new(folder)),
            _ => go_back(program, *case, Path::new(folder)),
        };
    }
    println!("cargo bench -p pulsetrain-convert --bench perfetto -- --memory-of target/release/pulsetrain");
    for case in CASES
        .iter()
        .filter(|case| only.is_none_or(|only| only == case.name))
    {
        let folder = tempfile::tempdir().unwrap();
        for way in ["there", "back"].iter().take(1 + usize::from(case.and_back)) {
            let own = Command::new(env::current_exe().unwrap())
                .arg("--memory-of")
                .arg(program)
                .args([case.name, way])
                .arg(folder.path())
                .status();
            assert!(own.unwrap().success(), "{} {way}", case.name);
        }
    }
}

const TRACE: &str = "spans.pftrace";

fn go_there(program: &OsStr, case: Case, folder: &Path) {
    let trace = folder.join(TRACE);
    let start = secs_of(ClockId::CLOCK_MONOTONIC);
    let attributes = if case.and_back { "full" } else { "lean" };
    let mut child = Command::new(program)
        .args(["convert", "--json", "--attributes", attributes, "-", "-o"])
        .arg(&trace)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (spans, bytes) = write_input(case, child.stdin.take().unwrap());
    let summary = end(child);
    let mapped = &summary["mapped"];
    assert_eq!(mapped["spans"], spans);
    println!(
        "{}: {bytes} bytes, {spans} spans -> {} bytes of trace, {} lanes; {} bytes through temporary files; {}",
        case.name,
        trace.metadata().unwrap().len(),
        mapped["lanes"],
        mapped["spilled_bytes"],
        used(start, bytes as u64)
    );
}

fn go_back(program: &OsStr, case: Case, folder: &Path) {
    let (trace, back) = (folder.join(TRACE), folder.join("back.binpb"));
    let start = secs_of(ClockId::CLOCK_MONOTONIC);
    let child = Command::new(program)
        .args(["convert", "--json", "-o"])
        .args([&back, &trace])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let summary = end(child);
    let bytes = back.metadata().unwrap().len();
    println!(
        "{}: {} bytes of trace -> {bytes} bytes; {} bytes through temporary files; {}",
        case.name,
        trace.metadata().unwrap().len(),
        summary["inputs"][0]["spilled_bytes"],
        used(start, bytes)
    );
}

/// Returns the summary of the program, which must succeed.
fn end(child: Child) -> serde_json::Value {
    let output = child.wait_with_output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    serde_json::from_str(&log).unwrap()
}

/// Formats the resources that the only child used since `start` for a number of bytes of OTLP.
fn used(start: f64, bytes: u64) -> String {
    let secs = secs_of(ClockId::CLOCK_MONOTONIC) - start;
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let cpu = used.user_time() + used.system_time();
    let cpu = cpu.tv_sec() as f64 + cpu.tv_usec() as f64 / 1e6;
    format!(
        "{secs:.0} s, {cpu:.1} s of CPU, {:.0} MB/s of OTLP; peak resident memory {} kB",
        bytes as f64 / cpu / 1e6,
        used.max_rss()
    )
}

/// Writes the input, and returns the number of its spans and of its uncompressed bytes.
fn write_input(case: Case, to: impl Write) -> (u64, usize) {
    let wanted = bytes_wanted();
    match case.form {
        Form::Gzip => {
            let mut to = flate2::write::GzEncoder::new(to, flate2::Compression::fast());
            let written = write_plain(case, wanted, &mut to);
            to.finish().unwrap();
            written
        }
        Form::Zstd => {
            let mut to = zstd::Encoder::new(to, 1).unwrap();
            let written = write_plain(case, wanted, &mut to);
            to.finish().unwrap();
            written
        }
        Form::Binary | Form::Lines | Form::Document => write_plain(case, wanted, to),
    }
}

fn write_plain(case: Case, wanted: usize, to: impl Write) -> (u64, usize) {
    let mut to = BufWriter::with_capacity(1 << 20, to);
    let (mut spans, mut bytes, mut frame) = (0, 0, Vec::new());
    for message in case.messages() {
        if bytes >= wanted {
            break;
        }
        frame.clear();
        match case.form {
            Form::Lines => frames::append_json_line(Signal::Traces, &message, &mut frame).unwrap(),
            Form::Document => {
                frames::append_json_line(Signal::Traces, &message, &mut frame).unwrap();
                let element = frame.strip_prefix(DOCUMENT).unwrap();
                let element = element.strip_suffix(b"]}\n").unwrap();
                let between = if bytes == 0 { DOCUMENT } else { b",\n" };
                frame = [between, element].concat();
            }
            Form::Binary | Form::Gzip | Form::Zstd => frames::append_binary(&message, &mut frame).unwrap(),
        }
        let limits = pulsetrain_otlp::limits::Limits::default();
        spans += pulsetrain_otlp::limits::check(Signal::Traces, &message, &limits)
            .unwrap()
            .items;
        bytes += frame.len();
        to.write_all(&frame).unwrap();
    }
    if case.form == Form::Document {
        to.write_all(b"]}\n").unwrap();
    }
    to.flush().unwrap();
    (spans, bytes)
}
