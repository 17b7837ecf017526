//! The disk queue of a sink: `off`, or its folder and its limits.

use std::{fmt, path::PathBuf, time::Duration};

use pulsetrain_pipeline::disk::{DiskQueueConfig, SyncPolicy};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::{
    quantity::{Size, TimeOrNever},
    section::{Setting, Shown, section},
};

/// The sync interval of `sync: interval`.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

section! {
    /// Where batches are kept until they are delivered.
    pub(crate) struct DiskQueueSection {
        /// The maximum size of its files. Above it, the sink applies backpressure or drops batches, depending on
        /// `required`.
        bytes: Size = Size(1 << 30),
        /// The age after which a batch is dropped while the sink fails, or never.
        age: TimeOrNever = TimeOrNever(None),
        /// When a batch is synced to disk: interval (fsync once a second), always (before it is acknowledged) or never (the
        /// system decides). It matters for a failure of the machine; a kill of the agent never loses a batch.
        sync: SyncName = SyncName::Interval,
        /// The folder. Default: queue/NAME in the state folder.
        folder: Option<String> = None,
    }
}

/// A disk queue, or `off`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DiskQueueSetting {
    Off,
    On(DiskQueueSection),
}

/// The sync policy of a disk queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SyncName {
    Interval,
    Always,
    Never,
}

impl DiskQueueSection {
    /// Returns the settings of the queue, in this folder if the section sets none.
    pub(crate) fn settings(&self, folder: PathBuf) -> DiskQueueConfig {
        DiskQueueConfig {
            folder: self.folder.as_ref().map_or(folder, PathBuf::from),
            max_bytes: self.bytes.0 as u64,
            max_age: self.age.0,
            sync: match self.sync {
                SyncName::Interval => SyncPolicy::Interval(SYNC_INTERVAL),
                SyncName::Always => SyncPolicy::Always,
                SyncName::Never => SyncPolicy::Never,
            },
        }
    }
}

impl Default for DiskQueueSetting {
    fn default() -> Self {
        Self::On(DiskQueueSection::default())
    }
}

impl<'de> Deserialize<'de> for DiskQueueSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SettingVisitor)
    }
}

struct SettingVisitor;

impl<'de> Visitor<'de> for SettingVisitor {
    type Value = DiskQueueSetting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("off, or the keys bytes, age, sync and folder")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        match text {
            "off" => Ok(DiskQueueSetting::Off),
            other => Err(E::custom(format!(
                "disk_queue is {other:?}; write off, or keys such as {{bytes: 1GiB, sync: always}}"
            ))),
        }
    }

    /// YAML 1.1 reads `off` as `false`.
    fn visit_bool<E: Error>(self, is_on: bool) -> Result<Self::Value, E> {
        Ok(if is_on {
            DiskQueueSetting::default()
        } else {
            DiskQueueSetting::Off
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        DiskQueueSection::deserialize(MapAccessDeserializer::new(map)).map(DiskQueueSetting::On)
    }
}

impl Setting for DiskQueueSetting {
    fn shown(&self) -> Shown {
        match self {
            Self::Off => Shown::Scalar("off".to_owned()),
            Self::On(section) => section.shown(),
        }
    }
}

impl Setting for SyncName {
    fn shown(&self) -> Shown {
        let name = match self {
            Self::Interval => "interval",
            Self::Always => "always",
            Self::Never => "never",
        };
        Shown::Scalar(name.to_owned())
    }
}
