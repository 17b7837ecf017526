//! Distinct instrumentation scopes, with the schema URLs of their messages.

use indexmap::IndexMap;
use pulsetrain_otlp::{
    WireError,
    view::{InstrumentationScope, Message, Text},
};

use super::walk::first;

/// The scopes of an input.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    /// The scopes with their names.
    all: IndexMap<ScopeEntry, String>,
    /// The last scope that was looked up; the next one is usually the same.
    latest: Option<u32>,
}

/// A scope of the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ScopeEntry {
    /// The message.
    pub(super) bytes: Vec<u8>,
    pub(super) schema_url: Vec<u8>,
    pub(super) resource_schema_url: Vec<u8>,
}

impl Scopes {
    /// Returns the number of the scope in a `ScopeSpans`, `ScopeMetrics` or `ScopeLogs` with these bytes.
    pub(super) fn number_of(
        &mut self,
        bytes: &[u8],
        schema_url: Text<'_>,
        resource_schema_url: Text<'_>,
    ) -> Result<u32, WireError> {
        let bytes = first(bytes, 1);
        let latest = self.latest.and_then(|latest| self.all.get_index(latest as usize));
        let is_latest = |(entry, _): (&ScopeEntry, _)| {
            entry.bytes == bytes
                && entry.schema_url == schema_url.as_bytes()
                && entry.resource_schema_url == resource_schema_url.as_bytes()
        };
        if let (Some(number), true) = (self.latest, latest.is_some_and(is_latest)) {
            return Ok(number);
        }
        let number = self.number(ScopeEntry {
            bytes: bytes.to_vec(),
            schema_url: schema_url.as_bytes().to_vec(),
            resource_schema_url: resource_schema_url.as_bytes().to_vec(),
        })?;
        self.latest = Some(number);
        Ok(number)
    }

    /// Returns the number of a placeholder for the scopes of a process, named like the process.
    pub(super) fn number_of_process(&mut self, name: &str) -> u32 {
        let entry = ScopeEntry {
            bytes: Vec::new(),
            // No real schema URL has this value.
            schema_url: Vec::from(name),
            resource_schema_url: Vec::from("process"),
        };
        self.all.insert_full(entry, name.to_owned()).0 as u32
    }

    fn number(&mut self, scope: ScopeEntry) -> Result<u32, WireError> {
        if let Some(number) = self.all.get_index_of(&scope) {
            return Ok(number as u32);
        }
        let name = InstrumentationScope::decode(&scope.bytes)?.name;
        let name = name.to_str_lossy().into_owned();
        Ok(self.all.insert_full(scope, name).0 as u32)
    }

    /// Returns the name of a scope, or an empty text if it has none.
    pub(super) fn name(&self, number: u32) -> &str {
        &self.all[number as usize]
    }

    pub(super) fn get(&self, number: u32) -> Option<&ScopeEntry> {
        Some(self.all.get_index(number as usize)?.0)
    }
}
