//! A real Prometheus scrapes the agent, which follows a log that is written step by step.

use std::{collections::BTreeSet, fs, ops::RangeInclusive};

use pulsetrain_tests::{
    Answer, FakeEndpoint, Finished, Folder, Judge, Prometheus, command, corpus, free_port, promtool_check,
    some_or_return, wait_until,
};
use serde_json::Value;

use crate::prometheus::{
    following::{Agent, Following, Written},
    samples::samples,
};

/// Prometheus' timestamps are in milliseconds, and moved by up to two to make them regular.
const ROUNDED: f64 = 0.004;

/// A step is written after the page of the agent shows the previous one. A scrape thus stores the last step that was on the
/// page before the scrape, or one that was written before the end of the scrape: at most one step is in flight.
#[test]
fn agent_scrapes_have_the_latest_step_and_otlp_has_every_step() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let receiver = format!("  receiver:\n    otlp:\n      endpoint: {}\n", endpoint.url());
    let mut following = Following::start("", &receiver);
    let target = [("ours", following.agent().address())];
    let prometheus = Prometheus::start(&program, &target, &[]);
    let mut steps: Vec<Written> = Vec::new();
    wait_until("Prometheus has stored enough losses, numbers and others", || {
        // Every third loss is NaN, and all others are different.
        let loss = if steps.len() % 3 == 2 {
            f64::NAN
        } else {
            8.0 / (1.0 + steps.len() as f64)
        };
        steps.push(following.write_step(loss));
        let stored = samples(&prometheus, "train_loss[5m]");
        let odd = stored.iter().filter(|(_, loss)| loss.is_nan()).count();
        odd >= 3 && stored.len() - odd >= 7
    });
    assert_stored_are_the_last_before(&prometheus, &steps);

    let output = promtool_check(&program, following.agent().page().as_bytes());
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && printed.is_empty(), "{printed}");
    assert!(following.stop().success());
    let sent = endpoint.items_answered(&Answer::Accept);
    let sent: Vec<String> = sent
        .values("train.loss")
        .iter()
        .map(|(_, loss)| loss.to_string())
        .collect();
    let written: Vec<String> = steps.iter().map(|step| step.loss.to_string()).collect();
    assert_eq!(sent, written);
}

#[test]
fn doctor_finds_a_scrape_that_does_not_honor_labels() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let mut agent = Agent::new();
    fs::copy(corpus("surogate/training_dense.json"), agent.log()).expect("a temporary file can be written");
    agent.start("", "");
    let prometheus = |jobs: &str| {
        let data = Folder::new();
        let configuration = format!("global: {{scrape_interval: 1s}}\nscrape_configs:\n{jobs}");
        (Prometheus::start_on(&program, data.root(), &configuration), data)
    };
    let job = |honors: bool| {
        format!(
            "- job_name: pages\n  honor_labels: {honors}\n  static_configs: [{{targets: ['{}']}}]\n",
            agent.address()
        )
    };

    let (empty, _data) = prometheus("");
    let [_, found] = doctor(&empty.url());
    assert!(
        found.contains("/targets") && found.contains("no series"),
        "{found}"
    );
    let [level, found] = doctor(&format!("http://127.0.0.1:{}", free_port()));
    assert_eq!(level, "wrong");
    assert!(found.contains("http://localhost:9090"), "{found}");
    for (honors, expected) in [(true, "ok"), (false, "wrong")] {
        let (prometheus, _data) = prometheus(&job(honors));
        wait_until("Prometheus has the loss", || {
            !prometheus.query("train_loss").is_empty()
        });
        let [level, found] = doctor(&prometheus.url());
        assert_eq!(level, expected, "{found}");
        let fix = "honor_labels: true at job_name: pages";
        assert_eq!(found.contains(fix), !honors, "{found}");
    }
}

/// Returns the level of the finding of `doctor` for a Prometheus, and the finding.
fn doctor(url: &str) -> [String; 2] {
    let finished = Finished::run(&mut command(["doctor", "--json", "--prometheus", url]));
    let answer: Value = serde_json::from_str(&finished.stdout).expect("doctor prints JSON");
    let place = format!("Prometheus {url}");
    let findings = answer["findings"].as_array().expect("doctor lists findings");
    let mut ours = findings.iter().filter(|finding| finding["place"] == *place);
    let finding = ours.next().expect("doctor asks the Prometheus");
    assert!(ours.next().is_none(), "{answer}");
    let level = finding["level"].as_str().unwrap_or_default().to_owned();
    [level, finding.to_string()]
}

/// A Prometheus that scrapes text requests unescaped names. One that scrapes protobuf, for native histograms, does not.
#[test]
fn untranslated_metric_names_reach_prometheus_with_dots() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let mut agent = Agent::new();
    fs::copy(corpus("surogate/training_dense.json"), agent.log()).expect("a temporary file can be written");
    agent.start("      translation: no_translation\n", "");
    let target = [("ours", agent.address())];
    let prometheus = Prometheus::start_without_native_histograms(&program, &target);
    wait_until("Prometheus has the loss", || {
        prometheus.value("{\"train.loss\"}").is_some()
    });
    assert_eq!(
        prometheus.value("{\"train.loss\", \"train.run.name\"=\"demo\"}"),
        Some(2.0619023)
    );
    // In OpenMetrics, the samples of a counter always have this suffix.
    assert_eq!(prometheus.value("{\"train.tokens_total\"}"), Some(30.0 * 16384.0));
    // A client that does not request unescaped names gets names that it can parse.
    assert!(agent.page().contains("\ntrain_loss{"), "{}", agent.page());
    assert!(agent.stop().success());
}

/// The next run in the same log ends the previous one, without the wait for staleness.
#[test]
fn run_ends_immediately_when_a_restarted_trainer_truncates_its_log() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let mut following = Following::start("      stale_after: 1h\n", "");
    let target = [("ours", following.agent().address())];
    let prometheus = Prometheus::start(&program, &target, &[]);
    following.write_step(2.5);
    let runs = || {
        let of_run = |series: &Value| series["metric"]["train_run_id"].to_string();
        let all = prometheus.query("{train_run_id!=\"\",__name__!~\"target_info|pulsetrain_.*\"}");
        all.iter().map(of_run).collect::<BTreeSet<_>>()
    };
    wait_until("Prometheus has the run", || runs().len() == 1);
    let first = runs();
    following.restart();
    following.append_step(3.5);
    wait_until("Prometheus has the next run and no other", || {
        let now = runs();
        now.len() == 1 && now != first
    });
    let left = |run: &String| following.agent().page().contains(run.trim_matches('"'));
    assert!(!first.iter().any(left), "{}", following.agent().page());
    assert!(following.stop().success());
}

/// Runs that stop silently, as killed runs do, one after another.
#[test]
fn ended_runs_are_removed_from_the_metrics_page() {
    let mut following = Following::start("      stale_after: 1s\n", "");
    let of_runs = |page: &str| page.lines().any(|line| line.contains("train_run_id=\""));
    for run in 0..3 {
        following.write_step(f64::from(run));
        let agent = following.agent();
        assert!(of_runs(&agent.page()));
        let is_ours = |line: &str| line.contains("pulsetrain_") || line.contains("target_info");
        // On a busy machine a part of the run may come after its staleness timeout, and become stale again.
        wait_until("nothing of the run is left on the page", || {
            let page = agent.page();
            !of_runs(&page) && page.lines().all(is_ours)
        });
        following.restart();
    }
    assert!(following.stop().success());
}

fn assert_stored_are_the_last_before(prometheus: &Prometheus, steps: &[Written]) {
    let stored = samples(prometheus, "train_loss[5m]");
    let durations = samples(prometheus, "scrape_duration_seconds{via=\"ours\"}[5m]");
    let mut distinguishable_scrapes = 0;
    for (time, loss) in &stored {
        let of_scrape = durations.iter().find(|(other, _)| other == time);
        let (_, took) = of_scrape.expect("each scrape has a duration");
        let possible = steps_of_scrape(steps, *time, time + took);
        let is_one = |step: &Written| step.loss == *loss || (step.loss.is_nan() && loss.is_nan());
        assert!(
            steps[possible.clone()].iter().any(is_one),
            "{loss} at {time} is not one of the steps {possible:?}"
        );
        distinguishable_scrapes += usize::from(possible.end() - possible.start() <= 1);
    }
    assert!(
        2 * distinguishable_scrapes > stored.len(),
        "{distinguishable_scrapes} of {}",
        stored.len()
    );
}

/// Returns the range from the last step on the page before a scrape to the last step that was written before its end.
fn steps_of_scrape(steps: &[Written], begun: f64, ended: f64) -> RangeInclusive<usize> {
    let shown = steps.partition_point(|step| step.shown < begun - ROUNDED);
    let written = steps.partition_point(|step| step.begun < ended + ROUNDED);
    shown.saturating_sub(1)..=written - 1
}
