//! The envelope of the items of a batch: resource, scope and schema.

use super::{
    buffer::{Buffer, delimited_len},
    value::{self, AttributeValue},
};
use crate::Signal;

/// Resource, instrumentation scope and schema of a batch, encoded once for many batches.
#[derive(Clone, Debug)]
pub struct Envelope {
    resource: Vec<u8>,
    scope: Vec<u8>,
    schema_url: &'static str,
}

/// An encoded batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The signal of the bytes.
    pub signal: Signal,
    /// The number of spans, points or log records.
    pub items: u32,
    /// The message: `TracesData`, `MetricsData` or `LogsData`.
    pub bytes: Vec<u8>,
}

impl Envelope {
    /// Returns an envelope for one resource and scope. The keys of a resource are text, since users add their own.
    pub fn new(
        resource: &[(&str, AttributeValue<'_>)],
        scope_name: &str,
        scope_version: &str,
        schema_url: &'static str,
    ) -> Self {
        let mut resource_fields = Buffer::default();
        resource
            .iter()
            .for_each(|(key, value)| value::key_value(1, key, value, &mut resource_fields));
        let mut scope = Buffer::default();
        scope.text(1, scope_name);
        scope.text(2, scope_version);
        Self {
            resource: resource_fields.into_vec(),
            scope: scope.into_vec(),
            schema_url,
        }
    }

    /// Returns an envelope for an encoded `Resource`.
    pub fn of_resource(
        resource: &[u8],
        scope_name: &str,
        scope_version: &str,
        schema_url: &'static str,
    ) -> Self {
        Self {
            resource: resource.to_vec(),
            ..Self::new(&[], scope_name, scope_version, schema_url)
        }
    }

    /// Appends attributes to the resource.
    #[must_use]
    pub fn and_resource(mut self, more: &[(&str, AttributeValue<'_>)]) -> Self {
        let mut fields = Buffer::default();
        more.iter()
            .for_each(|(key, value)| value::key_value(1, key, value, &mut fields));
        self.resource.extend_from_slice(fields.as_slice());
        self
    }

    /// Encodes a message of one resource and one scope, whose `items_len` bytes of encoded items `write` writes.
    pub(super) fn wrap(&self, items_len: usize, write: impl FnOnce(&mut Buffer)) -> Vec<u8> {
        let schema_len = if self.schema_url.is_empty() {
            0
        } else {
            delimited_len(3, self.schema_url.len())
        };
        let scope_len = delimited_len(1, self.scope.len()) + items_len + schema_len;
        let resource_len = delimited_len(1, self.resource.len()) + delimited_len(2, scope_len) + schema_len;
        let whole = delimited_len(1, resource_len);
        let mut out = Buffer::with_capacity(whole);
        out.delimited_head(1, resource_len);
        out.delimited(1, &self.resource);
        out.delimited_head(2, scope_len);
        out.delimited(1, &self.scope);
        write(&mut out);
        out.text(3, self.schema_url);
        out.text(3, self.schema_url);
        debug_assert_eq!(out.len(), whole, "every length is known before it is written");
        out.into_vec()
    }
}
