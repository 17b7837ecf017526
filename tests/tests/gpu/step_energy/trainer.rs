//! Trainers as the agent sees them: a process on a GPU with the environment variables of its launcher, and a log that grows.

use std::{
    fmt::Write,
    path::Path,
    process::{Child, Command, Stdio},
};

use pulsetrain_tests::{FakeNvml, SurogateWriter, surogate_time, unix_nanos, wait_until};

/// An idle process of a run, which is killed when it is dropped.
pub(crate) struct OnGpu(Child);

impl OnGpu {
    /// Starts a process with the environment variables of a rank of a run.
    pub(crate) fn of_run(run: &str, rank: u32, world_size: u32) -> Self {
        let child = Command::new("sleep")
            .arg("300")
            .env("PULSETRAIN_RUN_ID", run)
            .env("RANK", rank.to_string())
            .env("LOCAL_RANK", rank.to_string())
            .env("WORLD_SIZE", world_size.to_string())
            .stdin(Stdio::null())
            .spawn();
        Self(child.expect("sleep can be started"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for OnGpu {
    fn drop(&mut self) {
        // Both calls fail only if the process has already exited.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns changes to a scenario that put these processes on its GPUs, one list per GPU.
pub(crate) fn on_gpus(gpus: &[&[&OnGpu]]) -> String {
    let mut each = String::new();
    for (gpu, processes) in gpus.iter().enumerate() {
        let listed: Vec<_> = processes
            .iter()
            .map(|process| format!("{{pid: {}, memory_bytes: 1073741824}}", process.pid()))
            .collect();
        // Writing into a String cannot fail.
        let _ = write!(each, "\"{gpu}\": {{processes: [{}]}}, ", listed.join(", "));
    }
    format!("gpus: {{count: {}, each: {{{each}}}}}", gpus.len())
}

/// Writes the steps of one run between these seconds of the scenario, each after its end, into each of these logs; every log
/// gets a step a millisecond later than the previous log.
pub(crate) fn log_steps(driver: &FakeNvml, logs: &[&Path], borders: &[f64]) {
    let mut logs: Vec<_> = logs.iter().map(|path| SurogateWriter::create(path)).collect();
    for (number, pair) in borders.windows(2).enumerate() {
        let end = driver.unix_nanos(pair[1]);
        wait_until("the step is over", || unix_nanos() >= end);
        let millis = ((pair[1] - pair[0]) * 1000.0).round();
        for (late, log) in (0_u64..).zip(&mut logs) {
            log.append(&record(number, end + late * 1_000_000, millis));
        }
    }
}

pub(crate) fn record(step: usize, end_unix_nanos: u64, millis: f64) -> String {
    let end = surogate_time(end_unix_nanos);
    format!(
        "{{\"log\": \"step\", \"time\": \"{end}\", \"step\": {step}, \"epoch\": 0.5, \"step_tokens\": 16384, \
         \"duration_ms\": {millis}, \"norm\": 1.5, \"loss\": 2.5, \"lr\": 2e-05, \"phase\": \"converging\"}}"
    )
}
