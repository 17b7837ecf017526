//! A simulated job with its page, requests to it, and OTLP files as a program with an SDK writes them.

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, TcpStream},
};

use pulsetrain_tests::{Folder, Process, command, free_port, wait_until};
use serde_json::{Value, json};

/// A running `pulsetrain demo` with its page.
pub(crate) struct Demo {
    pub(crate) port: u16,
    process: Process,
    folder: Folder,
}

/// A response to a request.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Demo {
    /// Starts a demo and waits until its page shows a step.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_on(free_port(), arguments)
    }

    /// As [`start`](Self::start), on this port.
    fn start_on(port: u16, arguments: &[&str]) -> Self {
        let folder = Folder::new();
        let mut demo = command(["demo", "--listen"]);
        demo.arg(format!("127.0.0.1:{port}"))
            .arg("--out")
            .arg(folder.path("out"))
            .args(arguments);
        let process = Process::start("pulsetrain demo", &mut demo);
        let demo = Self {
            port,
            process,
            folder,
        };
        wait_until("the page shows a step", || {
            demo.run().is_some_and(|run| run["step"].is_number())
        });
        demo
    }

    /// Stops the demo and starts another one on the same port.
    pub(crate) fn restart(self, arguments: &[&str]) -> Self {
        let Self {
            port,
            process,
            folder,
        } = self;
        process.interrupt();
        process.wait_for_end();
        drop(folder);
        Self::start_on(port, arguments)
    }

    /// Returns the first run of the page.
    pub(crate) fn run(&self) -> Option<Value> {
        let overview = try_get(self.port, "/api/overview", "")?;
        overview.json()["runs"].get(0).cloned()
    }
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the answer is text")
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the answer is JSON")
    }

    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find_map(|(key, value)| key.eq_ignore_ascii_case(name).then_some(value))
    }
}

/// Returns the response to `GET path` with these header lines, each with a CRLF at its end.
#[track_caller]
pub(crate) fn get(port: u16, path: &str, headers: &str) -> Answer {
    try_get(port, path, headers).expect("the page answers")
}

/// As [`get`]; `None` if nothing listens.
pub(crate) fn try_get(port: u16, path: &str, headers: &str) -> Option<Answer> {
    let host = if headers.to_lowercase().contains("host:") {
        ""
    } else {
        "Host: localhost\r\n"
    };
    ask(port, &format!("GET {path} HTTP/1.0\r\n{host}{headers}\r\n"))
}

/// Returns the response to a raw request.
pub(crate) fn ask(port: u16, request: &str) -> Option<Answer> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok()?;
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    Some(Answer {
        status: head.get(9..12)?.parse().ok()?,
        body: bytes.split_off(end + 4),
        head,
    })
}

/// A stream of updates.
pub(crate) struct Updates(BufReader<TcpStream>);

impl Updates {
    pub(crate) fn open(port: u16, query: &str) -> Self {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the page listens");
        write!(stream, "GET /events?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("the page reads");
        Self(BufReader::new(stream))
    }

    /// Returns the next update of a kind.
    pub(crate) fn next(&mut self, wanted: &str) -> Value {
        let mut kind = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(
                self.0.read_line(&mut line).expect("the stream continues"),
                0,
                "the stream has ended"
            );
            if let Some(name) = line.strip_prefix("event: ") {
                name.trim().clone_into(&mut kind);
            } else if let Some(data) = line.strip_prefix("data: ")
                && kind == wanted
            {
                return serde_json::from_str(data).expect("an update is JSON");
            }
        }
    }
}

/// Returns OTLP/JSON lines: a run with `steps` steps, ten per second, with the loss of each step from `loss`.
pub(crate) fn run_of(id: &str, steps: u64, loss: impl Fn(u64) -> f64) -> String {
    const START: u64 = 1_795_000_000_000_000_000;
    let points = |value: &dyn Fn(u64) -> Value| -> Vec<Value> {
        let point = |step: u64| json!({"timeUnixNano": (START + step * 100_000_000).to_string(), "asDouble": value(step)});
        (0..steps).map(point).collect()
    };
    let number = |value: f64| {
        if value.is_finite() {
            json!(value)
        } else {
            json!("NaN")
        }
    };
    let metrics = [
        ("train.global_step", points(&|step| json!(step as f64))),
        ("train.loss", points(&|step| number(loss(step)))),
        (
            "train.grad_norm",
            points(&|step| number(1.0 + (step % 17) as f64 / 20.0)),
        ),
        ("train.learning_rate", points(&|_| json!(1e-4))),
    ];
    let metrics = metrics.map(|(name, points)| json!({"name": name, "gauge": {"dataPoints": points}}));
    let message = json!({"resourceMetrics": [{
        "resource": {"attributes": [
            {"key": "train.run.id", "value": {"stringValue": id}},
            {"key": "train.run.name", "value": {"stringValue": format!("run {id}")}},
        ]},
        "scopeMetrics": [{"metrics": metrics}],
    }]});
    let mut line = String::new();
    let _ = writeln!(line, "{message}");
    line
}

/// Returns OTLP/JSON lines: a run of two ranks. Rank 0 reports a loss of 1 for `steps` steps and ends; rank 1 reports a loss of
/// 2 for twice the number of steps.
pub(crate) fn run_that_loses_rank_0(id: &str, steps: u64) -> String {
    let of_rank = |rank: u64, steps: u64| {
        let lines = run_of(id, steps, |_| (rank + 1) as f64);
        let mut message: Value = serde_json::from_str(&lines).expect("a line is JSON");
        let resource = &mut message["resourceMetrics"][0]["resource"];
        let attributes = resource["attributes"].as_array_mut().expect("attributes");
        attributes.push(json!({"key": "train.rank", "value": {"intValue": rank}}));
        message
    };
    let mut end = of_rank(0, steps);
    let metrics = end["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array_mut();
    for metric in metrics.expect("metrics") {
        let points = metric["gauge"]["dataPoints"].as_array_mut().expect("points");
        let mut last = points.pop().expect("a point");
        // DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK of metrics.proto.
        last["flags"] = 1.into();
        *points = vec![last];
    }
    format!("{}\n{end}\n{}\n", of_rank(0, steps), of_rank(1, 2 * steps))
}

/// Returns OTLP/JSON lines: a run with its step number and open verdicts with long texts, which are in every update of the run.
pub(crate) fn run_with_verdicts(id: &str, verdicts: u64) -> String {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let resource = json!({"attributes": [text("train.run.id", id)]});
    let long = "x".repeat(400);
    let verdict = |number: u64| {
        json!({
            "timeUnixNano": (1_795_000_001_000_000_000 + number).to_string(),
            "eventName": "train.verdict",
            "severityNumber": 17,
            "body": {"stringValue": long},
            "attributes": [
                text("train.verdict.kind", "straggler"),
                text("train.verdict.subject", &format!("rank {number} {long}")),
                text("train.verdict.state", "open"),
            ],
        })
    };
    let records: Vec<Value> = (0..verdicts).map(verdict).collect();
    let logs = json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]});
    format!("{}{logs}\n", run_of(id, 2, |_| 1.0))
}

/// Text that would run a script if the page used it as HTML, end a string or a line of a script, or reverse the text that
/// follows.
pub(crate) const HOSTILE: &str = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>\";window.hacked=1;'\u{2028}\u{202e}abc";

/// Returns OTLP/JSON lines: a run whose id, name, verdict and label are [`HOSTILE`].
pub(crate) fn hostile_run() -> String {
    let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    let resource = json!({"attributes": [text("train.run.id", HOSTILE), text("train.run.name", HOSTILE)]});
    let time = "1795000001000000000";
    let point = |second: i32| {
        json!({
            "timeUnixNano": format!("179500000{second}000000000"),
            "asDouble": second,
            "attributes": [text("own.label", HOSTILE)],
        })
    };
    let gauge = json!({"dataPoints": [point(1), point(2), point(3)]});
    let metrics = json!({"resourceMetrics": [{
        "resource": resource,
        "scopeMetrics": [{"metrics": [{"name": "train.loss", "gauge": gauge}, {"name": HOSTILE, "gauge": gauge}]}],
    }]});
    let verdict = json!({
        "timeUnixNano": time,
        "eventName": "train.verdict",
        "severityNumber": 17,
        "body": {"stringValue": HOSTILE},
        "attributes": [
            text("train.verdict.kind", "loss_spike"),
            text("train.verdict.subject", HOSTILE),
            text("train.verdict.state", "open"),
        ],
    });
    let logs = json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [verdict]}]}]});
    let steps = run_of(HOSTILE, 20, |step| step as f64);
    format!("{steps}{metrics}\n{logs}\n")
}
