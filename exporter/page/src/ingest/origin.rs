//! The origin of telemetry: run, rank and host, from the attributes of the resource.

use std::borrow::Cow;

use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, KeyValue, Repeated, Resource},
};
use pulsetrain_semconv::{Attribute, attribute};

use super::super::{
    PageRejection,
    events::bounded,
    history::History,
    rejected::MAX_RANKS,
    run::{RunDescription, RunHistory},
};

/// The description of a resource.
#[derive(Debug, Default)]
pub(super) struct Origin {
    /// The id of the run, or an empty string.
    run: String,
    /// The id used instead, for a program that reports no run id.
    fallback_run_id: String,
    pub(super) rank: Option<i64>,
    pub(super) host: Box<str>,
    local_rank: Option<i64>,
    pub(super) attempt: Option<i64>,
    about: RunDescription,
}

impl Origin {
    pub(super) fn of(resource: Option<Resource<'_>>) -> Result<Self, WireError> {
        let mut origin = Self::default();
        let (mut instance, mut service) = (String::new(), String::new());
        for pair in resource.unwrap_or_default().attributes.iter() {
            let pair = pair?;
            let key = pair.key.to_str_lossy();
            let is = |attribute: &Attribute| key == attribute.name;
            let value = pair.value.unwrap_or_default();
            if is(&attribute::TRAIN_RUN_ID) {
                origin.run = bounded(&text(value)).into();
            } else if is(&attribute::TRAIN_RUN_NAME) {
                origin.about.name = bounded(&text(value));
            } else if is(&attribute::TRAIN_RANK) {
                origin.rank = integer(value);
            } else if is(&attribute::TRAIN_LOCAL_RANK) {
                origin.local_rank = integer(value);
            } else if is(&attribute::TRAIN_ATTEMPT) {
                origin.attempt = integer(value);
            } else if is(&attribute::TRAIN_WORLD_SIZE) {
                origin.about.world_size = integer(value);
            } else if is(&attribute::TRAIN_FRAMEWORK) {
                origin.about.framework = bounded(&text(value));
            } else if is(&attribute::HOST_NAME) {
                origin.host = bounded(&text(value));
            } else if is(&attribute::SERVICE_INSTANCE_ID) {
                instance = bounded(&text(value)).into();
            } else if is(&attribute::SERVICE_NAME) {
                service = bounded(&text(value)).into();
            }
        }
        origin.about.service = service.as_str().into();
        origin.fallback_run_id = if instance.is_empty() { service } else { instance };
        Ok(origin)
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
        if id.is_empty() || (self.run.is_empty() && !is_training && !history.runs.contains_key(id)) {
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

    /// Returns the id of the run, or the id used instead.
    pub(super) fn run_id(&self) -> &str {
        if self.run.is_empty() {
            &self.fallback_run_id
        } else {
            &self.run
        }
    }

    /// Returns whether the resource has a run id.
    pub(super) fn has_run_id(&self) -> bool {
        !self.run.is_empty()
    }

    pub(super) fn attempt(&self) -> i64 {
        self.attempt.unwrap_or(0)
    }
}

/// Returns the text of a value.
pub(super) fn text(value: AnyValue<'_>) -> Cow<'_, str> {
    pulsetrain_otlp::json::value_text(value)
}

/// Returns the integer of a value, also if it is a string.
pub(super) fn integer(value: AnyValue<'_>) -> Option<i64> {
    match value {
        AnyValue::Int(value) => Some(value),
        AnyValue::String(text) => text.to_str().ok()?.parse().ok(),
        AnyValue::Double(value) if value.fract() == 0.0 => Some(value as i64),
        _ => None,
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
