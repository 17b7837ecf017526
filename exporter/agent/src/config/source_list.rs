//! A list of sources by name, for the key `sources` of a sink.

use pulsetrain_pipeline::{Problem, SourceSet};
use serde::Deserialize;

use super::{
    Config, Fault, GPUS, Location, SinkConfig, Spanned,
    section::{Setting, Shown},
};

/// The name of the agent's own telemetry, in addition to those of `sources`.
pub(crate) const AGENT_SOURCE: &str = "pulsetrain";

/// The documentation of the key `sources`, which every kind of sink has.
macro_rules! sources_doc {
    () => {
        " The sources to receive: a list of names, gpu for the GPUs, pulsetrain for the agent's own metrics. Default: all.
 Derived signals follow their source."
    };
}

pub(super) use sources_doc;

/// The names of a list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub(crate) struct SourceList(Vec<Spanned<String>>);

impl SourceList {
    /// Returns the sources of the list.
    pub(super) fn set(&self) -> SourceSet {
        SourceSet::named(self.0.iter().map(|name| name.value.as_str()))
    }
}

/// Returns the faults in the lists of all sinks, with their places: names that no source has, and sources that no sink
/// receives.
pub(super) fn faults(config: &Config) -> Vec<(Location, Problem)> {
    let mut known: Vec<&str> = config.sources.iter().map(|(name, _)| name).collect();
    known.extend([GPUS, AGENT_SOURCE]);
    known.sort_unstable();
    let mut faults = Vec::new();
    for (sink, section) in config.sinks.iter() {
        let Some(list) = section.source_list() else {
            continue;
        };
        if list.0.is_empty() {
            faults.push((
                list.location,
                Problem::new(format!("sinks.{sink}: sources is an empty list"))
                    .with_remedy(format!("name sources ({}), or remove it", known.join(", "))),
            ));
        }
        for name in list.0.iter().filter(|name| !known.contains(&name.as_str())) {
            let message = Problem::new(format!("sinks.{sink}: there is no source {:?}", name.value))
                .with_remedy(format!("it can be: {}", known.join(", ")));
            faults.push((name.location, message));
        }
    }
    let unreceived = config
        .sources
        .iter()
        .filter(|(name, _)| !is_received(config, name));
    faults.extend(unreceived.map(|(name, source)| {
        let message = Problem::new(format!("sources.{name}: no sink receives it"))
            .with_remedy(format!("add {name} to the sources of a sink, or remove it"));
        (source.location(), message)
    }));
    faults
}

/// Returns warnings about sinks that list a disabled source, and about GPUs that no sink receives.
pub(crate) fn warnings(file: &str, config: &Config) -> Vec<Fault> {
    let off = [
        (GPUS, config.gpu.enabled, "gpu.enabled"),
        (AGENT_SOURCE, config.telemetry.enabled, "telemetry.enabled"),
    ];
    let mut warnings = Vec::new();
    for (source, _, key) in off.into_iter().filter(|(_, is_enabled, _)| !is_enabled) {
        for (sink, section) in config.sinks.iter() {
            let listed = section.source_list().into_iter().flat_map(|list| &list.0);
            warnings.extend(listed.filter(|name| name.value == source).map(|name| {
                let message = Problem::new(format!(
                    "sinks.{sink}: {source} sends nothing, because {key} is false"
                ))
                .with_remedy(format!("set it to true, or remove {source} from the sources"));
                Fault::at(file, name.location, message)
            }));
        }
    }
    if config.gpu.enabled && !is_received(config, GPUS) {
        let message = Problem::new("gpu: no sink receives it")
            .with_remedy("add gpu to the sources of a sink, or set gpu.enabled to false");
        warnings.push(Fault::of_file(file, message));
    }
    warnings
}

/// Returns whether a sink receives the source of this name.
fn is_received(config: &Config, name: &str) -> bool {
    let names_it = |sink: &SinkConfig| {
        sink.source_list()
            .is_none_or(|list| list.0.iter().any(|listed| listed.value == name))
    };
    config.sinks.0.is_empty() || config.sinks.iter().any(|(_, sink)| names_it(sink))
}

impl Setting for SourceList {
    fn shown(&self) -> Shown {
        self.0.shown()
    }
}
