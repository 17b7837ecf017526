//! Iterators over the resources, scopes and items of a message.

use std::iter;

use crate::{
    view::{
        InstrumentationScope, LogRecord, LogsData, Message, Metric, MetricsData, Repeated, Resource,
        ResourceLogs, ResourceMetrics, ResourceSpans, ScopeLogs, ScopeMetrics, ScopeSpans, Span, Text,
        TracesData,
    },
    wire::WireError,
};

/// Iterates over the resources of a message of metrics (`MetricsData`); ends after an error.
pub fn metrics<'a>(message: &'a [u8]) -> impl Iterator<Item = Result<InResource<'a, Metric<'a>>, WireError>> {
    resources(message)
}

/// Iterates over the resources of a message of spans (`TracesData`); ends after an error.
pub fn spans<'a>(message: &'a [u8]) -> impl Iterator<Item = Result<InResource<'a, Span<'a>>, WireError>> {
    resources(message)
}

/// Iterates over the resources of a message of log records (`LogsData`); ends after an error.
pub fn records<'a>(
    message: &'a [u8],
) -> impl Iterator<Item = Result<InResource<'a, LogRecord<'a>>, WireError>> {
    resources(message)
}

/// A metric, a span or a log record: an item of a scope of a resource.
pub trait Item<'a>: Message<'a> {
    /// The message of a resource, such as `ResourceMetrics`.
    type ResourceMessage: Message<'a>;
    /// The message of a scope, such as `ScopeMetrics`.
    type ScopeMessage: Message<'a>;

    /// Returns the resources of a message.
    ///
    /// # Errors
    /// The message is not valid protobuf.
    fn resources(message: &'a [u8]) -> Result<Repeated<'a, Self::ResourceMessage>, WireError>;

    /// Returns the resource and the scopes of the message of a resource.
    fn in_resource(message: &Self::ResourceMessage, bytes: &'a [u8]) -> InResource<'a, Self>;

    /// Returns the scope and the items of the message of a scope.
    fn in_scope(message: &Self::ScopeMessage) -> InScope<'a, Self>;
}

/// A resource with its items of one kind.
#[derive(Debug)]
pub struct InResource<'a, T: Item<'a>> {
    /// The encoded message, such as `ResourceMetrics`.
    pub bytes: &'a [u8],
    /// The resource, or `None` if the message has none.
    pub resource: Option<Resource<'a>>,
    scopes: Repeated<'a, T::ScopeMessage>,
}

/// An instrumentation scope with its items of one kind.
#[derive(Clone, Copy, Debug)]
pub struct InScope<'a, T> {
    /// The scope, or `None` if the message has none.
    pub scope: Option<InstrumentationScope<'a>>,
    /// The URL of the schema of the scope and its items.
    pub schema_url: Text<'a>,
    /// The items.
    pub items: Repeated<'a, T>,
}

impl<'a, T: Item<'a>> InResource<'a, T> {
    /// Returns the attributes of the resource.
    #[inline]
    pub fn attributes(&self) -> Repeated<'a, crate::view::KeyValue<'a>> {
        self.resource
            .map(|resource| resource.attributes)
            .unwrap_or_default()
    }

    /// Iterates over the scopes; ends after an error.
    #[inline]
    pub fn scopes(&self) -> impl Iterator<Item = Result<InScope<'a, T>, WireError>> + use<'a, T> {
        self.scopes
            .iter()
            .map(|scope| scope.map(|scope| T::in_scope(&scope)))
    }

    /// Iterates over the items of all scopes. An error ends the items of its scope.
    #[inline]
    pub fn items(&self) -> impl Iterator<Item = Result<T, WireError>> + use<'a, T> {
        let mut scopes = self.scopes();
        let mut items = Repeated::<T>::default().iter();
        iter::from_fn(move || {
            loop {
                if let Some(item) = items.next() {
                    return Some(item);
                }
                match scopes.next()? {
                    Ok(scope) => items = scope.items.iter(),
                    Err(error) => return Some(Err(error)),
                }
            }
        })
    }
}

#[inline]
fn resources<'a, T: Item<'a>>(
    message: &'a [u8],
) -> impl Iterator<Item = Result<InResource<'a, T>, WireError>> {
    let (mut resources, mut failed) = match T::resources(message) {
        Ok(resources) => (resources.iter(), None),
        Err(error) => (Repeated::default().iter(), Some(error)),
    };
    iter::from_fn(move || {
        if let Some(error) = failed.take() {
            return Some(Err(error));
        }
        let bytes = resources.next_bytes()?;
        Some(bytes.and_then(|bytes| {
            let message = T::ResourceMessage::decode(bytes)?;
            Ok(T::in_resource(&message, bytes))
        }))
    })
}

/// Implements `Item` with the names of the fields, which differ by signal.
macro_rules! item {
    ($item:ident, $data:ident.$resources:ident, $resource:ident.$scopes:ident, $scope:ident.$items:ident) => {
        impl<'a> Item<'a> for $item<'a> {
            type ResourceMessage = $resource<'a>;
            type ScopeMessage = $scope<'a>;

            #[inline]
            fn resources(message: &'a [u8]) -> Result<Repeated<'a, $resource<'a>>, WireError> {
                Ok($data::decode(message)?.$resources)
            }

            #[inline]
            fn in_resource(message: &$resource<'a>, bytes: &'a [u8]) -> InResource<'a, Self> {
                InResource {
                    bytes,
                    resource: message.resource,
                    scopes: message.$scopes,
                }
            }

            #[inline]
            fn in_scope(message: &$scope<'a>) -> InScope<'a, Self> {
                InScope {
                    scope: message.scope,
                    schema_url: message.schema_url,
                    items: message.$items,
                }
            }
        }
    };
}

item!(
    Metric,
    MetricsData.resource_metrics,
    ResourceMetrics.scope_metrics,
    ScopeMetrics.metrics
);
item!(
    Span,
    TracesData.resource_spans,
    ResourceSpans.scope_spans,
    ScopeSpans.spans
);
item!(
    LogRecord,
    LogsData.resource_logs,
    ResourceLogs.scope_logs,
    ScopeLogs.log_records
);
