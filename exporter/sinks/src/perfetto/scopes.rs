//! Instrumentation scopes, each once, with the schemas that were said around them.

use std::collections::HashMap;

use pulsetrain_otlp::{
    WireError,
    view::{InstrumentationScope, Message},
};

/// The scopes of an input.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    index: HashMap<ScopeEntry, u32>,
    all: Vec<ScopeEntry>,
    names: Vec<String>,
}

/// A scope as it was in the input.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ScopeEntry {
    /// The message.
    pub(super) bytes: Vec<u8>,
    pub(super) schema_url: Vec<u8>,
    pub(super) resource_schema_url: Vec<u8>,
}

impl Scopes {
    /// The number of a scope.
    pub(super) fn number(&mut self, scope: ScopeEntry) -> Result<u32, WireError> {
        if let Some(number) = self.index.get(&scope) {
            return Ok(*number);
        }
        let number = self.all.len() as u32;
        let name = InstrumentationScope::decode(&scope.bytes)?.name;
        self.names.push(name.to_str_lossy().into_owned());
        self.all.push(scope.clone());
        self.index.insert(scope, number);
        Ok(number)
    }

    /// The name of a scope; empty where it has none.
    pub(super) fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    pub(super) fn get(&self, number: u32) -> &ScopeEntry {
        &self.all[number as usize]
    }
}
