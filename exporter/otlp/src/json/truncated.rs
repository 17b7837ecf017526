//! Closes truncated JSON after its last complete element.

/// The lists whose elements are useful without the later ones: resources, scopes, spans, metrics, log records, the traces of
/// Jaeger and the series of Prometheus.
pub(super) const LISTS: [&[u8]; 21] = [
    b"resourceSpans",
    b"resource_spans",
    b"batches",
    b"scopeSpans",
    b"scope_spans",
    b"instrumentationLibrarySpans",
    b"ilSpans",
    b"spans",
    b"resourceMetrics",
    b"resource_metrics",
    b"scopeMetrics",
    b"scope_metrics",
    b"metrics",
    b"resourceLogs",
    b"resource_logs",
    b"scopeLogs",
    b"scope_logs",
    b"logRecords",
    b"log_records",
    b"data",
    b"result",
];

/// An open object or list.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    Object,
    /// A list, and whether its elements are useful without the later ones.
    List(bool),
}

/// Cuts truncated text after its last complete span, metric or log record and closes the open lists and objects. Returns the
/// text and the offset of the cut, or `None` if there is no complete element.
///
/// ```
/// # use pulsetrain_otlp::json::close_truncated;
/// let (text, cut) = close_truncated(br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a"},{"na"#).unwrap();
/// assert_eq!(text, br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a"}]}]}]}"#);
/// assert_eq!(cut, 55);
/// ```
pub fn close_truncated(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut open, mut name): (Vec<Open>, &[u8]) = (Vec::new(), b"");
    let (mut place, mut best) = (0, None);
    while place < text.len() {
        match text[place] {
            b'"' => {
                let Some(end) = end_of_text(text, place) else {
                    break;
                };
                name = &text[place + 1..end];
                place = end;
            }
            b'{' => open.push(Open::Object),
            b'[' => open.push(Open::List(LISTS.contains(&name))),
            b'}' | b']' => {
                open.pop()?;
                if text[place] == b'}' && open.last() == Some(&Open::List(true)) {
                    best = Some((place + 1, open.clone()));
                }
            }
            _ => {}
        }
        place += 1;
    }
    let (cut, open) = best?;
    let closing = open.iter().rev().map(|open| match open {
        Open::Object => b'}',
        Open::List(_) => b']',
    });
    Some((text[..cut].iter().copied().chain(closing).collect(), cut))
}

/// Returns the offset of the closing quote of the string that begins at `start`, or `None` if the string is truncated.
pub(super) fn end_of_text(text: &[u8], start: usize) -> Option<usize> {
    let mut place = start + 1;
    while place < text.len() {
        match text[place] {
            b'\\' => place += 1,
            b'"' => return Some(place),
            _ => {}
        }
        place += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Option<String> {
        close_truncated(text.as_bytes()).map(|(closed, _)| String::from_utf8(closed).unwrap())
    }

    #[test]
    fn closing_truncated_json_keeps_complete_elements_only() {
        let text = r#"{"batches":[{"scopeSpans":[{"spans":[{"name":"a]}","attributes":[{"key":"k"}]},{"name":"b","attributes":[{"key":"k"}"#;
        let whole = r#"{"batches":[{"scopeSpans":[{"spans":[{"name":"a]}","attributes":[{"key":"k"}]}]}]}]}"#;
        assert_eq!(cut(text).as_deref(), Some(whole));
        assert_eq!(cut(r#"{"batches":[{"scopeSpans":[{"spans":[{"name":"a"#), None);
        assert_eq!(
            cut(r#"{"data":[{"spans":[]},{"sp"#).unwrap(),
            r#"{"data":[{"spans":[]}]}"#
        );
        assert_eq!(cut("]"), None);
    }

    #[test]
    fn truncated_response_closed_at_any_offset_is_valid_json() {
        let text = r#"{"result":{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"\"é"},{"name":"b"}]}]},{"scopeSpans":[]}]}}"#;
        for end in 0..text.len() {
            if let Some((closed, at)) = close_truncated(&text.as_bytes()[..end]) {
                assert!(at <= end);
                serde_json::from_slice::<serde_json::Value>(&closed).unwrap();
            }
        }
    }
}
