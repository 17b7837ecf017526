//! The words of comments, messages and docs: some are banned, because the field has a term for their meaning.

use std::{
    fs,
    path::{Path, PathBuf},
};

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
fn no_comment_message_or_page_has_a_banned_word() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for path in files(&root) {
        let text = fs::read_to_string(&path).expect("a file of the repository can be read");
        let words = match path.extension().is_some_and(|ending| ending == "rs") {
            true => banned_in_rust(&text),
            false => banned(&text),
        };
        found.extend(
            words
                .into_iter()
                .map(|word| format!("{}: {word:?}", path.display())),
        );
    }
    assert!(
        found.is_empty(),
        "write the technical term instead of a banned word (tests/tests/files/language.rs lists them):\n{}",
        found.join("\n")
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
fn banned_words_are_found_in_comments_and_strings_but_not_in_code() {
    let source = "let said = whole(); // It says so.\nprintln!(\"it is told\"); let r = 'a'; /// Stands anew. `none` is `whole`.";
    assert_eq!(banned_in_rust(source), ["says", "told", "stands", "anew"]);
    assert_eq!(
        banned("A caller calls; the wholesale tale foretells nothing, and is `None`."),
        [""; 0]
    );
    assert_eq!(banned("What it says\ngoes on."), ["says", "goes on"]);
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

/// Returns the banned words in the comments and strings of a source file.
fn banned_in_rust(source: &str) -> Vec<&'static str> {
    let lines = source.lines().map(|line| {
        let (code, comment) = line.split_once("//").unwrap_or((line, ""));
        let strings: Vec<&str> = code.split('"').skip(1).step_by(2).collect();
        format!("{} . {comment}", strings.join(" . "))
    });
    banned(&lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the banned words of a text, except in code within backticks.
fn banned(text: &str) -> Vec<&'static str> {
    let prose: Vec<&str> = text.split('`').step_by(2).collect();
    let prose = prose.join(" _ ").to_lowercase();
    let words: Vec<&str> = prose
        .split(|character: char| !character.is_alphanumeric() && character != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let phrases = WORDS.map(|phrase| (phrase, phrase.split(' ').collect::<Vec<_>>()));
    let starts = (0..words.len()).flat_map(|start| {
        let rest = &words[start..];
        let begins = phrases.iter().filter(move |(_, phrase)| rest.starts_with(phrase));
        begins.map(|(phrase, _)| *phrase)
    });
    starts.collect()
}
