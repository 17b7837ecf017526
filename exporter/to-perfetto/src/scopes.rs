//! Distinct instrumentation scopes, with the schema URLs of their messages.

use std::collections::HashMap;

use indexmap::IndexMap;
use pulsetrain_otlp::{
    WireError,
    view::{InstrumentationScope, Message, Text},
};

use super::walk::first;

/// The scopes of an input.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    all: IndexMap<ScopeEntry, ScopeName>,
    /// The first scope with each message, regardless of the schema URLs.
    first: HashMap<Vec<u8>, u32>,
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

/// A scope as it is displayed.
#[derive(Debug)]
struct ScopeName {
    name: String,
    /// The number of the first scope that differs at most in its schema URLs.
    first: u32,
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
        let is_latest = |(entry, _): (&ScopeEntry, &ScopeName)| {
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
        let name = name.to_owned();
        // No metric is in such a scope.
        self.all.insert_full(entry, ScopeName { name, first: 0 }).0 as u32
    }

    fn number(&mut self, scope: ScopeEntry) -> Result<u32, WireError> {
        if let Some(number) = self.all.get_index_of(&scope) {
            return Ok(number as u32);
        }
        let name = InstrumentationScope::decode(&scope.bytes)?.name;
        let name = name.to_str_lossy().into_owned();
        let number = self.all.len() as u32;
        let first = *self.first.entry(scope.bytes.clone()).or_insert(number);
        Ok(self.all.insert_full(scope, ScopeName { name, first }).0 as u32)
    }

    /// Returns the name of a scope, or an empty text if it has none.
    pub(super) fn name(&self, number: u32) -> &str {
        &self.all[number as usize].name
    }

    /// Returns the version of a scope, or an empty text if it has none.
    pub(super) fn version(&self, number: u32) -> String {
        let entry = self
            .get(number)
            .map(|entry| InstrumentationScope::decode(&entry.bytes));
        let version = entry
            .and_then(Result::ok)
            .map(|scope| scope.version.to_str_lossy());
        version.unwrap_or_default().into_owned()
    }

    /// Returns the number that a scope shares with those that differ only in schema URLs.
    pub(super) fn without_schema(&self, number: u32) -> u32 {
        self.all[number as usize].first
    }

    pub(super) fn get(&self, number: u32) -> Option<&ScopeEntry> {
        Some(self.all.get_index(number as usize)?.0)
    }
}
