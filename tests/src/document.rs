//! Tables of measurements in documents, written by the tests that measure them.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns the path of a file that is relative to the root of the workspace; an absolute path is not changed.
pub fn workspace_path(path: impl AsRef<Path>) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    root.expect("the tests are in a folder of the workspace")
        .join(path)
}

/// Replaces the text between `<!-- NAME -->` and `<!-- end of NAME -->` in a document of the workspace.
///
/// # Panics
/// If the document cannot be read or written, or lacks the marks.
pub fn write_table(document: impl AsRef<Path>, name: &str, table: &str) {
    let path = workspace_path(document);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let marks = [format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->")];
    let [begin, end] = marks.map(|mark| text.find(&mark).map(|at| (at, mark.len())));
    let ((begin, length), (end, _)) = begin.zip(end).expect("the document has both marks");
    let text = format!("{}{table}{}", &text[..begin + length], &text[end..]);
    fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
