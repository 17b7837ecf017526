//! The CPU time of each thread of this process, and its memory, as the kernel counts them.

use std::{collections::BTreeMap, fs, io};

/// The CPU time in nanoseconds by thread name.
pub(crate) struct Cost(BTreeMap<String, u64>);

impl Cost {
    /// Reads the CPU time of all threads so far.
    pub(crate) fn now() -> io::Result<Self> {
        let mut taken = BTreeMap::new();
        for task in fs::read_dir("/proc/self/task")? {
            let task = task?.path();
            let name = fs::read_to_string(task.join("comm"))?.trim().to_owned();
            // "nanoseconds on the processor, nanoseconds waiting, turns"
            let stat = fs::read_to_string(task.join("schedstat"))?;
            let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok());
            *taken.entry(name).or_default() += nanos.unwrap_or_default();
        }
        Ok(Self(taken))
    }

    /// Returns the CPU time since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let taken = self.0.iter().map(|(name, nanos)| {
            let earlier = before.0.get(name).copied().unwrap_or_default();
            (name.clone(), nanos.saturating_sub(earlier))
        });
        Self(taken.collect())
    }

    /// Returns the share of a core that the threads with the name prefix `prefix` used.
    pub(crate) fn share(&self, prefix: &str, seconds: u64) -> f64 {
        let threads = self.0.iter().filter(|(name, _)| name.starts_with(prefix));
        threads.map(|(_, nanos)| nanos).sum::<u64>() as f64 / 1e9 / seconds as f64
    }

    /// Returns the share of a core that all threads used together.
    pub(crate) fn total(&self, seconds: u64) -> f64 {
        self.0.values().sum::<u64>() as f64 / 1e9 / seconds as f64
    }
}

/// Returns the resident memory of the process in bytes.
pub(crate) fn rss_bytes() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    Ok(kib.unwrap_or_default() * 1024)
}
