//! Maps units in UCUM, as in the registry, to those of Grafana and Perses.

use serde_json::{Value, json};

/// A unit of values on a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The unit in UCUM.
    pub(crate) ucum: &'static str,
    /// Its id in Grafana.
    pub(crate) grafana: &'static str,
    /// Its name in Perses; `decimal` if Perses has none.
    pub(crate) perses: &'static str,
    /// The symbol to show in Perses if Perses does not know the unit.
    pub(crate) symbol: &'static str,
}

const fn unit(ucum: &'static str, grafana: &'static str, perses: &'static str, symbol: &'static str) -> Unit {
    Unit {
        ucum,
        grafana,
        perses,
        symbol,
    }
}

/// No unit: text, traces and states.
pub(crate) static NONE: Unit = unit("none", "none", "decimal", "");

/// A number of things, `{thing}`: numbers with K and Mil.
static COUNT: Unit = unit("{}", "short", "decimal", "");

/// Every other unit. The ids of Grafana are those that dashboard-linter knows; it rejects custom units such as `si:token/s`.
static UNITS: [Unit; 25] = [
    unit("1", "percentunit", "percent-decimal", ""),
    unit("s", "s", "seconds", ""),
    unit("s/s", "percentunit", "percent-decimal", ""),
    unit("By", "bytes", "bytes", ""),
    unit("By/s", "Bps", "bytes/sec", ""),
    unit("W", "watt", "decimal", "W"),
    unit("W/s", "watt", "decimal", "W/s"),
    unit("J", "joule", "decimal", "J"),
    unit("Hz", "hertz", "decimal", "Hz"),
    unit("Cel", "celsius", "decimal", "°C"),
    unit("rpm", "rotrpm", "decimal", "rpm"),
    unit("{revolution}/s", "rothz", "decimal", "rev/s"),
    unit("s/{token}", "s", "seconds", "s/token"),
    unit("J/{token}", "joule", "decimal", "J/token"),
    unit("J/{step}", "joule", "decimal", "J/step"),
    unit("{token}/s", "cps", "decimal", "token/s"),
    unit("{step}/s", "cps", "decimal", "step/s"),
    unit("{sample}/s", "cps", "decimal", "sample/s"),
    unit("{item}/s", "cps", "decimal", "item/s"),
    unit("{record}/s", "cps", "decimal", "record/s"),
    unit("{retry}/s", "cps", "decimal", "retry/s"),
    unit("{error}/s", "cps", "decimal", "error/s"),
    unit("{rollout}/s", "cps", "decimal", "rollout/s"),
    unit("{flop}/s", "flops", "decimal", "FLOP/s"),
    unit("{flop}/{token}", "short", "decimal", "FLOP/token"),
];

impl Unit {
    /// Returns the unit of this UCUM code, or `None` if there is no such unit here.
    pub(crate) fn from_ucum(ucum: &str) -> Option<&'static Self> {
        if let Some(unit) = [&NONE].into_iter().chain(&UNITS).find(|unit| unit.ucum == ucum) {
            return Some(unit);
        }
        let thing = ucum.strip_prefix('{')?.strip_suffix('}')?;
        (!thing.is_empty() && !thing.contains(['{', '}'])).then_some(&COUNT)
    }

    /// Returns the format of values in Perses.
    pub(crate) fn perses_format(&self) -> Value {
        if self.perses == "decimal" {
            json!({"unit": "decimal", "shortValues": true})
        } else {
            json!({"unit": self.perses})
        }
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_semconv::metric;

    use super::*;

    #[test]
    fn every_registry_unit_has_a_dashboard_unit() {
        let unknown: Vec<_> = metric::ALL
            .iter()
            .filter(|metric| Unit::from_ucum(metric.unit).is_none())
            .map(|metric| (metric.name, metric.unit))
            .collect();
        assert_eq!(unknown, []);
    }

    #[test]
    fn unit_outside_the_dashboard_list_is_rejected() {
        for ucum in ["", "{}", "ms", "{token}/{step}", "token"] {
            assert_eq!(Unit::from_ucum(ucum), None, "{ucum}");
        }
    }
}
