//! The label text of a series, between the braces. It is created once and stored.
//!
//! The text is the identity of the series. Labels are sorted by name. Keys that translate to the same name
//! share one label with both values (`a;b`). Empty values are left out, because Prometheus treats them as
//! absent.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use pulsetrain_otlp::{
    WireError,
    view::{KeyValue, Repeated},
};

use super::{Translation, escape, names};
use pulsetrain_otlp::json::value_text;

/// The labels of one point or resource.
pub(super) type Labels<'a> = Vec<(Arc<str>, Cow<'a, str>)>;

/// The maximum number of cached label names. Beyond it the cache is cleared.
const REMEMBERED_KEYS: usize = 4096;

/// The maximum length of a cached key.
const MAX_REMEMBERED_BYTES: usize = 256;

/// Converts attributes to labels.
pub(super) struct Labeller {
    translation: Translation,
    names: HashMap<Box<str>, Option<Arc<str>>>,
}

impl Labeller {
    pub(super) fn new(translation: Translation) -> Self {
        Self {
            translation,
            names: HashMap::new(),
        }
    }

    /// Returns the labels of `attributes` with wanted keys, sorted by name, each name once.
    pub(super) fn labels<'a>(
        &mut self,
        attributes: &Repeated<'a, KeyValue<'a>>,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Labels<'a>, WireError> {
        let mut pairs = Vec::with_capacity(attributes.len() + 8);
        for attribute in attributes.iter() {
            let attribute = attribute?;
            let key = attribute.key.to_str_lossy();
            if !wanted(&key) {
                continue;
            }
            let value = attribute.value.map_or(Cow::Borrowed(""), value_text);
            if !value.is_empty() {
                pairs.push((key, value));
            }
        }
        // Sorted by key first, so that values that share a label are in the order of their keys.
        pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut labels: Labels<'a> = Vec::with_capacity(pairs.len() + 8);
        for (key, value) in pairs {
            let Some(name) = self.name(&key) else { continue };
            match labels.iter_mut().find(|(other, _)| *other == name) {
                Some((_, values)) => *values = Cow::Owned(format!("{values};{value}")),
                None => labels.push((name, value)),
            }
        }
        labels.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(labels)
    }

    fn name(&mut self, key: &str) -> Option<Arc<str>> {
        if let Some(name) = self.names.get(key) {
            return name.clone();
        }
        let name = names::label_name(self.translation, key).map(Arc::from);
        if key.len() > MAX_REMEMBERED_BYTES {
            return name;
        }
        if self.names.len() == REMEMBERED_KEYS {
            self.names.clear();
        }
        self.names.insert(key.into(), name.clone());
        name
    }
}

/// Writes labels that are sorted by name.
pub(super) fn write<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>, out: &mut String) {
    for (name, value) in labels {
        if !out.is_empty() {
            out.push(',');
        }
        escape::push_label_name(name, out);
        out.push_str("=\"");
        escape::push_escaped(value, out);
        out.push('"');
    }
}

/// Parses the text of [`write`]. Names are decoded, and values are still escaped.
pub(super) fn read(text: &str) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (name, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (name, after) = until_quote(quoted)?;
                (escape::unescaped(name), after.strip_prefix("=\"")?)
            }
            None => {
                let (name, after) = rest.split_once("=\"")?;
                (Cow::Borrowed(name), after)
            }
        };
        let (value, after) = until_quote(after)?;
        rest = after.strip_prefix(',').unwrap_or(after);
        Some((name, value))
    })
}

/// Splits a text at the next quote that is not escaped.
fn until_quote(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let mut start = 0;
    loop {
        let place = start + memchr::memchr2(b'"', b'\\', &bytes[start..])?;
        if bytes[place] == b'"' {
            return Some((&text[..place], &text[place + 1..]));
        }
        start = (place + 2).min(bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_labels_round_trip() {
        let labels = [
            ("a", "x"),
            ("b.c", "1\"2\\"),
            ("d", "line\nline"),
            ("ü\"", "é,=\""),
        ];
        let mut text = String::new();
        write(labels, &mut text);
        assert_eq!(text, r#"a="x","b.c"="1\"2\\",d="line\nline","ü\""="é,=\"""#);
        let read: Vec<_> = read(&text)
            .map(|(name, value)| (name.into_owned(), escape::unescaped(value).into_owned()))
            .collect();
        assert_eq!(
            read,
            labels.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }
}
