//! A streaming JSON writer, which builds no tree of values.

use std::fmt::Write;

use serde_json::Value;

/// JSON that is being written.
#[derive(Debug, Default)]
pub(super) struct JsonWriter {
    text: String,
    /// Whether the next value needs a comma before it.
    needs_comma: bool,
}

impl JsonWriter {
    /// Returns the text.
    pub(super) fn finish(self) -> String {
        self.text
    }

    /// Writes an object with the members that `write` adds.
    pub(super) fn object(&mut self, write: impl FnOnce(&mut Self)) {
        self.nested('{', '}', write);
    }

    /// Writes a list with the items that `write` adds.
    pub(super) fn list(&mut self, write: impl FnOnce(&mut Self)) {
        self.nested('[', ']', write);
    }

    /// Writes the key of the next value.
    pub(super) fn key(&mut self, key: &str) -> &mut Self {
        self.text(key);
        self.text.push(':');
        self.needs_comma = false;
        self
    }

    pub(super) fn text(&mut self, text: &str) {
        self.separate();
        // A string always has a JSON form.
        self.text.push_str(&Value::from(text).to_string());
    }

    pub(super) fn integer(&mut self, value: i64) {
        self.separate();
        self.text.push_str(itoa::Buffer::new().format(value));
    }

    /// Writes a number, or `null` for NaN and infinities, which JSON does not have.
    pub(super) fn number(&mut self, value: f64) {
        self.separate();
        if value.is_finite() {
            self.text.push_str(zmij::Buffer::new().format_finite(value));
        } else {
            self.text.push_str("null");
        }
    }

    /// Writes a number of single precision with the fewest digits.
    pub(super) fn single(&mut self, value: f32) {
        self.separate();
        if value.is_finite() {
            self.text.push_str(zmij::Buffer::new().format_finite(value));
        } else {
            self.text.push_str("null");
        }
    }

    /// Writes a number, or a string for NaN and infinities.
    pub(super) fn any_number(&mut self, value: f64) {
        if value.is_finite() {
            self.number(value);
        } else {
            self.separate();
            // `NaN`, `inf` and `-inf` need no escaping.
            let _ = write!(self.text, "\"{value}\"");
        }
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.separate();
        self.text.push_str(if value { "true" } else { "false" });
    }

    pub(super) fn null(&mut self) {
        self.separate();
        self.text.push_str("null");
    }

    /// Writes an integer, or `null`.
    pub(super) fn optional(&mut self, value: Option<i64>) {
        match value {
            Some(value) => self.integer(value),
            None => self.null(),
        }
    }

    fn nested(&mut self, open: char, close: char, write: impl FnOnce(&mut Self)) {
        self.separate();
        self.text.push(open);
        self.needs_comma = false;
        write(self);
        self.text.push(close);
        self.needs_comma = true;
    }

    fn separate(&mut self) {
        if self.needs_comma {
            self.text.push(',');
        }
        self.needs_comma = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_values_of_every_type_round_trip() {
        let mut json = JsonWriter::default();
        json.object(|json| {
            json.key("text").text("a \"b\"\n</script>");
            json.key("list").list(|json| {
                json.integer(-1);
                json.number(0.1);
                json.single(0.1);
                json.number(f64::NAN);
                json.any_number(f64::INFINITY);
                json.boolean(true);
                json.optional(None);
                json.object(|_| {});
            });
        });
        let read: Value = serde_json::from_str(&json.finish()).unwrap();
        assert_eq!(
            read,
            serde_json::json!({
                "text": "a \"b\"\n</script>",
                "list": [-1, 0.1, 0.1, null, "inf", true, null, {}],
            })
        );
    }
}
