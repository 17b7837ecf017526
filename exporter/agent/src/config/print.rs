//! `--print-config`: prints a configuration as YAML, every key with its documentation.

use std::fmt::Write;

use super::{
    Config,
    section::{Entry, Key, Section, Shown},
};

/// Returns the configuration with comments; reading it results in the same configuration.
pub(crate) fn print(config: &Config) -> String {
    let mut out = String::new();
    comment(&mut out, "", Config::DOC);
    for key in config.keys() {
        out.push('\n');
        print_key(&mut out, "", &key);
    }
    out
}

fn print_key(out: &mut String, indent: &str, key: &Key) {
    comment(out, indent, key.doc);
    let name = key.name;
    let deeper = format!("{indent}  ");
    match &key.value {
        Shown::Unset => line(out, format_args!("{indent}# {name}:")),
        Shown::Scalar(scalar) => line(out, format_args!("{indent}{name}: {scalar}")),
        Shown::List(items) if items.is_empty() => line(out, format_args!("{indent}{name}: []")),
        Shown::List(items) => {
            line(out, format_args!("{indent}{name}:"));
            for item in items {
                line(out, format_args!("{deeper}- {item}"));
            }
        }
        // Without a value below it, the key would parse as an entry without keys.
        Shown::Keys(keys) if is_unset(keys) => {
            line(out, format_args!("{indent}# {name}:"));
            for key in keys {
                comment(out, &format!("{indent}#   "), key.doc);
                line(out, format_args!("{indent}#   {}:", key.name));
            }
        }
        Shown::Keys(keys) if keys.is_empty() => line(out, format_args!("{indent}{name}: {{}}")),
        Shown::Keys(keys) => {
            line(out, format_args!("{indent}{name}:"));
            keys.iter().for_each(|key| print_key(out, &deeper, key));
        }
        Shown::Named { set, examples } => {
            line(out, format_args!("{indent}{name}:"));
            set.iter().for_each(|entry| print_entry(out, &deeper, entry));
            for example in examples {
                print_example(out, &deeper, example);
            }
        }
    }
}

fn is_unset(keys: &[Key]) -> bool {
    !keys.is_empty() && keys.iter().all(|key| matches!(key.value, Shown::Unset))
}

fn print_entry(out: &mut String, indent: &str, entry: &Entry) {
    line(out, format_args!("{indent}{}:", entry.name));
    let deeper = format!("{indent}  ");
    let Key { name, doc, value } = &entry.kind;
    match value {
        // The kind must be present, whether or not it has keys.
        Shown::Keys(keys) if is_unset(keys) => {
            comment(out, &deeper, doc);
            line(out, format_args!("{deeper}{name}: {{}}"));
            keys.iter()
                .for_each(|key| print_key(out, &format!("{deeper}  "), key));
        }
        _ => print_key(out, &deeper, &entry.kind),
    }
}

/// Prints an entry that is not set, every line as a comment.
fn print_example(out: &mut String, indent: &str, entry: &Entry) {
    let mut text = String::new();
    print_entry(&mut text, "", entry);
    for text in text.lines() {
        line(out, format_args!("{indent}# {text}"));
    }
}

fn comment(out: &mut String, indent: &str, doc: &[&str]) {
    for text in doc.iter().flat_map(|doc| doc.split('\n')) {
        line(out, format_args!("{indent}#{text}"));
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{text}");
}
