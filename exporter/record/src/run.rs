//! The identity of a run and its OTLP resource.

use pulsetrain_otlp::{
    UnixNanos,
    write::{AttributeValue, Envelope},
};
use pulsetrain_semconv::{AttributeKind, SCHEMA_URL, attribute};

/// The instrumentation scope of imported telemetry.
const SCOPE: &str = "pulsetrain";

/// A training run, as reported by one rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The id of the run: the same for all ranks and all attempts.
    pub id: String,
    /// The display name of the run, or empty.
    pub name: String,
    /// The project of the run, or empty.
    pub project: String,
    /// The trainer, for example `surogate` or `maxtext`.
    pub framework: String,
    /// The value of `service.name`; if empty, the framework.
    pub service: String,
    /// The rank that wrote the telemetry.
    pub rank: i64,
    /// The rank on its host, if known.
    pub local_rank: Option<i64>,
    /// The number of ranks of the run, if known.
    pub world_size: Option<i64>,
    /// The number of restarts before this attempt.
    pub attempt: i64,
    /// The start of the run, from which sums count; unknown if the log has no start.
    pub start_unix_nanos: UnixNanos,
    /// Resource attributes from the user; they override those of the run.
    pub extra: Vec<(String, String)>,
}

impl Run {
    /// Returns the envelope for everything that the run sends.
    pub fn envelope(&self) -> Envelope {
        let instance = self.instance();
        let mut resource = self.attributes(&instance);
        for (key, value) in &self.extra {
            resource.retain(|(name, _)| name != key);
            resource.push((key, AttributeValue::Text(value)));
        }
        Envelope::new(&resource, SCOPE, env!("CARGO_PKG_VERSION"), SCHEMA_URL)
    }

    /// Returns the envelope for a run that has sent its own encoded `resource`, which is extended with missing attributes.
    pub fn envelope_of(&self, resource: &[u8], has: impl Fn(&str) -> bool) -> Envelope {
        let instance = self.instance();
        let mut missing = self.attributes(&instance);
        missing.retain(|(name, _)| !has(name));
        Envelope::of_resource(resource, SCOPE, env!("CARGO_PKG_VERSION"), SCHEMA_URL).and_resource(&missing)
    }

    fn instance(&self) -> String {
        format!("{}/{}", self.id, self.rank)
    }

    fn attributes<'a>(&'a self, instance: &'a str) -> Vec<(&'a str, AttributeValue<'a>)> {
        let service = if self.service.is_empty() {
            &self.framework
        } else {
            &self.service
        };
        let mut resource = vec![
            (attribute::SERVICE_NAME.name, AttributeValue::Text(service)),
            (
                attribute::SERVICE_INSTANCE_ID.name,
                AttributeValue::Text(instance),
            ),
            (attribute::TRAIN_RUN_ID.name, AttributeValue::Text(&self.id)),
            (
                attribute::TRAIN_FRAMEWORK.name,
                AttributeValue::Text(&self.framework),
            ),
            (attribute::TRAIN_RANK.name, AttributeValue::Int(self.rank)),
            (attribute::TRAIN_ATTEMPT.name, AttributeValue::Int(self.attempt)),
        ];
        if let AttributeKind::Enum(systems) = attribute::RL_SYSTEM.kind
            && systems.contains(&self.framework.as_str())
        {
            resource.push((attribute::RL_SYSTEM.name, AttributeValue::Text(&self.framework)));
            resource.push((attribute::RL_RUN_ID.name, AttributeValue::Text(&self.id)));
        }
        if let Some(local_rank) = self.local_rank {
            resource.push((attribute::TRAIN_LOCAL_RANK.name, AttributeValue::Int(local_rank)));
        }
        if let Some(world_size) = self.world_size {
            resource.push((attribute::TRAIN_WORLD_SIZE.name, AttributeValue::Int(world_size)));
        }
        if !self.name.is_empty() {
            resource.push((attribute::TRAIN_RUN_NAME.name, AttributeValue::Text(&self.name)));
        }
        if !self.project.is_empty() {
            resource.push((attribute::TRAIN_PROJECT.name, AttributeValue::Text(&self.project)));
        }
        resource
    }
}

/// Returns the start of a run from the name of its file, which ends with the seconds since 1970:
/// `perfetto_trace_1795219880.pb`.
pub fn start_in_name(path: &str) -> Option<UnixNanos> {
    let name = path.rsplit('/').next()?;
    let stem = name.split('.').next()?;
    let seconds: u64 = stem.rsplit('_').next()?.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)
        .filter(|nanos| *nanos < i64::MAX as u64)
        .map(UnixNanos)
}

#[cfg(test)]
mod tests {
    use super::start_in_name;

    #[test]
    fn unix_seconds_at_the_end_of_a_file_name_are_the_run_start() {
        let seconds = |path| start_in_name(path).map(|start| start.0 / 1_000_000_000);
        assert_eq!(
            seconds("/a/b.c/perfetto_trace_v2_1795219880.pb"),
            Some(1_795_219_880)
        );
        assert_eq!(seconds("perfetto_trace_1795219880.pb.gz"), Some(1_795_219_880));
        for other in [
            "trace.pb",
            "trace_.pb",
            "trace_99999999999999999999.pb",
            "t_12345678901.pb",
            "",
        ] {
            assert_eq!(seconds(other), None, "{other}");
        }
    }
}
