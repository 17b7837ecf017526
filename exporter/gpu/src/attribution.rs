//! The attribution of a GPU: a hook that adds the attributes of the run, the pod or the job that uses it to every series.

use std::sync::Arc;

use pulsetrain_otlp::write::AttributeValue;
use pulsetrain_semconv::Attribute;

use crate::{Gpu, GpuProcess, Inventory, MigInstance};

/// An attribute with an owned value.
pub type OwnedAttribute = (&'static Attribute, OwnedValue);

/// The value of an [`OwnedAttribute`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OwnedValue {
    /// Text.
    Text(Arc<str>),
    /// An integer.
    Int(i64),
}

/// The subject of a series.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A GPU.
    Gpu(&'a Gpu),
    /// A MIG instance of a GPU.
    Instance(&'a Gpu, &'a MigInstance),
    /// A process on a GPU.
    Process(&'a Gpu, &'a GpuProcess),
}

/// Attributes GPUs to runs, pods or jobs.
///
/// It is called between two readings and must not block: slow work (a socket, many files) is done on another thread, and its
/// result is returned on a later call. When the attributes of a subject change, its series end and new ones begin.
pub trait GpuAttribution: Send {
    /// Receives the inventory whenever it has changed, before the attributes of its subjects are requested.
    fn observe(&mut self, inventory: &Inventory) {
        let _ = inventory;
    }

    /// Returns whether attributes may have changed since the last call. It is called in every pass, so that the attributes of
    /// all subjects are requested again only after a change.
    fn attributes_may_have_changed(&mut self) -> bool {
        false
    }

    /// Adds the attributes that the series of `subject` carry in addition to the identity of the GPU.
    fn attributes(&mut self, subject: Subject<'_>, into: &mut Vec<OwnedAttribute>);
}

/// No attribution: series carry only the identity of their GPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAttribution;

impl GpuAttribution for NoAttribution {
    fn attributes(&mut self, _subject: Subject<'_>, _into: &mut Vec<OwnedAttribute>) {}
}

impl OwnedValue {
    /// Returns the value in the form in which it is written.
    pub fn as_value(&self) -> AttributeValue<'_> {
        match self {
            Self::Text(text) => AttributeValue::Text(text),
            Self::Int(number) => AttributeValue::Int(*number),
        }
    }
}

impl From<&str> for OwnedValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for OwnedValue {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}
