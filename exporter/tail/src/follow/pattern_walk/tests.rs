//! Walks over trees on disk, with the `glob` crate as the oracle for trees without links.

use std::{collections::BTreeSet, os::unix::fs::symlink, time::Duration};

use proptest::prelude::*;

use super::*;

fn all(folder: &Path, pattern: &str, follow_links: bool) -> FoundFiles {
    let mut walk = PatternWalk::new(&folder.join(pattern), follow_links).expect("a valid pattern");
    let found = walk.step(unlimited());
    assert!(walk.is_complete());
    found
}

fn unlimited() -> WalkBudget {
    WalkBudget {
        entries: usize::MAX - 1,
        until: clock::later(clock::now(), Duration::from_secs(600)),
    }
}

fn names(folder: &Path, files: &[PathBuf]) -> BTreeSet<String> {
    let name = |file: &PathBuf| file.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
    let names: BTreeSet<String> = files.iter().map(name).collect();
    assert_eq!(names.len(), files.len(), "each file once: {files:?}");
    names
}

fn write(folder: &Path, name: &str) {
    let path = folder.join(name);
    // A name may be a folder already, and a parent a file.
    if fs::create_dir_all(path.parent().unwrap()).is_ok() {
        let _ = fs::write(path, "");
    }
}

fn part() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "ab", ".a", "run1"]);
    name.prop_map(str::to_owned)
}

fn pattern_part() -> impl Strategy<Value = String> {
    // Not `.*`, with which the crate finds `..` and no hidden file.
    let part = prop::sample::select(vec!["*", "**", "a*", "?", "[ab]", "a", "run[0-9]"]);
    part.prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn files_are_those_of_glob(
        files in prop::collection::vec(prop::collection::vec(part(), 1..5), 1..20),
        folders in prop::collection::vec(pattern_part(), 0..4),
        last in pattern_part().prop_filter("the crate finds folders only", |last| last != "**"),
        budget in 1_usize..30,
    ) {
        let folder = tempfile::tempdir().unwrap();
        for file in &files {
            write(folder.path(), &file.join("/"));
        }
        let pattern = folders.into_iter().chain([last]).collect::<Vec<_>>().join("/");
        // Other paths are not patterns.
        prop_assume!(has_wildcard(Path::new(&pattern)));
        let options = MATCHING;
        let expected: BTreeSet<PathBuf> = glob::glob_with(&folder.path().join(&pattern).to_string_lossy(), options)
            .unwrap()
            .flatten()
            .filter(|path| path.is_file())
            .collect();
        // In pieces of a few entries.
        let mut walk = PatternWalk::new(&folder.path().join(&pattern), false).unwrap();
        let mut found = Vec::new();
        loop {
            let step = walk.step(WalkBudget { entries: budget, ..unlimited() });
            prop_assert!(step.files.len() <= budget);
            prop_assert!(step.files.is_sorted());
            found.extend(step.files);
            if walk.is_complete() {
                break;
            }
        }
        let expected: Vec<PathBuf> = expected.into_iter().collect();
        prop_assert_eq!(names(folder.path(), &found), names(folder.path(), &expected), "{}", pattern);
    }
}

#[test]
fn hidden_files_match_only_patterns_with_a_dot() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a/.b/c");
    for (pattern, count) in [("**/c", 0), ("a/*/*", 0), ("**/.b/c", 1), ("a/.*/*", 1)] {
        assert_eq!(all(folder.path(), pattern, false).files.len(), count, "{pattern}");
    }
}

#[test]
fn loops_of_links_end_and_files_have_their_real_paths() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "alice/1.jsonl");
    write(folder.path(), "bob/2.jsonl");
    for (target, link) in [
        (".", "bob/latest"),
        (".", "bob/current"),
        ("..", "bob/up"),
        ("latest", "bob/again"),
        ("../alice", "bob/other"),
        ("alice/1.jsonl", "newest.jsonl"),
        ("nowhere", "broken"),
    ] {
        symlink(target, folder.path().join(link)).unwrap();
    }
    let found = all(folder.path(), "**/*.jsonl", false);
    let expected = ["alice/1.jsonl", "bob/2.jsonl", "newest.jsonl"];
    assert_eq!(
        names(folder.path(), &found.files),
        expected.map(str::to_owned).into()
    );
    assert_eq!(found.refused, []);
    // The pattern names a link.
    let found = all(folder.path(), "*/other/*.jsonl", false);
    assert_eq!(
        names(folder.path(), &found.files),
        ["bob/other/1.jsonl".to_owned()].into()
    );
}

#[test]
fn links_out_of_the_tree_are_refused_unless_they_are_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), "secret/3.jsonl");
    write(folder.path(), "alice/1.jsonl");
    let secret = outside.path().canonicalize().unwrap().join("secret");
    symlink(&secret, folder.path().join("alice/away")).unwrap();
    symlink(secret.join("3.jsonl"), folder.path().join("alice/2.jsonl")).unwrap();
    let found = all(folder.path(), "**/*.jsonl", false);
    assert_eq!(
        names(folder.path(), &found.files),
        ["alice/1.jsonl".to_owned()].into()
    );
    let refused: BTreeSet<_> = found.refused.iter().map(|(_, target)| target.clone()).collect();
    assert_eq!(refused, [secret.clone(), secret.join("3.jsonl")].into());
    let found = all(folder.path(), "**/*.jsonl", true);
    let expected = ["alice/1.jsonl", "alice/2.jsonl", "alice/away/3.jsonl"];
    assert_eq!(
        names(folder.path(), &found.files),
        expected.map(str::to_owned).into()
    );
}
