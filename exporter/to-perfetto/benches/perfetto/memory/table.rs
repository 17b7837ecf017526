//! The table of memory: many resources, many series, and files of 1 GB and 4 GB, each with three limits of `--memory`.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{BufWriter, Write},
    process::{Command, Stdio},
};

use nix::sys::resource::{UsageWho, getrusage};

use super::{
    cases::{CASES, bytes_wanted},
    end, write_plain,
};

/// The limits in MiB.
const BOUNDS: [u64; 3] = [8, 64, 128];

/// The memory that a conversion may use beyond its limit, in MiB.
const BEYOND: u64 = 64;

/// The inputs with the attributes that are drawn.
const ROWS: [(&str, Input, &str); 6] = [
    (
        "5,000 resources with a span each",
        Input::Lines(5_000, span),
        "lean",
    ),
    (
        "50,000 resources with a span each",
        Input::Lines(50_000, span),
        "lean",
    ),
    (
        "20,000 resources with a span and a log record each",
        Input::Lines(20_000, span_and_record),
        "lean",
    ),
    ("20,000 series", Input::Lines(20_000, series), "full"),
    ("spans, 1 GB", Input::Steps(1_000_000_000), "lean"),
    ("spans, 4 GB", Input::Steps(4_000_000_000), "lean"),
];

#[derive(Clone, Copy)]
enum Input {
    /// A number of objects of OTLP/JSON.
    Lines(u64, fn(u64) -> String),
    /// Steps of a training, with this size.
    Steps(usize),
}

/// Prints the table for a program. The second and the third argument are the row and the limit of one measurement, which runs
/// in a separate process: a process only knows the peak of all its children.
pub(crate) fn print(arguments: &[OsString]) {
    let program = arguments[0].as_os_str();
    let number = |place: usize| arguments.get(place)?.to_str()?.parse::<u64>().ok();
    if let (Some(row), Some(bound)) = (number(1), number(2)) {
        return println!("{}", peak_mib(program, row as usize, bound));
    }
    println!(
        "cargo bench -p pulsetrain-convert --bench perfetto -- --memory-table target/release/pulsetrain"
    );
    println!("peak resident memory in MiB; at most {BEYOND} MiB above the bound are allowed\n");
    print!("{:<54}", "input");
    BOUNDS
        .iter()
        .for_each(|bound| print!("{:>12}", format!("{bound} MiB")));
    println!();
    for (row, (name, input, attributes)) in ROWS.into_iter().enumerate() {
        if matches!(input, Input::Steps(bytes) if bytes > bytes_wanted()) {
            continue;
        }
        print!("{:<54}", format!("{name} ({attributes})"));
        for bound in BOUNDS {
            let own = Command::new(env::current_exe().unwrap())
                .arg("--memory-table")
                .arg(program)
                .args([row.to_string(), bound.to_string()])
                .output()
                .unwrap();
            let peak = String::from_utf8(own.stdout).unwrap();
            let peak: u64 = peak
                .trim()
                .parse()
                .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&own.stderr)));
            assert!(
                peak <= bound + BEYOND,
                "{name}: {peak} MiB with a bound of {bound} MiB"
            );
            print!("{peak:>12}");
            std::io::stdout().flush().unwrap();
        }
        println!();
    }
}

fn peak_mib(program: &OsStr, row: usize, bound: u64) -> u64 {
    let (_, input, attributes) = ROWS[row];
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(program)
        .args(["convert", "--json", "--attributes", attributes, "-", "-o"])
        .arg(folder.path().join("out.pftrace"))
        .args(["--memory", &format!("{bound}MiB")])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let to = child.stdin.take().unwrap();
    match input {
        Input::Lines(count, line) => {
            let mut to = BufWriter::new(to);
            (0..count).for_each(|number| writeln!(to, "{}", line(number)).unwrap());
        }
        Input::Steps(bytes) => drop(write_plain(CASES[0], bytes, to)),
    }
    end(child);
    getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as u64 / 1024
}

fn resource(number: u64) -> String {
    format!(
        r#"{{"attributes":[{{"key":"service.name","value":{{"stringValue":"web"}}}},{{"key":"service.instance.id","value":{{"stringValue":"pod-{number}"}}}}]}}"#
    )
}

fn time(number: u64) -> u64 {
    1_795_000_000_000_000_000 + number * 1_000
}

fn span(number: u64) -> String {
    format!(
        r#"{{"resourceSpans":[{{"resource":{},"scopeSpans":[{{"spans":[{{"traceId":"{:032x}","spanId":"{:016x}","name":"handle","startTimeUnixNano":"{}","endTimeUnixNano":"{}"}}]}}]}}]}}"#,
        resource(number),
        number + 1,
        number + 1,
        time(number),
        time(number) + 900
    )
}

fn span_and_record(number: u64) -> String {
    format!(
        "{}\n{{\"resourceLogs\":[{{\"resource\":{},\"scopeLogs\":[{{\"logRecords\":[{{\"timeUnixNano\":\"{}\",\"body\":{{\"stringValue\":\"hello\"}}}}]}}]}}]}}",
        span(number),
        resource(number),
        time(number)
    )
}

fn series(number: u64) -> String {
    format!(
        r#"{{"resourceMetrics":[{{"resource":{},"scopeMetrics":[{{"metrics":[{{"name":"m","gauge":{{"dataPoints":[{{"timeUnixNano":"{}","asDouble":0.5,"attributes":[{{"key":"k","value":{{"stringValue":"{number}"}}}}]}}]}}}}]}}]}}]}}"#,
        resource(0),
        time(number)
    )
}
