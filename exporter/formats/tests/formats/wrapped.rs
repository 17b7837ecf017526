//! Logs of every format in what containers, shippers, schedulers and launchers put around their lines: each wrapped log yields the
//! series of the bare one.

use std::collections::BTreeMap;

use pulsetrain_formats::{LogFormat, detect};
use serde_json::json;

use crate::imported::{Imported, head, recognised};

/// Formats of files that are no lines: nobody prints them.
const FILES: [&str; 8] = [
    "tensorboard",
    "wandb",
    "tunix-trace",
    "tunix-trace-v2",
    "surogate",
    "tunix-otel",
    "hf-trainer-state",
    "maxtext-goodput",
];

/// Wraps the line with a number.
type Wrap = fn(&str, usize) -> String;

/// The wrappers. The time is that of the line's number.
const WRAPPERS: &[(&str, Wrap)] = &[
    ("json-file of Docker", |line, at| {
        json!({"log": format!("{line}\n"), "stream": "stdout", "time": time(at)}).to_string()
    }),
    ("containerd", |line, at| format!("{} stdout F {line}", time(at))),
    ("containerd, split lines", |line, at| {
        let half = line.floor_char_boundary(line.len() / 2);
        let (first, second) = line.split_at(half);
        format!("{0} stdout P {first}\n{0} stdout F {second}", time(at))
    }),
    ("kubectl --timestamps", |line, at| format!("{} {line}", time(at))),
    ("kubectl --prefix", |line, _| format!("[pod/train-0/main] {line}")),
    ("stern", |line, _| format!("train-0 main {line}")),
    ("Docker Compose", |line, _| format!("app-1  | {line}")),
    ("journald, short", |line, at| {
        format!(
            "Nov 20 12:{:02}:{:02} gpu01 python[4711]: {line}",
            at / 60 % 60,
            at % 60
        )
    }),
    ("journald, ISO", |line, at| {
        format!(
            "2026-11-20T12:{:02}:{:02}+0000 gpu01 python[4711]: {line}",
            at / 60 % 60,
            at % 60
        )
    }),
    ("journald, JSON", |line, at| {
        let micros = 1_795_132_800_000_000_u64 + at as u64 * 1_000_000;
        json!({"MESSAGE": line, "__REALTIME_TIMESTAMP": micros.to_string(), "_PID": "4711", "PRIORITY": "6"})
            .to_string()
    }),
    ("syslog", |line, at| {
        format!("<34>1 {} gpu01 train 4711 - - {line}", time(at))
    }),
    ("cloud", |line, at| {
        json!({"insertId": at.to_string(), "jsonPayload": {"message": line}, "timestamp": time(at), "severity": "INFO"})
            .to_string()
    }),
    ("pdsh", |line, _| format!("worker-0: {line}")),
    ("srun --label", |line, _| format!("0: {line}")),
    ("mpirun", |line, _| format!("[1,0]<stdout>:{line}")),
    ("Ray", |line, _| {
        format!("(TrainWorker pid=4711, ip=10.0.0.1) {line}")
    }),
];

fn time(at: usize) -> String {
    format!("2026-11-20T12:{:02}:{:02}.123456789Z", at / 60 % 60, at % 60)
}

/// Wrappers without a time, in which records have the times of the bare log.
const TIMELESS: [&str; 7] = [
    "kubectl --prefix",
    "stern",
    "Docker Compose",
    "pdsh",
    "srun --label",
    "mpirun",
    "Ray",
];

/// Returns the values of each series, in order of their times, with the times if they are compared.
fn series(format: &LogFormat, bytes: &[u8], has_times: bool) -> BTreeMap<String, Vec<String>> {
    let imported = Imported::from_bytes(format, bytes);
    let mut series: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for point in &imported.points {
        series
            .entry(format!("{} {:?}", point.metric, point.attributes))
            .or_default()
            .push(match has_times {
                true => format!("{} at {}", point.value, point.time),
                false => point.value.to_string(),
            });
    }
    series
}

#[test]
fn wrapped_logs_yield_the_series_of_bare_ones() {
    let mut problems = Vec::new();
    let mut compared = 0;
    for (name, bytes, format) in recognised() {
        let Ok(text) = str::from_utf8(&bytes) else {
            continue;
        };
        // A progress bar overwrites its line, which a container does not show.
        if FILES.contains(&format.name) || bytes.len() > 100_000 || text.contains('\r') {
            continue;
        }
        let bare = [false, true].map(|has_times| series(format, &bytes, has_times));
        for (wrapper, wrap) in WRAPPERS {
            let wrapped: String = text
                .lines()
                .enumerate()
                .map(|(at, line)| wrap(line, at) + "\n")
                .collect();
            let found = detect(&name, head(wrapped.as_bytes())).map(|(format, _)| format.name);
            if found.as_ref().ok() != Some(&format.name) {
                problems.push(format!(
                    "{name} in {wrapper}: {} is detected as {found:?}",
                    format.name
                ));
                continue;
            }
            compared += 1;
            let has_times = TIMELESS.contains(wrapper);
            let expected = &bare[usize::from(has_times)];
            let actual = series(format, wrapped.as_bytes(), has_times);
            if actual != *expected {
                let first = expected
                    .iter()
                    .find(|(key, values)| actual.get(*key) != Some(*values));
                let key = first.map(|(key, _)| key.as_str());
                problems.push(format!(
                    "{name} ({}) in {wrapper}: {key:?}: {:?} instead of {:?}",
                    format.name,
                    key.and_then(|key| actual.get(key)),
                    first.map(|(_, values)| values)
                ));
            }
        }
    }
    assert!(
        problems.is_empty(),
        "{} of {compared} differ:\n{}",
        problems.len(),
        problems.join("\n")
    );
}
