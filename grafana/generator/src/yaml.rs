//! A YAML value that keeps the order of its keys, and its serialization.
//!
//! Supports only the constructs of rule files: mappings, sequences, strings and numbers. Strings of several lines become
//! literal blocks.

/// A YAML value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Yaml {
    /// A string.
    Text(String),
    /// A scalar that is written as it is: a number or a boolean.
    Plain(String),
    /// A mapping in the order of its entries.
    Map(Vec<(String, Yaml)>),
    /// A sequence.
    List(Vec<Yaml>),
}

impl Yaml {
    /// Returns a string.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns a number or a boolean.
    pub(crate) fn plain(value: &impl ToString) -> Self {
        Self::Plain(value.to_string())
    }

    /// Returns a mapping.
    pub(crate) fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Yaml)>) -> Self {
        Self::Map(
            entries
                .into_iter()
                .map(|(key, value)| (key.into(), value))
                .collect(),
        )
    }

    /// Returns the document: a comment, then the value.
    pub(crate) fn document(&self, comment: &str) -> String {
        let mut text: String = comment.lines().map(|line| format!("# {line}\n")).collect();
        self.write(&mut text, 0);
        text
    }

    /// Writes the value as lines, each indented by this many spaces.
    fn write(&self, out: &mut String, indent: usize) {
        match self {
            Self::Map(entries) => {
                for (key, value) in entries {
                    out.push_str(&" ".repeat(indent));
                    out.push_str(&scalar(key));
                    out.push(':');
                    value.write_after_key(out, indent + 2);
                }
            }
            Self::List(items) => {
                for item in items {
                    let start = out.len();
                    item.write_item(out, indent + 2);
                    // The first line of the item begins with the dash.
                    out.replace_range(start + indent..=start + indent, "-");
                }
            }
            Self::Text(_) | Self::Plain(_) => {
                out.push_str(&" ".repeat(indent));
                out.push_str(&self.inline());
                out.push('\n');
            }
        }
    }

    fn write_item(&self, out: &mut String, indent: usize) {
        match self {
            Self::Map(entries) if entries.is_empty() => {
                out.push_str(&format!("{}{{}}\n", " ".repeat(indent)));
            }
            _ => self.write(out, indent),
        }
    }

    fn write_after_key(&self, out: &mut String, indent: usize) {
        match self {
            Self::Map(entries) if entries.is_empty() => out.push_str(" {}\n"),
            Self::List(items) if items.is_empty() => out.push_str(" []\n"),
            Self::Map(_) | Self::List(_) => {
                out.push('\n');
                self.write(out, indent);
            }
            Self::Text(text) if text.contains('\n') => {
                out.push_str(" |-\n");
                for line in text.lines() {
                    out.push_str(&" ".repeat(indent));
                    out.push_str(line);
                    out.push('\n');
                }
            }
            Self::Text(_) | Self::Plain(_) => {
                out.push(' ');
                out.push_str(&self.inline());
                out.push('\n');
            }
        }
    }

    fn inline(&self) -> String {
        match self {
            Self::Text(text) => scalar(text),
            Self::Plain(text) => text.clone(),
            Self::Map(_) | Self::List(_) => String::new(),
        }
    }
}

/// Returns a string as a scalar: plain if no parser can misread it, else in single quotes.
fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.'))
        && !matches!(
            text,
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if is_plain {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_is_read_back_as_written() {
        let value = Yaml::map([
            (
                "groups",
                Yaml::List(vec![
                    Yaml::map([
                        ("name", Yaml::text("it's: a # text")),
                        ("expr", Yaml::text("a\n  + b")),
                    ]),
                    Yaml::map([("empty", Yaml::map::<String>([])), ("none", Yaml::List(vec![]))]),
                    Yaml::text("on"),
                ]),
            ),
            ("value", Yaml::plain(&0.5)),
        ]);
        let read: serde_json::Value =
            serde_saphyr::from_str(&value.document("a comment\nof two lines")).unwrap();
        let expected = serde_json::json!({
            "groups": [{"name": "it's: a # text", "expr": "a\n  + b"}, {"empty": {}, "none": []}, "on"],
            "value": 0.5,
        });
        assert_eq!(read, expected);
    }
}
