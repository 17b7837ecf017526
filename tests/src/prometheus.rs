//! A real Prometheus: scrapes its targets, receives OTLP, and responds to queries.

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Process, free_port,
    http::{answers_ok, encoded, push_otlp, request},
};

/// A running Prometheus that scrapes every second.
#[derive(Debug)]
pub struct Prometheus {
    _process: Process,
    _folder: TempDir,
    _data: Option<TempDir>,
    port: u16,
}

impl Prometheus {
    /// Starts `program` and waits until it is ready. `targets` are its scrape targets, with name and address; every series of a
    /// target has the target's name as the label `via`. Labels that a page sets are kept.
    pub fn start(program: &Path, targets: &[(&str, String)], promoted: &[&str]) -> Self {
        Self::start_with(program, &configuration(targets, promoted, true))
    }

    /// As [`start`](Self::start), with another scrape interval than a second, which is also the scrape timeout: on a busy
    /// machine a large page may need more than a second.
    pub fn start_with_interval(program: &Path, targets: &[(&str, String)], interval: &str) -> Self {
        let interval = format!("scrape_interval: {interval}");
        let configuration = configuration(targets, &[], true).replacen("scrape_interval: 1s", &interval, 1);
        Self::start_with(program, &configuration)
    }

    /// As [`start`](Self::start), without native histograms: it then requests the text format, with unescaped names.
    pub fn start_without_native_histograms(program: &Path, targets: &[(&str, String)]) -> Self {
        Self::start_with(program, &configuration(targets, &[], false))
    }

    /// As [`start`](Self::start), without names in UTF-8: it requests dots as underscores, as older versions do.
    pub fn start_without_utf8(program: &Path, targets: &[(&str, String)]) -> Self {
        let legacy = "global: {metric_name_validation_scheme: legacy, ";
        let configuration = configuration(targets, &[], false).replacen("global: {", legacy, 1);
        Self::start_with(program, &configuration)
    }

    /// Starts it with a configuration and with the experimental OpenMetrics 2.0.
    pub fn start_configured(program: &Path, configuration: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let data = folder.path().join("data");
        Self::start_in(
            program,
            &data,
            configuration,
            free_port(),
            &["--enable-feature=openmetrics2"],
        )
        .keeping(folder)
    }

    /// Starts it on the blocks in `data`, with additional lines of configuration; it scrapes nothing and keeps old samples.
    pub fn start_on(program: &Path, data: &Path, configuration: &str) -> Self {
        Self::start_in(program, data, configuration, free_port(), &[])
    }

    /// As [`start_on`](Self::start_on), at a port, and with another lookback delta: the default of five minutes is too long if
    /// rules are evaluated in scaled time.
    pub fn start_in_short_time(
        program: &Path,
        data: &Path,
        configuration: &str,
        port: u16,
        lookback: &str,
    ) -> Self {
        let lookback = format!("--query.lookback-delta={lookback}");
        Self::start_in(program, data, configuration, port, &[&lookback])
    }

    fn start_with(program: &Path, configuration: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        Self::start_on(program, &folder.path().join("data"), configuration).keeping(folder)
    }

    fn keeping(self, data: TempDir) -> Self {
        Self {
            _data: Some(data),
            ..self
        }
    }

    fn start_in(program: &Path, data: &Path, configuration: &str, port: u16, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let config = folder.path().join("prometheus.yml");
        fs::write(&config, configuration).expect("a temporary file can be written");
        let mut process = Process::start(
            "prometheus",
            Command::new(program)
                .arg(format!("--config.file={}", config.display()))
                .arg(format!("--storage.tsdb.path={}", data.display()))
                .arg("--storage.tsdb.retention.time=100y")
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .args(flags)
                .args([
                    "--web.enable-otlp-receiver",
                    "--web.enable-remote-write-receiver",
                    "--enable-feature=exemplar-storage,native-histograms,otlp-deltatocumulative",
                ]),
        );
        process.wait_until_ready(|| answers_ok(port, "/-/ready"));
        Self {
            _process: process,
            _folder: folder,
            _data: None,
            port,
        }
    }

    /// Returns its base URL.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the result of an instant query: each series with its labels and `value`, or `histogram`.
    pub fn query(&self, expression: &str) -> Vec<Value> {
        self.api(&format!("query?query={}", encoded(expression)))["result"].take_list()
    }

    /// Returns the value of an instant query with at most one series; `None` if there is no series.
    pub fn value(&self, expression: &str) -> Option<f64> {
        let result = self.query(expression);
        assert!(result.len() <= 1, "{expression} gives {result:?}");
        let text = result.first()?["value"][1].as_str()?.replace("Inf", "inf");
        Some(text.parse().expect("a sample is a number"))
    }

    /// Returns the stored samples of the hour before `seconds`: for each series, the times in milliseconds and the values.
    pub fn stored(&self, selector: &str, seconds: u64) -> Vec<Vec<(u64, f64)>> {
        let expression = encoded(&format!("{selector}[1h]"));
        samples(&self.api(&format!("query?query={expression}&time={seconds}")))
    }

    /// Returns the result of a range query, with arguments in seconds: for each series, the times in milliseconds and the
    /// values.
    pub fn range(&self, expression: &str, start: &str, end: &str, step: &str) -> Vec<Vec<(u64, f64)>> {
        samples(&Value::from_iter([(
            "result",
            self.query_range(expression, start, end, step),
        )]))
    }

    /// Returns the result of a range query: each series with its labels and `values`, `histograms`, or both.
    pub fn query_range(&self, expression: &str, start: &str, end: &str, step: &str) -> Vec<Value> {
        let expression = encoded(expression);
        let path = format!("query_range?query={expression}&start={start}&end={end}&step={step}");
        self.api(&path)["result"].take_list()
    }

    /// As [`value`](Self::value), at a time in Unix seconds.
    pub fn value_at(&self, expression: &str, seconds: u64) -> Option<f64> {
        let answer = self.api(&format!("query?query={}&time={seconds}", encoded(expression)));
        let text = answer["result"][0]["value"][1].as_str()?.replace("Inf", "inf");
        Some(text.parse().expect("a sample is a number"))
    }

    /// Returns all series that match, as maps of labels.
    pub fn series(&self, selector: &str) -> Vec<Value> {
        self.api(&format!("series?match[]={}", encoded(selector)))
            .take_list()
    }

    /// As [`series`](Self::series), for series with a sample since a time in Unix seconds.
    pub fn series_since(&self, selector: &str, seconds: u64) -> Vec<Value> {
        self.api(&format!("series?match[]={}&start={seconds}", encoded(selector)))
            .take_list()
    }

    /// Returns the error of the last scrape of each target; empty if it succeeded.
    pub fn scrape_errors(&self) -> Vec<String> {
        let targets = self.api("targets?state=active")["activeTargets"].take_list();
        let error = |target: &Value| target["lastError"].as_str().unwrap_or_default().to_owned();
        targets.iter().map(error).collect()
    }

    /// Returns the number of series in memory, including those of the last hours that have ended.
    pub fn head_series(&self) -> u64 {
        let status = self.api("status/tsdb");
        let count = status["headStats"]["numSeries"].as_u64();
        count.expect("Prometheus counts its series")
    }

    /// Returns the exemplars of a query over all time.
    pub fn exemplars(&self, expression: &str) -> Vec<Value> {
        let range = "start=0&end=9999999999";
        self.api(&format!("query_exemplars?query={}&{range}", encoded(expression)))
            .take_list()
    }

    /// Returns its scrape targets: job, health (`up`, `down`, `unknown`) and the error of the last scrape.
    pub fn targets(&self) -> Vec<(String, String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let target = |target: &Value| {
            (
                text(&target["labels"]["job"]),
                text(&target["health"]),
                text(&target["lastError"]),
            )
        };
        let active = self.api("targets?state=active")["activeTargets"].take_list();
        active.iter().map(target).collect()
    }

    /// Sends OTLP metrics; panics unless everything is accepted.
    pub fn push(&self, otlp: &[u8]) {
        push_otlp(self.port, "/api/v1/otlp/v1/metrics", "", otlp);
    }

    fn api(&self, path: &str) -> Value {
        let path = format!("/api/v1/{path}");
        let (_, body) = request(self.port, "GET", &path, "", &[]).expect("Prometheus answers");
        let mut answer: Value = serde_json::from_slice(&body).expect("Prometheus answers in JSON");
        assert_eq!(answer["status"], "success", "{path}: {answer}");
        answer["data"].take()
    }
}

/// Returns the times in milliseconds and the values of each series of a response.
fn samples(answer: &Value) -> Vec<Vec<(u64, f64)>> {
    let number = |value: &Value| {
        let text = value.as_str().expect("a value is text").replace("Inf", "inf");
        text.parse().expect("a value is a number")
    };
    let sample = |pair: &Value| {
        let seconds = pair[0].as_f64().expect("a time is a number");
        ((seconds * 1000.0).round() as u64, number(&pair[1]))
    };
    let series = |series: &Value| series["values"].take_list().iter().map(sample).collect();
    answer["result"].take_list().iter().map(series).collect()
}

/// Runs promtool with these arguments and then these paths; `program` is the Prometheus of the same build.
pub fn promtool(program: &Path, arguments: &[&str], paths: &[&Path]) -> Output {
    Command::new(program.with_file_name("promtool"))
        .args(arguments)
        .args(paths)
        .output()
        .expect("promtool can be started")
}

/// Runs `promtool check metrics` on a page; `program` is the Prometheus of the same build.
pub fn promtool_check(program: &Path, page: &[u8]) -> Output {
    let mut promtool = Command::new(program.with_file_name("promtool"))
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool can be started");
    let mut input = promtool.stdin.take().expect("invariant: the input is piped");
    input.write_all(page).expect("promtool reads");
    drop(input);
    promtool.wait_with_output().expect("promtool ends")
}

/// Extracts a list from a response.
trait TakeList {
    fn take_list(&self) -> Vec<Value>;
}

impl TakeList for Value {
    fn take_list(&self) -> Vec<Value> {
        self.as_array().cloned().unwrap_or_default()
    }
}

fn configuration(targets: &[(&str, String)], promoted: &[&str], native: bool) -> String {
    let mut text = format!(
        "global: {{scrape_interval: 1s, scrape_native_histograms: {native}}}\n\
         otlp: {{promote_resource_attributes: [{}]}}\nscrape_configs:\n",
        promoted.join(", ")
    );
    for (name, address) in targets {
        text.push_str(&format!(
            "- job_name: {name}\n  honor_labels: true\n  static_configs: [{{targets: ['{address}'], labels: {{via: {name}}}}}]\n"
        ));
    }
    text
}
