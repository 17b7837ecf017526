//! A rank of an attempt of a run, and the resource of its telemetry.

use std::sync::Arc;

/// The id of a rank inside one stage. It is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RankId(pub(crate) u32);

/// A rank of an attempt of a run. A new attempt is another rank with another [`RankId`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankInfo {
    /// The id inside this stage.
    pub(crate) id: RankId,
    /// `train.run.id`.
    pub(crate) run: Arc<str>,
    /// `train.attempt`, or 0.
    pub(crate) attempt: i64,
    /// `train.rank`, or 0.
    pub(crate) rank: i64,
    /// `train.world_size`.
    pub(crate) world_size: Option<i64>,
    /// `host.name`.
    pub(crate) host: Option<Arc<str>>,
    /// The encoded `Resource` message of its first telemetry.
    pub(crate) resource: Arc<[u8]>,
}
