//! The path and the query string of a request.

use std::fmt::{Display, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// A path with its query parameters.
pub(super) struct Query(String);

impl Query {
    pub(super) fn new(path: &str) -> Self {
        Self(format!("{path}?"))
    }

    /// Adds a parameter.
    pub(super) fn with(mut self, name: &str, value: impl Display) -> Self {
        let value = value.to_string();
        let value = utf8_percent_encode(&value, &PLAIN);
        let name = utf8_percent_encode(name, &PLAIN);
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{name}={value}&");
        self
    }

    pub(super) fn finish(mut self) -> String {
        self.0.pop();
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_characters_of_a_query_are_percent_encoded() {
        let path = Query::new("/api/search")
            .with("q", "{ a = \"b&c\" }")
            .with("n", 5)
            .finish();
        assert_eq!(path, "/api/search?q=%7B%20a%20%3D%20%22b%26c%22%20%7D&n=5");
    }
}
