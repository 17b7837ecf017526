//! Resources: each is a process of the trace.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pulsetrain_otlp::{
    WireError,
    view::{AnyValue, Message, Resource},
};
use pulsetrain_semconv::attribute;

use super::PerfettoConfig;
use crate::value_text::value_text;

/// Where the numbers begin of processes that have none, or whose number another has too.
const FIRST_SYNTHETIC_PID: i32 = 1_000_000;

/// The resources of an input, each once.
#[derive(Debug, Default)]
pub(super) struct Resources {
    index: HashMap<Vec<u8>, u32>,
    all: Vec<ResourceEntry>,
}

/// A resource, and what a viewer is to call it.
#[derive(Clone, Debug)]
pub(super) struct ResourceEntry {
    /// The message.
    pub(super) bytes: Vec<u8>,
    pub(super) rank: Option<i64>,
    pub(super) name: String,
    pub(super) labels: Vec<String>,
    own_pid: Option<i32>,
    /// The scopes that anything in it stands in.
    pub(super) scopes: BTreeSet<u32>,
}

impl Resources {
    /// The number of a resource whose message this is.
    pub(super) fn number(&mut self, bytes: &[u8], config: &PerfettoConfig) -> Result<u32, WireError> {
        if let Some(number) = self.index.get(bytes) {
            return Ok(*number);
        }
        let number = self.all.len() as u32;
        self.all.push(ResourceEntry::read(bytes, config)?);
        self.index.insert(bytes.to_vec(), number);
        Ok(number)
    }

    /// Remembers that something of a resource stands in a scope.
    pub(super) fn has_scope(&mut self, number: u32, scope: u32) {
        self.all[number as usize].scopes.insert(scope);
    }

    pub(super) fn get(&self, number: u32) -> &ResourceEntry {
        &self.all[number as usize]
    }

    /// The place of each among the processes: by rank, then by name, then as they came.
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

    /// A number for each process: its own where that is the only one of its kind.
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

impl ResourceEntry {
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
        let int = |key: &str| match values.get(key) {
            Some(AnyValue::Int(value)) => Some(*value),
            _ => None,
        };
        let named = config.process_names.iter().find_map(|key| text(key));
        let service = named.unwrap_or_else(|| "unknown_service".to_owned());
        let rank = int(attribute::TRAIN_RANK.name);
        let name = rank.map_or_else(|| service.clone(), |rank| format!("rank {rank} {service}"));
        let own_pid = int(attribute::PROCESS_PID.name).and_then(|pid| i32::try_from(pid).ok());
        Ok(Self {
            bytes: bytes.to_vec(),
            rank,
            name,
            labels: config.process_labels.iter().filter_map(|key| text(key)).collect(),
            scopes: BTreeSet::new(),
            own_pid: own_pid.filter(|pid| (1..FIRST_SYNTHETIC_PID).contains(pid)),
        })
    }
}
