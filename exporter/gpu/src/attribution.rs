//! Whose a GPU is: a hook by which every series of it gets the attributes of the run, the pod or the job that uses it.

use std::sync::Arc;

use pulsetrain_otlp::write::Value;
use pulsetrain_semconv::Attribute;

use crate::{Gpu, GpuProcess, Inventory, MigInstance};

/// An attribute with a value of its own.
pub type OwnedAttribute = (&'static Attribute, OwnedValue);

/// The value of an [`OwnedAttribute`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OwnedValue {
    /// Text.
    Text(Arc<str>),
    /// An integer.
    Int(i64),
}

/// What a series is of.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A GPU.
    Gpu(&'a Gpu),
    /// An instance of a split GPU.
    Instance(&'a Gpu, &'a MigInstance),
    /// A process on a GPU.
    Process(&'a Gpu, &'a GpuProcess),
}

/// Knows whose the GPUs are.
///
/// It is asked between two readings and must answer at once from what it knows: what takes time (a socket, many files) is
/// done on another thread, and returned the next time. When the attributes of a subject change, its series end and new ones begin.
pub trait GpuAttribution: Send {
    /// Sees what there is, whenever that has changed, before it is asked for the subjects of it.
    fn observe(&mut self, inventory: &Inventory);

    /// Whether it may have learned something since it was asked this: in every pass, so that only then all subjects are asked
    /// for again.
    fn has_news(&mut self) -> bool;

    /// Adds the attributes that the series of `subject` carry besides the identity of the GPU.
    fn attributes(&mut self, subject: Subject<'_>, into: &mut Vec<OwnedAttribute>);
}

/// No attribution: series carry only the identity of their GPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAttribution;

impl GpuAttribution for NoAttribution {
    fn observe(&mut self, _inventory: &Inventory) {}

    fn has_news(&mut self) -> bool {
        false
    }

    fn attributes(&mut self, _subject: Subject<'_>, _into: &mut Vec<OwnedAttribute>) {}
}

impl OwnedValue {
    /// The value as it is written.
    pub fn as_value(&self) -> Value<'_> {
        match self {
            Self::Text(text) => Value::Text(text),
            Self::Int(number) => Value::Int(*number),
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
