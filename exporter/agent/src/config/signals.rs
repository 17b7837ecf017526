//! A list of signals by name, for the key `signals` of a sink.

use pulsetrain_otlp::{Signal, Signals};
use serde::{Deserialize, Deserializer};

use super::section::{Setting, Shown};

/// The signals of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignalList(pub(crate) Signals);

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum SignalName {
    Traces,
    Metrics,
    Logs,
}

impl<'de> Deserialize<'de> for SignalList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<SignalName>::deserialize(deserializer)?;
        Ok(Self(names.into_iter().map(Signal::from).collect()))
    }
}

impl From<SignalName> for Signal {
    fn from(name: SignalName) -> Self {
        match name {
            SignalName::Traces => Self::Traces,
            SignalName::Metrics => Self::Metrics,
            SignalName::Logs => Self::Logs,
        }
    }
}

impl Setting for SignalList {
    fn shown(&self) -> Shown {
        Shown::List(self.0.iter().map(|signal| signal.as_str().to_owned()).collect())
    }
}
