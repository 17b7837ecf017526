//! Maps the keys of training logs to metrics, and records their values as points.
//!
//! A [`FieldMapping`] is one row: a key, a form of keys (`data/{data.name}/tokens`) or a regular expression, and the metric
//! with unit, attributes and sentinel for its values. A [`FieldTable`] holds the rows of one kind of record. A [`Mapping`] is
//! a complete file in the grammar of `MAPPING.md`; each trainer has one in `mappings/` ([`Trainer`]), and users write theirs
//! in the same grammar.
//!
//! [`MetricMapper`] records the fields of records, [`ScalarMapper`] numbers under tags (TensorBoard, wandb). Both keep a
//! [`KeyState`] for each key: its row, its series and the last value of a cumulative total.

mod attribute_value;
mod conversion;
mod coverage;
mod decimal;
mod dictionary;
pub mod duration;
mod error;
mod extension;
mod field;
mod field_mapping;
mod file;
mod key_path;
mod key_pattern;
mod key_state;
mod mapping;
mod metric_mapper;
pub mod number_text;
mod row_entry;
mod scalar_mapper;
mod scalar_section;
mod span_attributes;
pub mod split;
mod table;
mod tag_evidence;
mod time_form;
mod trainer;
pub mod tunix_otel;
pub mod unit;
mod words;

pub use attribute_value::OwnedAttributeValue;
pub use conversion::Conversion;
pub use coverage::CoverageRow;
pub use decimal::Decimal;
pub use dictionary::{DICTIONARY, dictionary_row};
pub use error::{MappingError, MappingPart};
pub use field::{Field, FieldValue, RecordMeta};
pub use field_mapping::{FieldMapping, MappingTarget, ResolvedMapping};
pub use file::{MappingFault, MappingFile, MappingFileError};
pub use key_path::known_tail;
pub use key_state::{KeyState, Recorded};
pub use mapping::{MappedFormat, Mapping, PairDelimiters};
pub use metric_mapper::{MetricMapper, RecordContext};
pub use scalar_mapper::{ScalarMapper, TagIndex, record_option};
pub use scalar_section::ScalarSection;
pub use span_attributes::SpanAttributes;
pub use table::{FieldTable, RecordTable};
pub use tag_evidence::TagEvidence;
pub use time_form::{TimeForm, TimeFormError};
pub use trainer::{Trainer, trainer, trainers};
pub use words::Words;
