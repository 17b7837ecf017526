//! Measures the peak of this process's resident memory above its value at the start.

use std::fs;

/// The resident memory at the start, in kB.
pub(crate) struct Peak(u64);

impl Peak {
    /// Starts the measurement.
    pub(crate) fn begin() -> Self {
        fs::write("/proc/self/clear_refs", "5").unwrap();
        Self(status("VmRSS:"))
    }

    /// Returns the peak since the start, in MB.
    pub(crate) fn end(self) -> f64 {
        status("VmHWM:").saturating_sub(self.0) as f64 * 1024.0 / 1e6
    }
}

fn status(key: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
