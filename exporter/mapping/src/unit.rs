//! Spellings of units in logs, and the conversions to the units of the registry.

use crate::Conversion;

/// A unit of the registry, and the spellings of other units with their conversions.
type Units = (&'static str, &'static [(&'static str, Conversion)]);

const fn times(factor: f64) -> Conversion {
    Conversion::Times(factor)
}

/// Division by a power of ten is exact where multiplication by its inverse is not.
const fn by(divisor: f64) -> Conversion {
    Conversion::DividedBy(divisor)
}

const KIB: f64 = 1024.0;

static SECONDS: &[(&str, Conversion)] = &[
    ("s", Conversion::None),
    ("sec", Conversion::None),
    ("secs", Conversion::None),
    ("seconds", Conversion::None),
    ("ms", by(1e3)),
    ("us", by(1e6)),
    ("µs", by(1e6)),
    ("ns", by(1e9)),
    ("min", times(60.0)),
    ("m", times(60.0)),
    ("h", times(3600.0)),
    ("d", times(86_400.0)),
];

static BYTES: &[(&str, Conversion)] = &[
    ("By", Conversion::None),
    ("B", Conversion::None),
    ("kB", times(1e3)),
    ("KB", times(1e3)),
    ("MB", times(1e6)),
    ("GB", times(1e9)),
    ("TB", times(1e12)),
    ("KiB", times(KIB)),
    ("MiB", times(KIB * KIB)),
    ("GiB", times(KIB * KIB * KIB)),
    ("TiB", times(KIB * KIB * KIB * KIB)),
];

static BYTES_PER_SECOND: &[(&str, Conversion)] = &[
    ("By/s", Conversion::None),
    ("B/s", Conversion::None),
    ("kB/s", times(1e3)),
    ("KB/s", times(1e3)),
    ("MB/s", times(1e6)),
    ("GB/s", times(1e9)),
    ("KiB/s", times(KIB)),
    ("MiB/s", times(KIB * KIB)),
    ("GiB/s", times(KIB * KIB * KIB)),
];

static FLOPS: &[(&str, Conversion)] = &[
    ("FLOP", Conversion::None),
    ("GFLOP", times(1e9)),
    ("TFLOP", times(1e12)),
    ("PFLOP", times(1e15)),
];

static FLOPS_PER_SECOND: &[(&str, Conversion)] = &[
    ("FLOP/s", Conversion::None),
    ("GFLOP/s", times(1e9)),
    ("GFLOPS", times(1e9)),
    ("TFLOP/s", times(1e12)),
    ("TFLOPS", times(1e12)),
    ("PFLOP/s", times(1e15)),
    ("PFLOPS", times(1e15)),
];

static UNITS: &[Units] = &[
    ("s", SECONDS),
    ("By", BYTES),
    ("By/s", BYTES_PER_SECOND),
    ("{flop}", FLOPS),
    ("{flop}/s", FLOPS_PER_SECOND),
    (
        "1",
        &[
            ("ratio", Conversion::None),
            ("percent", by(100.0)),
            ("%", by(100.0)),
            ("ratio_or_percent", Conversion::RatioOrPercent),
        ],
    ),
    (
        "W",
        &[("W", Conversion::None), ("mW", by(1e3)), ("kW", times(1e3))],
    ),
    (
        "J",
        &[
            ("J", Conversion::None),
            ("mJ", by(1e3)),
            ("kJ", times(1e3)),
            ("Wh", times(3600.0)),
            ("kWh", times(3.6e6)),
        ],
    ),
    (
        "Hz",
        &[
            ("Hz", Conversion::None),
            ("kHz", times(1e3)),
            ("MHz", times(1e6)),
            ("GHz", times(1e9)),
        ],
    ),
    (
        "Cel",
        &[
            ("Cel", Conversion::None),
            ("C", Conversion::None),
            ("°C", Conversion::None),
        ],
    ),
];

/// Multipliers of counts: `1.5k` tokens, `7B` parameters.
static MULTIPLES: &[(&str, Conversion)] = &[
    ("k", times(1e3)),
    ("K", times(1e3)),
    ("M", times(1e6)),
    ("B", times(1e9)),
    ("G", times(1e9)),
    ("T", times(1e12)),
];

/// Returns the conversion from the unit that is spelled `spelling` to `unit`, a unit of the registry.
pub fn conversion(spelling: &str, unit: &str) -> Option<Conversion> {
    if spelling.is_empty() || spelling == unit {
        return Some(Conversion::None);
    }
    let all = spellings(unit);
    all.iter()
        .find(|(known, _)| *known == spelling)
        .map(|(_, conversion)| *conversion)
}

/// Returns whether a word is the spelling of a unit.
pub fn is_spelling(word: &str) -> bool {
    let mut units = UNITS.iter().flat_map(|(_, spellings)| *spellings);
    units.any(|(known, _)| *known == word)
}

/// Lists the spellings that are converted to a unit of the registry, for messages.
pub fn spellings_of(unit: &str) -> String {
    let names: Vec<&str> = spellings(unit).iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

fn spellings(unit: &str) -> &'static [(&'static str, Conversion)] {
    match UNITS.iter().find(|(known, _)| *known == unit) {
        Some((_, spellings)) => spellings,
        None if unit.starts_with('{') => MULTIPLES,
        None => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_units_are_converted_to_registry_units() {
        let cases = [
            (250.0, "ms", "s", 0.25),
            (41.5, "percent", "1", 0.415),
            (12.0, "GiB", "By", 12_884_901_888.0),
            (650_000.0, "mW", "W", 650.0),
            (1980.0, "MHz", "Hz", 1.98e9),
            (400.5, "TFLOP/s", "{flop}/s", 400.5e12),
            (1.5, "k", "{token}/s", 1500.0),
            (3.0, "", "{loss}", 3.0),
        ];
        for (value, spelling, unit, expected) in cases {
            let converted = conversion(spelling, unit).unwrap().apply(value);
            assert!(
                (converted - expected).abs() <= 1e-12 * expected,
                "{value} {spelling}: {converted}"
            );
        }
    }

    #[test]
    fn unit_of_another_dimension_is_rejected() {
        for (spelling, unit) in [("GiB", "s"), ("ms", "1"), ("k", "s"), ("ms", "{token}")] {
            assert_eq!(conversion(spelling, unit), None, "{spelling} as {unit}");
        }
        assert_eq!(spellings_of("1"), "ratio, percent, %, ratio_or_percent");
    }
}
