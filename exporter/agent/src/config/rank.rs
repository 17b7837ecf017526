//! The rank of logs: a number, or a pattern for their paths.

use std::fmt;

use pulsetrain_tail::{RankPatternError, RankSource};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::section::{Setting, Shown};

/// The rank of the logs of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RankSection {
    /// One rank for all logs.
    Fixed(u32),
    /// The rank that a pattern finds in the path.
    Path(PathSection),
}

/// The pattern that finds the rank.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PathSection {
    from: From,
    pattern: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum From {
    Path,
}

impl RankSection {
    /// Returns the source of the rank.
    ///
    /// # Errors
    /// Returns an error if the pattern cannot find a rank.
    pub(crate) fn build(&self) -> Result<RankSource, RankPatternError> {
        match self {
            Self::Fixed(rank) => Ok(RankSource::Fixed((*rank).into())),
            Self::Path(path) => RankSource::from_path(&path.pattern),
        }
    }
}

impl<'de> Deserialize<'de> for RankSection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RankVisitor)
    }
}

struct RankVisitor;

impl<'de> Visitor<'de> for RankVisitor {
    type Value = RankSection;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rank like 3, or {from: path, pattern: 'rank_(\\d+)'}")
    }

    fn visit_u64<E: de::Error>(self, rank: u64) -> Result<RankSection, E> {
        let rank =
            u32::try_from(rank).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(rank), &self))?;
        Ok(RankSection::Fixed(rank))
    }

    fn visit_i64<E: de::Error>(self, rank: i64) -> Result<RankSection, E> {
        let rank = u64::try_from(rank).map_err(|_| E::invalid_value(de::Unexpected::Signed(rank), &self))?;
        self.visit_u64(rank)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RankSection, A::Error> {
        PathSection::deserialize(MapAccessDeserializer::new(map)).map(RankSection::Path)
    }
}

impl Setting for RankSection {
    fn shown(&self) -> Shown {
        Shown::Scalar(match self {
            Self::Fixed(rank) => rank.to_string(),
            Self::Path(path) => format!("{{from: path, pattern: '{}'}}", path.pattern.replace('\'', "''")),
        })
    }
}
