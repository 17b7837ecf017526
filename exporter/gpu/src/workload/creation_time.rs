//! The creation time of a process.

use std::{fs, path::Path};

use jiff::{SignedDuration, Timestamp};

/// Returns the creation time of the process with this folder in `/proc`, in ISO 8601: the time of the boot (`btime` in
/// `/proc/stat`), and the clock ticks between it and the start of the process (`proc_pid_stat(5)`, field 22).
pub(super) fn creation_time(proc: &Path, folder: &Path) -> Option<String> {
    let process = fs::read_to_string(folder.join("stat")).ok()?;
    // The second field is the command in parentheses, which can contain spaces and parentheses.
    let (_, fields) = process.rsplit_once(')')?;
    let ticks: i64 = fields.split_whitespace().nth(22 - 3)?.parse().ok()?;
    let system = fs::read_to_string(proc.join("stat")).ok()?;
    let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
    let boot = Timestamp::from_second(boot.trim().parse().ok()?).ok()?;
    let ticks_per_second = i64::try_from(rustix::param::clock_ticks_per_second()).ok()?;
    let millis = ticks.checked_mul(1000)?.checked_div(ticks_per_second)?;
    let time = boot.checked_add(SignedDuration::from_millis(millis)).ok()?;
    Some(time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn creation_time_counts_from_the_boot() {
        let proc = tempfile::tempdir().unwrap();
        let folder = proc.path().join("7");
        fs::create_dir(&folder).unwrap();
        fs::write(
            proc.path().join("stat"),
            "cpu 1 2 3\nbtime 1795262400\nprocesses 9\n",
        )
        .unwrap();
        let ticks = 5 * rustix::param::clock_ticks_per_second() / 2;
        let stat = format!("7 (a (b) c) S 1 7 7 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 {ticks} 1000 10\n");
        fs::write(folder.join("stat"), stat).unwrap();
        let time = creation_time(proc.path(), &folder);
        assert_eq!(time.as_deref(), Some("2026-11-21T12:00:02.5Z"));
        fs::write(folder.join("stat"), "7 (a").unwrap();
        assert_eq!(creation_time(proc.path(), &folder), None);
    }
}
