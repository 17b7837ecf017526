//! Finds the parts of a configuration that are read only once, when the agent starts.

use crate::config::{Config, LimitsConfig};

/// Returns the keys of the changed parts that a reload cannot apply.
pub(super) fn needs_restart(old: &Config, new: &Config) -> Vec<&'static str> {
    // The drain limit is read at the end, so a reload can change it.
    let limits = |config: &Config| LimitsConfig {
        drain: new.limits.drain,
        ..config.limits.clone()
    };
    let parts = [
        ("derive", old.derive != new.derive),
        ("perfetto", old.perfetto != new.perfetto),
        ("limits other than limits.drain", limits(old) != limits(new)),
        (
            "telemetry.enabled",
            old.telemetry.enabled != new.telemetry.enabled,
        ),
        ("state_folder", old.state_folder != new.state_folder),
    ];
    let changed = parts.into_iter().filter(|(_, is_changed)| *is_changed);
    changed.map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::{Spanned, Time};

    #[test]
    fn reloadable_changes_need_no_restart() {
        let old = Config::default();
        let mut new = Config::default();
        new.limits.drain = Time(Duration::from_secs(77));
        new.telemetry.interval = Spanned::without_location(Time(Duration::from_secs(77)));
        new.health.enabled = false;
        assert_eq!(needs_restart(&old, &new), [""; 0]);
        new.limits.queue_batches = Spanned::without_location(3);
        new.telemetry.enabled = false;
        assert_eq!(
            needs_restart(&old, &new),
            ["limits other than limits.drain", "telemetry.enabled"]
        );
    }
}
