//! A finished run, and the expected results in Prometheus.

use std::path::PathBuf;

use pulsetrain_tests::{Folder, Prometheus, SurogateRun, SurogateWriter, corpus, surogate_records};
use serde_json::Value;

/// The configuration of a Prometheus that accepts old samples.
pub(crate) const WINDOW: &str = "storage: {tsdb: {out_of_order_time_window: 3650d}}\n";

/// 2026-11-21T00:00:00Z in Unix milliseconds.
const START: u64 = 1_795_219_200_000;
/// The time between two records, in milliseconds.
const PACE: u64 = 1_234;
/// The step with a NaN loss.
const NAN_STEP: u64 = 7;

/// A finished run in a log.
pub(crate) struct Run {
    pub(crate) log: PathBuf,
    /// The end time of each step in Unix milliseconds, and its loss.
    pub(crate) losses: Vec<(u64, f64)>,
}

impl Run {
    /// Writes the records of a real log with times at a realistic pace; one loss is NaN.
    pub(crate) fn finished(folder: &Folder) -> Self {
        let log = folder.path("training.json");
        let mut writer = SurogateWriter::create(&log);
        let mut losses = Vec::new();
        for (place, record) in surogate_records(&corpus("surogate/training_dense.json"))
            .iter()
            .enumerate()
        {
            let millis = PACE * place as u64;
            let (minutes, seconds) = (millis / 60_000, millis / 1000 % 60);
            let time = format!(
                "2026-11-21 00:{minutes:02}:{seconds:02}.{:03}000000",
                millis % 1000
            );
            let at = record.find("2026-11-21 ").expect("a record has a time");
            let mut record = format!("{}{time}{}", &record[..at], &record[at + time.len()..]);
            let fields: Value = serde_json::from_str(&record).expect("a record is JSON");
            if fields["log"] == "step" {
                let mut loss = fields["loss"].as_f64().expect("a loss is a number");
                if fields["step"] == NAN_STEP {
                    record = record.replace(&format!("\"loss\": {}", fields["loss"]), "\"loss\": \"nan\"");
                    loss = f64::NAN;
                }
                losses.push((START + millis, loss));
            }
            writer.append(&record);
        }
        assert!(losses.len() == 30 && losses.iter().filter(|(_, loss)| loss.is_nan()).count() == 1);
        Self { log, losses }
    }

    /// Writes the log of a run with current times, so that Prometheus has current samples.
    pub(crate) fn of_now(folder: &Folder) -> PathBuf {
        let log = folder.path("now.json");
        SurogateRun::begin_now(&log).write(&mut fastrand::Rng::with_seed(1), 2);
        log
    }

    /// Panics unless Prometheus has exactly the losses of the run, each at its own time: as stored samples, and as results of a
    /// range query at that time.
    pub(crate) fn expect_losses(&self, prometheus: &Prometheus) {
        let stored = prometheus.stored("train_loss", self.end_seconds());
        assert_eq!(stored.len(), 1, "one series: {stored:?}");
        let shown = |losses: &[(u64, f64)]| format!("{losses:?}");
        assert_eq!(shown(&stored[0]), shown(&self.losses));
        for (millis, loss) in &self.losses {
            let time = format!("{}.{:03}", millis / 1000, millis % 1000);
            let answer = prometheus.range("train_loss", &time, &time, "1");
            assert_eq!(answer.len(), 1, "{time}");
            assert_eq!(shown(&answer[0]), shown(&[(*millis, *loss)]));
        }
    }

    /// Returns a time after the run, less than an hour from its start, in Unix seconds.
    pub(crate) fn end_seconds(&self) -> u64 {
        START / 1000 + 3_000
    }
}
