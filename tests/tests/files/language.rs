//! The words of comments, messages and docs: the number of banned words in each part of the repository may decrease, but not
//! increase. `UPDATE_GOLDEN=1` sets the limits to the current numbers.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// Banned words and phrases; each has a plain or technical replacement: `reported` for `told`, `represents` for `stands for`,
/// `after` for `behind`, `complete` for `whole`.
const WORDS: [&str; 22] = [
    "told",
    "tell",
    "tells",
    "said",
    "say",
    "says",
    "stands",
    "stand",
    "anew",
    "mended",
    "behind",
    "beside",
    "whole",
    "so many",
    "is none",
    "comes to",
    "came to",
    "goes on",
    "went on",
    "of which",
    "by what",
    "nothing where",
];

/// Banned beginnings of comments: a comment begins with a verb or a noun of the field.
const BEGINNINGS: [&str; 4] = ["What ", "Of ", "Whose ", "By what "];

const LIMITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/language_limits.json");

/// Folders without prose of ours.
const SKIPPED: [&str; 7] = [
    "target",
    ".git",
    "corpus",
    "golden",
    "snapshots",
    "node_modules",
    "proptest-regressions",
];

#[test]
fn banned_words_of_each_part_stay_within_the_limit() {
    let counts = counts();
    if env::var_os("UPDATE_GOLDEN").is_some() {
        let text = serde_json::to_string_pretty(&counts).expect("invariant: counts are JSON");
        fs::write(LIMITS, text + "\n").expect("the limits can be written");
    }
    let limits = fs::read_to_string(LIMITS).expect("tests/language_limits.json can be read");
    let limits: Value = serde_json::from_str(&limits).expect("tests/language_limits.json is JSON");
    let over: Vec<String> = counts
        .iter()
        .filter(|(part, count)| limits[part.as_str()].as_u64().unwrap_or_default() < **count)
        .map(|(part, count)| format!("{part}: {count}, limit {}", limits[part.as_str()]))
        .collect();
    assert!(
        over.is_empty(),
        "more banned words than the limit (tests/tests/files/language.rs lists them):\n{}",
        over.join("\n")
    );
}

#[test]
fn no_comment_begins_with_a_banned_word() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let rust = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "rs");
    // The comments in generated files are the briefs of the registry.
    let generated = |path: &Path| {
        let within = path.strip_prefix(&root);
        within.is_ok_and(|path| path.iter().any(|part| part == "generated"))
    };
    let (mut found, mut checked) = (Vec::new(), 0);
    for path in files(&root)
        .into_iter()
        .filter(rust)
        .filter(|path| !generated(path))
    {
        let text = fs::read_to_string(&path).expect("a file of the repository can be read");
        let lines = banned_beginnings(&text);
        found.extend(lines.map(|line| format!("{}: {line}", path.display())));
        checked += 1;
    }
    assert!(checked > 1_000, "{checked} files were checked");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Returns the comments of a source file that begin with a question word or a bare genitive. A comment that continues the
/// sentence of the line above it is not a beginning.
fn banned_beginnings(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    let before = std::iter::once("").chain(lines.clone());
    lines.zip(before).filter_map(|(line, before)| {
        let is_beginning =
            comment(before).is_none_or(|before| before.is_empty() || before.ends_with(['.', ':']));
        let is_banned = |comment: &str| BEGINNINGS.iter().any(|beginning| comment.starts_with(beginning));
        (is_beginning && comment(line).is_some_and(is_banned)).then_some(line)
    })
}

/// Returns the text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.strip_prefix("//")?.trim_start_matches(['/', '!']);
    Some(text.trim_start())
}

#[test]
fn banned_beginnings_are_found_in_first_lines_of_comments_only() {
    let text = "/// What is stored of a part.\n// Of the job.\n/// Returns the\n/// Of which\nlet text = \"What\";\n//! Done.\n//! Whose\n";
    let text = text.replace("Whose", "Whose lock it is.");
    let found: Vec<&str> = banned_beginnings(&text).collect();
    let expected = [
        "/// What is stored of a part.",
        "// Of the job.",
        "//! Whose lock it is.",
    ];
    assert_eq!(found, expected);
}

#[test]
fn banned_words_are_counted_in_comments_and_strings_but_not_in_code() {
    let source =
        "let said = whole(); // It says so.\nprintln!(\"it is told\"); let r = 'a'; /// Stands anew.";
    assert_eq!(count_rust(source), 4);
    assert_eq!(count("A caller calls; the wholesale tale foretells nothing."), 0);
    assert_eq!(count("What it says\ngoes on."), 2);
}

/// Counts the banned words of each crate and folder of the repository.
fn counts() -> BTreeMap<String, u64> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut counts = BTreeMap::new();
    for path in files(&root) {
        let within = path
            .strip_prefix(&root)
            .expect("invariant: the walk starts at the root");
        let mut parts = within.iter().map(|part| part.to_string_lossy());
        let first = parts.next().unwrap_or_default().into_owned();
        let part = match (first.as_str(), parts.next()) {
            ("exporter", Some(name)) => format!("exporter/{name}"),
            _ => first,
        };
        let text = fs::read_to_string(&path).expect("a file of the repository can be read");
        let found = match path.extension().is_some_and(|ending| ending == "rs") {
            true => count_rust(&text),
            false => count(&text),
        };
        *counts.entry(part).or_default() += found;
    }
    counts
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the repository can be read");
    let mut files = Vec::new();
    for entry in entries.map(|entry| entry.expect("an entry can be read")) {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            if !SKIPPED.iter().any(|skipped| name == *skipped) {
                files.extend(self::files(&path));
            }
        } else if path
            .extension()
            .is_some_and(|ending| ending == "rs" || ending == "md")
        {
            // This file contains the list of banned words.
            if name != "language.rs" {
                files.push(path);
            }
        }
    }
    files
}

/// Counts the banned words in the comments and strings of a source file.
fn count_rust(source: &str) -> u64 {
    let lines = source.lines().map(|line| {
        let (code, comment) = line.split_once("//").unwrap_or((line, ""));
        let strings: Vec<&str> = code.split('"').skip(1).step_by(2).collect();
        format!("{} . {comment}", strings.join(" . "))
    });
    count(&lines.collect::<Vec<_>>().join("\n"))
}

fn count(text: &str) -> u64 {
    let words: Vec<String> = text
        .split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let phrases = WORDS.map(|phrase| phrase.split(' ').collect::<Vec<_>>());
    let found = (0..words.len()).map(|start| {
        let begins = |phrase: &&Vec<&str>| {
            words[start..]
                .iter()
                .zip(phrase.iter())
                .filter(|(word, of)| word == of)
                .count()
                == phrase.len()
        };
        phrases.iter().filter(begins).count() as u64
    });
    found.sum()
}
