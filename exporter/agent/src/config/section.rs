//! `section!`: defines a part of the configuration as a type, with its defaults and, from its doc comments, its
//! documentation.
//!
//! It is the only place that defines the name, the type, the default and the documentation of a key.

/// The description of a key, for printing.
pub(crate) struct Key {
    /// The key.
    pub(crate) name: &'static str,
    /// The doc comment, in one or more entries of one or more lines.
    pub(crate) doc: &'static [&'static str],
    /// The value.
    pub(crate) value: Shown,
}

/// A value in its printed form.
pub(crate) enum Shown {
    /// A scalar, as YAML.
    Scalar(String),
    /// A list of scalars.
    List(Vec<String>),
    /// A section with its own keys.
    Keys(Vec<Key>),
    /// Entries under user-defined names, and examples of further kinds.
    Named {
        /// The entries that are set.
        set: Vec<Entry>,
        /// The examples.
        examples: Vec<Entry>,
    },
    /// Nothing: the key is shown as a comment.
    Unset,
}

/// An entry under a user-defined name.
pub(crate) struct Entry {
    /// The name.
    pub(crate) name: String,
    /// The kind, with its documentation and its keys.
    pub(crate) kind: Key,
}

/// Part of the configuration: a type with keys.
pub(crate) trait Section {
    /// The doc comment of the type.
    const DOC: &'static [&'static str];

    /// Returns the keys in order, with their values.
    fn keys(&self) -> Vec<Key>;
}

/// A value of a key.
pub(crate) trait Setting {
    /// Returns the printed form.
    fn shown(&self) -> Shown;
}

impl<T: Section> Setting for T {
    fn shown(&self) -> Shown {
        Shown::Keys(self.keys())
    }
}

/// Defines a section: a struct whose fields each have a doc comment and a default.
macro_rules! section {
    (
        $(#[doc = $doc:literal])*
        pub(crate) struct $name:ident {
            $(
                $(#[doc = $key_doc:expr])*
                $key:ident: $type:ty = $default:expr,
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $name {
            $(
                $(#[doc = $key_doc])*
                pub(crate) $key: $type,
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        impl $crate::config::section::Section for $name {
            const DOC: &'static [&'static str] = &[$($doc,)*];

            fn keys(&self) -> Vec<$crate::config::section::Key> {
                #[allow(unused_imports, reason = "a section without keys uses neither")]
                use $crate::config::section::{Key, Setting};
                vec![$(
                    Key {
                        name: stringify!($key),
                        doc: &[$($key_doc,)*],
                        value: Setting::shown(&self.$key),
                    },
                )*]
            }
        }
    };
}

pub(crate) use section;
