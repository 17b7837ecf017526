//! A rank of an attempt of a run, and the resource that its telemetry has.

use std::sync::Arc;

/// Names a rank inside one stage for the life of the rank; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RankId(pub(crate) u32);

/// A rank of an attempt of a run. A new attempt is another rank with another [`RankId`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankInfo {
    /// The rank inside this stage.
    pub(crate) id: RankId,
    /// `train.run.id`.
    pub(crate) run: Arc<str>,
    /// `train.attempt`; 0 where the resource has none.
    pub(crate) attempt: i64,
    /// `train.rank`; 0 where the resource has none.
    pub(crate) rank: i64,
    /// `train.world_size`.
    pub(crate) world_size: Option<i64>,
    /// `host.name`.
    pub(crate) host: Option<Arc<str>>,
    /// The encoded `Resource` message as it came first.
    pub(crate) resource: Arc<[u8]>,
}
