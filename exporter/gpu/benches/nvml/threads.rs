//! What each thread of this process took of the processor, and what memory it has, as the kernel counts.

use std::{collections::BTreeMap, fs, io};

/// Nanoseconds on the processor by the name of the thread.
pub(crate) struct Cost(BTreeMap<String, u64>);

impl Cost {
    /// What was taken so far.
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

    /// What was taken since.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let taken = self.0.iter().map(|(name, nanos)| {
            let earlier = before.0.get(name).copied().unwrap_or_default();
            (name.clone(), nanos.saturating_sub(earlier))
        });
        Self(taken.collect())
    }

    /// The share of a core that the threads had whose names begin with `prefix`.
    pub(crate) fn share(&self, prefix: &str, seconds: u64) -> f64 {
        let threads = self.0.iter().filter(|(name, _)| name.starts_with(prefix));
        threads.map(|(_, nanos)| nanos).sum::<u64>() as f64 / 1e9 / seconds as f64
    }

    /// The share of a core that all threads had.
    pub(crate) fn total(&self, seconds: u64) -> f64 {
        self.0.values().sum::<u64>() as f64 / 1e9 / seconds as f64
    }
}

/// The memory that the process has.
pub(crate) fn rss_bytes() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    Ok(kib.unwrap_or_default() * 1024)
}
