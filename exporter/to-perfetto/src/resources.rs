//! Resources: each is a process of the trace.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, hash_map::Entry},
    hash::{BuildHasher, RandomState},
};

use pulsetrain_otlp::{
    WireError,
    json::value_text,
    view::{KeyValue, Message, Repeated, Resource},
    wire::Reader,
};
use pulsetrain_run::integer;
use pulsetrain_semconv::attribute;

use super::PerfettoConfig;
use crate::vocabulary::TRACES;

/// The first number for processes without a number, or with one that is not unique. Linux has numbers up to 4,194,304.
const FIRST_SYNTHETIC_PID: i32 = 10_000_000;

/// The distinct resources of an input.
#[derive(Debug, Default)]
pub(super) struct Resources {
    /// The index by a hash of their sorted fields: stores reorder attributes.
    index: HashMap<u128, u32>,
    hashers: [RandomState; 2],
    all: Vec<ResourceEntry>,
    /// The process for the rows of traces.
    of_traces: Option<u32>,
}

/// A resource, with its name in viewers.
#[derive(Clone, Debug, Default)]
pub(super) struct ResourceEntry {
    /// The message.
    pub(super) bytes: Vec<u8>,
    pub(super) rank: Option<i64>,
    pub(super) name: String,
    pub(super) labels: Vec<String>,
    own_pid: Option<i32>,
    /// Whether it has an attribute that names processes.
    is_named: bool,
    /// The scopes of its spans, points and records.
    pub(super) scopes: BTreeSet<u32>,
}

impl Resources {
    /// Returns the number of a resource with these bytes.
    pub(super) fn number(&mut self, bytes: &[u8], config: &PerfettoConfig) -> Result<u32, WireError> {
        let fields = sorted_fields(bytes)?;
        // Two hashes of 64 bits with random seeds: a collision is practically impossible.
        let [high, low] = [0, 1].map(|place| u128::from(self.hashers[place].hash_one(&fields)));
        match self.index.entry(high << 64 | low) {
            Entry::Occupied(known) => Ok(*known.get()),
            Entry::Vacant(new) => {
                let number = self.all.len() as u32;
                self.all.push(ResourceEntry::read(bytes, config)?);
                Ok(*new.insert(number))
            }
        }
    }

    /// Returns the number of the process for the rows of traces.
    pub(super) fn of_traces(&mut self) -> u32 {
        *self.of_traces.get_or_insert_with(|| {
            self.all.push(ResourceEntry {
                name: TRACES.to_owned(),
                ..ResourceEntry::default()
            });
            self.all.len() as u32 - 1
        })
    }

    /// Records that a resource has items in a scope.
    pub(super) fn has_scope(&mut self, number: u32, scope: u32) {
        self.all[number as usize].scopes.insert(scope);
    }

    pub(super) fn get(&self, number: u32) -> &ResourceEntry {
        &self.all[number as usize]
    }

    /// Returns whether any resource has an attribute that names processes.
    pub(super) fn are_named(&self) -> bool {
        self.all.iter().any(|entry| entry.is_named)
    }

    /// Appends the distinguishing attributes to names that several resources share.
    pub(super) fn disambiguate_names(&mut self) -> Result<(), WireError> {
        let mut by_name = HashMap::<&str, Vec<usize>>::new();
        for (number, entry) in self.all.iter().enumerate() {
            by_name.entry(&entry.name).or_default().push(number);
        }
        let shared: Vec<Vec<usize>> = by_name.into_values().filter(|group| group.len() > 1).collect();
        for group in shared {
            let members: Vec<&ResourceEntry> = group.iter().map(|number| &self.all[*number]).collect();
            let differences = differences(&members)?;
            for (number, difference) in group.iter().zip(differences) {
                if !difference.is_empty() {
                    let name = &mut self.all[*number].name;
                    *name = format!("{name} ({})", difference.join(", "));
                }
            }
        }
        Ok(())
    }

    /// Returns the sort rank of each process: by rank, then by name, then in the order of the input.
    pub(super) fn places(&self) -> Vec<i32> {
        let mut numbers: Vec<u32> = (0..self.all.len() as u32).collect();
        numbers.sort_by_key(|&number| {
            let about = self.get(number);
            (about.rank.is_none(), about.rank, about.name.as_str(), number)
        });
        let mut places = vec![0; numbers.len()];
        for (place, number) in numbers.into_iter().enumerate() {
            places[number as usize] = place as i32;
        }
        places
    }

    /// Returns a number for each process: its own if that is unique.
    pub(super) fn pids(&self) -> Vec<i32> {
        let mut uses = BTreeMap::<i32, u32>::new();
        for pid in self.all.iter().filter_map(|about| about.own_pid) {
            *uses.entry(pid).or_default() += 1;
        }
        let pid = |(number, about): (usize, &ResourceEntry)| {
            let own = about.own_pid.filter(|pid| uses[pid] == 1);
            own.unwrap_or(FIRST_SYNTHETIC_PID.saturating_add(number as i32))
        };
        self.all.iter().enumerate().map(pid).collect()
    }
}

/// Attributes that distinguish replicas of a service, the most readable first; all others follow.
const TELLING: [&str; 7] = [
    attribute::TRAIN_ATTEMPT.name,
    "k8s.pod.name",
    "container.name",
    attribute::HOST_NAME.name,
    attribute::PROCESS_PID.name,
    attribute::SERVICE_INSTANCE_ID.name,
    "service.namespace",
];

/// Returns for each member the values of the first attributes that distinguish all members.
fn differences(members: &[&ResourceEntry]) -> Result<Vec<Vec<String>>, WireError> {
    let mut others = BTreeSet::new();
    for member in members {
        for attribute in member.attributes()? {
            let key = attribute?.key.to_str_lossy();
            if !TELLING.contains(&key.as_ref()) && !others.contains(key.as_ref()) {
                others.insert(key.into_owned());
            }
        }
    }
    let keys = TELLING.into_iter().chain(others.iter().map(String::as_str));
    let (mut found, mut distinct) = (vec![Vec::new(); members.len()], 1);
    for key in keys {
        let values: Vec<Option<String>> = members
            .iter()
            .map(|member| member.text(key))
            .collect::<Result<_, _>>()?;
        let together = found.iter().zip(&values).collect::<HashSet<_>>().len();
        if together > distinct {
            distinct = together;
            found
                .iter_mut()
                .zip(values)
                .for_each(|(found, value)| found.extend(value));
        }
        if distinct == members.len() {
            break;
        }
    }
    Ok(found)
}

/// Returns the fields of a message in the order of their bytes.
fn sorted_fields(bytes: &[u8]) -> Result<Vec<u8>, WireError> {
    let (mut fields, mut start) = (Vec::new(), 0);
    let mut reader = Reader::new(bytes);
    while !reader.is_at_end() {
        let tag = reader.tag()?;
        reader.value(tag)?;
        fields.push(&bytes[start..reader.position()]);
        start = reader.position();
    }
    fields.sort_unstable();
    Ok(fields.concat())
}

impl ResourceEntry {
    fn attributes(&self) -> Result<Repeated<'_, KeyValue<'_>>, WireError> {
        Ok(Resource::decode(&self.bytes)?.attributes)
    }

    /// Returns the value of an attribute as text.
    fn text(&self, key: &str) -> Result<Option<String>, WireError> {
        for attribute in self.attributes()? {
            let attribute = attribute?;
            if attribute.key.as_bytes() == key.as_bytes() {
                return Ok(Some(value_text(attribute.value.unwrap_or_default()).into_owned()));
            }
        }
        Ok(None)
    }

    fn read(bytes: &[u8], config: &PerfettoConfig) -> Result<Self, WireError> {
        let mut values = HashMap::new();
        for attribute in Resource::decode(bytes)?.attributes {
            let attribute = attribute?;
            values.insert(
                attribute.key.to_str_lossy().into_owned(),
                attribute.value.unwrap_or_default(),
            );
        }
        let text = |key: &str| values.get(key).map(|value| value_text(*value).into_owned());
        let int = |key: &str| values.get(key).and_then(|value| integer(*value));
        let named = config.process_names.iter().find_map(|key| text(key));
        let is_named = named.is_some();
        let service = named.or_else(|| text(attribute::SERVICE_NAME.name));
        let service = service.unwrap_or_else(|| "unknown_service".to_owned());
        let rank = int(attribute::TRAIN_RANK.name);
        let name = rank.map_or_else(|| service.clone(), |rank| format!("rank {rank} {service}"));
        let own_pid = int(attribute::PROCESS_PID.name).and_then(|pid| i32::try_from(pid).ok());
        Ok(Self {
            bytes: bytes.to_vec(),
            rank,
            name,
            is_named,
            labels: config.process_labels.iter().filter_map(|key| text(key)).collect(),
            scopes: BTreeSet::new(),
            own_pid: own_pid.filter(|pid| (1..FIRST_SYNTHETIC_PID).contains(pid)),
        })
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::{
        common::v1::{AnyValue, KeyValue, any_value::Value},
        resource::v1::Resource,
    };
    use prost::Message as _;

    use super::*;

    #[test]
    fn rank_of_every_type_names_its_process_and_selects_it() {
        let config = PerfettoConfig::default();
        let values = [
            Value::IntValue(1),
            Value::StringValue("1".to_owned()),
            Value::DoubleValue(1.0),
        ];
        for value in values {
            let resource = Resource {
                attributes: vec![KeyValue {
                    key: attribute::TRAIN_RANK.name.to_owned(),
                    value: Some(AnyValue {
                        value: Some(value.clone()),
                    }),
                    ..KeyValue::default()
                }],
                ..Resource::default()
            };
            let entry = ResourceEntry::read(&resource.encode_to_vec(), &config).unwrap();
            assert_eq!(
                (entry.rank, &*entry.name),
                (Some(1), "rank 1 unknown_service"),
                "{value:?}"
            );
        }
    }
}
