//! The limit on open files and connections of the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most logs of a source that are kept open.
const OPEN_LOGS: u64 = 256;

/// Raises the soft limit to the hard one. The soft limit is low for programs that use `select`.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // A limit that stays as it is only closes logs earlier.
    let _ = setrlimit(Resource::Nofile, raised);
}

/// Returns how many logs of a source may be kept open: a quarter of the limit, so that listeners and checkpoints can be opened.
pub(crate) fn open_logs() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(OPEN_LOGS, |limit| (limit / 4).clamp(1, OPEN_LOGS)) as usize
}
