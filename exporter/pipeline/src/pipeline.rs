//! The pipeline: built from sinks, started, observed through its ledger, drained within a deadline.
//!
//! Every sink has a lane of its own (`lane`); lanes are added and removed while batches pass.

use std::{sync::Arc, time::Duration};

use tokio::runtime::Handle;

use crate::{
    BoxFuture, Door, LaneConfig, Ledger, PipelineConfig, Requirement, Sink, SinkChanges, SinkCounts,
    SinkRoute, Stage, clock,
    disk::DiskQueue,
    lane::Lane,
    ledger::Account,
    stage::{StageSlot, StageTask},
};

/// A pipeline before its start.
#[derive(Default)]
pub struct PipelineBuilder {
    config: PipelineConfig,
    sinks: Vec<(Box<dyn Sink>, Requirement, Option<LaneConfig>)>,
    stages: Vec<Box<dyn Stage>>,
}

/// A running pipeline. Dropped without a drain, it stops at once and counts what was inside as abandoned.
#[derive(Debug)]
pub struct Pipeline {
    config: PipelineConfig,
    door: Door,
    ledger: Ledger,
    lanes: Vec<Lane>,
    stage: Option<StageTask>,
}

/// How one sink ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkReport {
    /// The last counts; nothing is queued any more.
    pub counts: SinkCounts,
    /// Whether the sink could write out what it held. An error names what may be lost although it is counted as delivered.
    pub finished: Result<(), String>,
}

impl PipelineBuilder {
    /// Replaces the default configuration.
    #[must_use]
    pub fn config(self, config: impl Into<PipelineConfig>) -> Self {
        Self {
            config: config.into(),
            ..self
        }
    }

    /// Adds a required sink; the order is the order in the ledger.
    #[must_use]
    pub fn sink(self, sink: Box<dyn Sink>) -> Self {
        self.sink_as(sink, Requirement::Required)
    }

    /// Adds a sink; the order is the order in the ledger.
    #[must_use]
    pub fn sink_as(mut self, sink: Box<dyn Sink>, requirement: Requirement) -> Self {
        self.sinks.push((sink, requirement, None));
        self
    }

    /// As [`sink_as`](Self::sink_as), with settings of its own instead of those of [`PipelineConfig::lane`].
    #[must_use]
    pub fn sink_with(mut self, sink: Box<dyn Sink>, requirement: Requirement, lane: LaneConfig) -> Self {
        self.sinks.push((sink, requirement, Some(lane)));
        self
    }

    /// Adds a stage between the sources and the sinks, after the stages that were added before: it sees what they add.
    #[must_use]
    pub fn stage(mut self, stage: Box<dyn Stage>) -> Self {
        self.stages.push(stage);
        self
    }

    /// Starts a worker for every sink.
    ///
    /// # Panics
    /// When it is called outside a tokio runtime.
    pub fn start(self) -> (Pipeline, Door) {
        let Self {
            config,
            sinks,
            stages,
        } = self;
        let mut pipeline = Pipeline {
            config,
            door: Door::new(Handle::current()),
            ledger: Ledger::default(),
            lanes: Vec::new(),
            stage: None,
        };
        for (sink, requirement, lane) in sinks {
            let config = lane.unwrap_or_else(|| pipeline.config.lane.clone());
            let lane = Lane::start(sink, requirement, config, pipeline.config.finish_grace);
            pipeline.lanes.push(lane);
        }
        pipeline.publish();
        let door = pipeline.begin(stages);
        (pipeline, door)
    }
}

impl Pipeline {
    /// A pipeline without sinks yet, with the default configuration.
    pub fn builder() -> PipelineBuilder {
        PipelineBuilder::default()
    }

    /// The ledger, to be read at any time; a clone outlives the pipeline.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the handle that makes several changes of sinks one change: a batch reaches the sinks from before all of them, or
    /// those from after all of them.
    pub fn changes(&self) -> SinkChanges {
        self.door.changes()
    }

    /// Adds a sink with the settings of [`PipelineConfig::lane`], which gets every batch from now on; it is the last in the
    /// ledger.
    ///
    /// # Panics
    /// When it is called outside a tokio runtime.
    pub fn add_sink(&mut self, sink: Box<dyn Sink>, requirement: Requirement) {
        let config = self.config.lane.clone();
        let lane = Lane::start(sink, requirement, config, self.config.finish_grace);
        self.lanes.push(lane);
        self.publish();
    }

    /// Adds the queue of a sink of this name, which [`open_sink`](Self::open_sink) hands over later. It is the last in the
    /// ledger. A sink of the same name is removed in the same step, so that every batch reaches one of the two. It has this
    /// long for what is queued; the rest goes to the new queue, and its report is returned. A queue that is expected already
    /// with the same route and settings stays, with all that it holds.
    ///
    /// # Panics
    /// When it is called outside a tokio runtime.
    pub fn expect_sink(
        &mut self,
        name: &str,
        route: SinkRoute,
        config: LaneConfig,
        within: Duration,
    ) -> Option<BoxFuture<'static, SinkReport>> {
        let is_expected = |lane: &Lane| lane.name() == name && lane.is_expecting(&route, &config);
        if self.lanes.iter().any(is_expected) {
            return None;
        }
        let replaced = self.remove_lane(name);
        let account = Account::new(name);
        // Before items move from the account of the replaced sink, whose sums would be seen to fall.
        let accounts = self.lanes.iter().map(Lane::account);
        self.ledger.keep(accounts.chain([Arc::clone(&account)]));
        let lane = Lane::expect(account, route, config, self.config.finish_grace);
        if let Some(replaced) = &replaced {
            replaced.replace_by(&lane);
        }
        self.lanes.push(lane);
        self.publish();
        replaced.map(|lane| leave(lane, within))
    }

    /// The disk queue of the sink of this name, if it has one: a sink that replaces it continues with the same queue.
    pub fn disk_queue(&self, name: &str) -> Option<DiskQueue> {
        let lane = self.lanes.iter().find(|lane| lane.name() == name)?;
        lane.disk().cloned()
    }

    /// Hands over a sink that is expected under its name.
    ///
    /// # Errors
    /// The sink, when none of its name is expected.
    pub fn open_sink(&mut self, sink: Box<dyn Sink>) -> Result<(), Box<dyn Sink>> {
        let expected = |lane: &&mut Lane| lane.name() == sink.name() && lane.is_unopened();
        match self.lanes.iter_mut().find(expected) {
            Some(lane) => {
                lane.open(sink);
                Ok(())
            }
            None => Err(sink),
        }
    }

    /// Removes the sink of this name: no batch goes to it any more, and it has this long for what is queued. The others
    /// go on undisturbed, and receipts do not count what it lost as cut off. `None` where there is no such sink; the first
    /// where there are several.
    pub fn remove_sink(&mut self, name: &str, within: Duration) -> Option<BoxFuture<'static, SinkReport>> {
        let lane = self.remove_lane(name)?;
        self.publish();
        Some(leave(lane, within))
    }

    /// Closes the door, lets the sinks take what is queued until the time is over, drops the rest and counts it.
    ///
    /// Ends at the latest when the time and then the grace for finishing are over, or as soon as nothing is queued and
    /// every sink has finished. A batch whose next attempt would come too late is dropped at once.
    pub async fn drain(mut self, within: Duration) -> Vec<SinkReport> {
        let deadline = clock::later(clock::now(), within);
        if let Some(stage) = self.stage.take() {
            stage.end(&self.door, deadline).await;
        }
        self.door.close();
        self.lanes.iter_mut().for_each(|lane| lane.close(deadline));
        let mut reports = Vec::new();
        for lane in std::mem::take(&mut self.lanes) {
            reports.push(lane.end().await);
        }
        reports
    }

    /// Starts the stages, where there are any, and gives the door that leads through them. Ours leads past them.
    fn begin(&mut self, stages: Vec<Box<dyn Stage>>) -> Door {
        if stages.is_empty() {
            return self.door.clone();
        }
        let slot = StageSlot::new(stages);
        let door = self.door.with_stage(slot.clone());
        self.stage = Some(StageTask::start(slot, self.door.clone()));
        door
    }

    fn remove_lane(&mut self, name: &str) -> Option<Lane> {
        let place = self.lanes.iter().position(|lane| lane.name() == name)?;
        Some(self.lanes.remove(place))
    }

    /// Lets door and ledger know which lanes there are.
    fn publish(&self) {
        self.ledger.keep(self.lanes.iter().map(Lane::account));
        self.door.set_queues(self.lanes.iter().map(Lane::queue));
    }
}

/// Drains a lane while the others run.
fn leave(mut lane: Lane, within: Duration) -> BoxFuture<'static, SinkReport> {
    lane.leave(clock::later(clock::now(), within));
    Box::pin(lane.end())
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.door.close();
        if let Some(stage) = &self.stage {
            stage.abandon(&self.door);
        }
    }
}
