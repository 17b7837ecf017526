//! The run, rank and host of a resource, with bounded texts.

use std::sync::Arc;

use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, KeyValue, Repeated},
};
use pulsetrain_run::RunOrigin;
use pulsetrain_semconv::Attribute;

use super::super::{
    PageRejection,
    events::bounded,
    history::History,
    rejected::MAX_RANKS,
    run::{RunDescription, RunHistory},
};

/// The description of a resource.
#[derive(Debug)]
pub(super) struct Origin {
    /// The id of the run, or of a program that reports no run id. It may be empty.
    id: Box<str>,
    has_run_id: bool,
    pub(super) rank: Option<i64>,
    pub(super) host: Box<str>,
    local_rank: Option<i64>,
    pub(super) attempt: Option<i64>,
    about: RunDescription,
}

impl Origin {
    pub(super) fn from_attributes(attributes: Repeated<'_, KeyValue<'_>>) -> Result<Self, WireError> {
        let mut origin = RunOrigin::default();
        origin.read(attributes)?;
        let text = |text: Option<&Arc<str>>| text.map(|text| bounded(text)).unwrap_or_default();
        Ok(Self {
            id: text(origin.id()),
            has_run_id: origin.run_id.is_some(),
            rank: origin.rank,
            host: text(origin.host.as_ref()),
            local_rank: origin.local_rank,
            attempt: origin.attempt,
            about: RunDescription {
                name: text(origin.run_name.as_ref()),
                service: text(origin.service.as_ref()),
                framework: text(origin.framework.as_ref()),
                world_size: origin.world_size,
                ..RunDescription::default()
            },
        })
    }

    /// Returns the run, or `None` if the telemetry belongs to no run. A resource without a run id is a run if
    /// `is_training`, or if it was one before.
    ///
    /// # Errors
    /// The run or the rank is beyond the limit.
    pub(super) fn run<'h>(
        &self,
        history: &'h mut History,
        is_training: bool,
        now_millis: i64,
    ) -> Result<Option<&'h mut RunHistory>, PageRejection> {
        let id = self.run_id();
        if id.is_empty() || (!self.has_run_id && !is_training && !history.runs.contains_key(id)) {
            return Ok(None);
        }
        let run = history.run(id, now_millis)?;
        if self.rank.is_some() && !run.members.contains_key(&self.rank) && run.ranks() >= MAX_RANKS {
            return Err(PageRejection::Ranks);
        }
        run.arrived_millis = now_millis;
        let about = &mut run.about;
        for (known, new) in [
            (&mut about.name, &self.about.name),
            (&mut about.service, &self.about.service),
            (&mut about.framework, &self.about.framework),
        ] {
            if !new.is_empty() && known != new {
                *known = new.clone();
            }
        }
        about.world_size = self.about.world_size.max(about.world_size);
        about.attempt = about.attempt.max(self.attempt.unwrap_or(0));
        let member = run.member(self.rank);
        if member.host != self.host {
            member.host = self.host.clone();
        }
        member.local_rank = self.local_rank.or(member.local_rank);
        Ok(Some(run))
    }

    /// Returns the id of the run, or of a program that reports no run id. It may be empty.
    pub(super) fn run_id(&self) -> &str {
        &self.id
    }

    /// Returns whether the resource has a run id.
    pub(super) fn has_run_id(&self) -> bool {
        self.has_run_id
    }

    pub(super) fn attempt(&self) -> i64 {
        self.attempt.unwrap_or(0)
    }
}

/// Returns the value of an attribute.
pub(super) fn find<'a>(
    attributes: &Repeated<'a, KeyValue<'a>>,
    wanted: &Attribute,
) -> Result<Option<AnyValue<'a>>, WireError> {
    for pair in attributes.iter() {
        let pair = pair?;
        if pair.key == *wanted.name {
            return Ok(pair.value);
        }
    }
    Ok(None)
}
