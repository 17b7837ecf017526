//! `${file:PATH}` in a configuration: the content of a file, such as a mounted secret, as a value or as a part of one.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read},
    path::Path,
};

use pulsetrain_pipeline::Problem;

use super::{Fault, Location, variables::references};

/// The limit on the size of a file in bytes.
const MAX_BYTES: u64 = 64 << 10;
const PREFIX: &str = "file:";

/// Replaces each reference to a file by a reference to a variable that holds the content, without trailing line breaks.
/// The name of the variable has the length of the reference, so that all places stay correct. Relative paths are relative
/// to the folder of the configuration.
///
/// # Errors
/// Returns an error if a file cannot be read, with the place of the reference. No error contains the content.
pub(super) fn expand(
    file: &str,
    text: &str,
    variables: &HashMap<String, String>,
) -> Result<(String, HashMap<String, String>), Fault> {
    let (mut expanded, mut variables) = (String::with_capacity(text.len()), variables.clone());
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    let is_file = |(_, reference): &(usize, &str)| reference.starts_with(PREFIX);
    let mut copied = 0;
    for (number, (start, reference)) in references(text).filter(is_file).enumerate() {
        let path = folder.join(&reference[PREFIX.len()..]);
        let content = read(&path).map_err(|error| {
            let message = Problem::new(format!("{} cannot be read: {error}", path.display()))
                .with_remedy("check the path and its permissions");
            Fault::at(file, Location::from_offset(text, start), message)
        })?;
        let name = format!("F{number:0width$}", width = reference.chars().count() - 1);
        expanded.push_str(&text[copied..start]);
        expanded.push_str(&format!("${{{name}}}"));
        copied = start + "${}".len() + reference.len();
        variables.insert(name, content);
    }
    expanded.push_str(&text[copied..]);
    Ok((expanded, variables))
}

fn read(path: &Path) -> io::Result<String> {
    let mut content = String::new();
    File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_string(&mut content)?;
    if content.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it is longer than 64 KiB"));
    }
    content.truncate(content.trim_end_matches(['\r', '\n']).len());
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_content_becomes_the_value_and_locations_stay() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tökén"), "s3cret: \"x\"\n").unwrap();
        let config = folder.path().join("agent.yaml");
        let file = config.display().to_string();
        let text =
            "# ${file:missing}\na: ${file:tökén} # ${file:missing}\nb: $${file:x} ${file:tökén}${NOT:-y}\n";
        let (expanded, variables) = expand(&file, text, &HashMap::new()).unwrap();
        assert_eq!(
            expanded,
            "# ${file:missing}\na: ${F000000000} # ${file:missing}\nb: $${file:x} ${F000000001}${NOT:-y}\n"
        );
        assert!(variables.values().all(|content| content == "s3cret: \"x\""));
        assert_eq!(variables.len(), 2);
    }

    #[test]
    fn unreadable_value_file_is_reported_with_its_location() {
        let fault = expand("/etc/agent.yaml", "a: 1\nbc: ${file:/not/there}", &HashMap::new()).unwrap_err();
        let message = fault.to_string();
        assert!(
            message.starts_with("/etc/agent.yaml:2:5: /not/there cannot be read: No such file"),
            "{message}"
        );
    }
}
