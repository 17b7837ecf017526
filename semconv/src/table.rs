//! The macros of the generated tables. Each defines the constants of one kind from its rows, with `ALL` and `find`.
//!
//! A row contains neither its position nor a count, so a new row changes no other row.

/// Defines the metrics of the registry. The ordinal of a metric is the position of its row.
macro_rules! metrics {
    ($($constant:ident {
        name: $name:literal, prometheus_name: $prometheus_name:literal,
        unit: $unit:literal, instrument: $instrument:ident, number: $number:ident, bounds: $bounds:expr,
        stability: $stability:ident,
        brief: $brief:literal,
        $(attributes: $attributes:tt,)?
        $(upstream: $upstream:tt,)?
    })*) => {
        $(
            #[doc = $brief]
            #[doc = ""]
            #[doc = concat!("Unit `", $unit, "`; in Prometheus `", $prometheus_name, "`.")]
            pub const $constant: $crate::Metric = $crate::Metric {
                ordinal: Ordinal::$constant as u16,
                name: $name,
                brief: $brief,
                unit: $unit,
                instrument: $crate::Instrument::$instrument,
                number: $crate::Number::$number,
                bounds: $bounds,
                attributes: $crate::table::attribute_uses!($($attributes)?),
                prometheus_name: $prometheus_name,
                stability: $crate::Stability::$stability,
                upstream: $crate::table::upstream!($($upstream)?),
            };
        )*

        #[expect(non_camel_case_types, reason = "the variants are the names of constants")]
        #[repr(u16)]
        enum Ordinal {
            $($constant,)*
        }

        $crate::table::lookup!(Metric, "metric", $($constant)*);
    };
}

/// Defines the attributes of the registry.
macro_rules! attributes {
    ($($constant:ident {
        name: $name:literal, descriptive: $descriptive:literal, stability: $stability:ident,
        brief: $brief:literal,
        kind: $kind:ident $(($values:tt))?,
    })*) => {
        $(
            #[doc = $brief]
            pub const $constant: $crate::Attribute = $crate::Attribute {
                name: $name,
                brief: $brief,
                kind: $crate::AttributeKind::$kind $((&$values))?,
                descriptive: $descriptive,
                stability: $crate::Stability::$stability,
            };
        )*
        $crate::table::lookup!(Attribute, "attribute", $($constant)*);
    };
}

/// Defines the spans of the registry.
macro_rules! spans {
    ($($constant:ident {
        name: $name:literal, kind: $kind:ident, stability: $stability:ident,
        brief: $brief:literal,
        $(attributes: $attributes:tt,)?
        $(upstream: $upstream:tt,)?
    })*) => {
        $(
            #[doc = $brief]
            pub const $constant: $crate::Span = $crate::Span {
                name: $name,
                brief: $brief,
                kind: $crate::SpanKind::$kind,
                attributes: $crate::table::attribute_uses!($($attributes)?),
                stability: $crate::Stability::$stability,
                upstream: $crate::table::upstream!($($upstream)?),
            };
        )*
        $crate::table::lookup!(Span, "span", $($constant)*);
    };
}

/// Defines the events of the registry.
macro_rules! events {
    ($($constant:ident {
        name: $name:literal, stability: $stability:ident,
        brief: $brief:literal,
        $(attributes: $attributes:tt,)?
        $(upstream: $upstream:tt,)?
    })*) => {
        $(
            #[doc = $brief]
            pub const $constant: $crate::Event = $crate::Event {
                name: $name,
                brief: $brief,
                attributes: $crate::table::attribute_uses!($($attributes)?),
                stability: $crate::Stability::$stability,
                upstream: $crate::table::upstream!($($upstream)?),
            };
        )*
        $crate::table::lookup!(Event, "event", $($constant)*);
    };
}

/// Defines `ALL` and `find` of a module. The constants must be sorted by name.
macro_rules! lookup {
    ($kind:ident, $noun:literal, $($constant:ident)*) => {
        #[doc = concat!("Every ", $noun, ", sorted by name.")]
        pub static ALL: &[&$crate::$kind] = &[$(&$constant),*];

        #[doc = concat!("Returns the ", $noun, " of that name.")]
        pub fn find(name: &str) -> Option<&'static $crate::$kind> {
            ALL.binary_search_by(|defined| defined.name.cmp(name))
                .ok()
                .map(|at| ALL[at])
        }
    };
}

/// Expands to the uses of attributes: `[TRAIN_RANK, TRAIN_PHASE: Required]`.
macro_rules! attribute_uses {
    () => { &[] };
    ([$($attribute:ident $(: $requirement:ident)?),* $(,)?]) => {
        &[$($crate::AttributeUse {
            attribute: &$crate::attribute::$attribute,
            requirement: $crate::table::requirement!($($requirement)?),
        }),*]
    };
}

/// Expands to a requirement level, which is `Recommended` if the row has none, as in the registry.
macro_rules! requirement {
    () => {
        $crate::Requirement::Recommended
    };
    ($requirement:ident) => {
        $crate::Requirement::$requirement
    };
}

/// Expands to the names of source systems: `["surogate": ["loss", "train/loss"]]`.
macro_rules! upstream {
    () => { &[] };
    ([$($system:literal: $names:tt),* $(,)?]) => {
        &[$($crate::Upstream { system: $system, names: &$names }),*]
    };
}

pub(crate) use {attribute_uses, attributes, events, lookup, metrics, requirement, spans, upstream};
