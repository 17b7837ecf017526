//! Splits answers that do not fit into memory between the elements of their lists.

use std::io::Read;

use pulsetrain_otlp::{json::Pieces, limits::Limits};

use super::QueryResponse;

/// The size in bytes of one read; a smaller answer is read in one piece.
const READ_BYTES: usize = 16 << 20;
/// The size in bytes from which an element of the outermost list is split.
const SPLIT_ELEMENT_BYTES: usize = 4 * READ_BYTES;
/// The limit in bytes on an element that cannot be split: one trace in Jaeger's own JSON.
const MAX_ELEMENT_BYTES: usize = 1 << 30;

/// Reads an answer of any size and passes its parts to `take` as they are read.
///
/// # Errors
///
/// Returns the error of `take`. Faults of the input are reported as problems.
pub fn read_responses<E>(
    input: impl Read,
    limits: &Limits,
    take: impl FnMut(QueryResponse) -> Result<(), E>,
) -> Result<(), E> {
    read_in_pieces(
        input,
        (READ_BYTES, SPLIT_ELEMENT_BYTES, MAX_ELEMENT_BYTES),
        limits,
        take,
    )
}

fn read_in_pieces<E>(
    mut input: impl Read,
    (piece, deep, largest): (usize, usize, usize),
    limits: &Limits,
    mut take: impl FnMut(QueryResponse) -> Result<(), E>,
) -> Result<(), E> {
    let (mut pieces, mut text, mut offset) = (Pieces::default(), Vec::new(), 0_u64);
    let mut problems = Vec::new();
    loop {
        let wanted = text.len().max(piece) as u64;
        match input.by_ref().take(wanted).read_to_end(&mut text) {
            Ok(count) if count as u64 == wanted => {}
            Ok(_) => break,
            Err(error) => {
                let at = offset + text.len() as u64;
                problems.push(format!("cannot read on at byte {at}: {error}"));
                break;
            }
        }
        let mut taken = 0;
        while let Some(piece) = pieces.take(&text[taken..], text.len() - taken >= deep) {
            let shift = (offset + taken as u64) as i64 + piece.shift;
            let mut answer = QueryResponse {
                shift,
                ..QueryResponse::default()
            };
            answer.take_all(&piece.text, limits);
            take(answer)?;
            taken += piece.length;
        }
        text.drain(..taken);
        offset += taken as u64;
        if text.len() > largest {
            problems.push(format!(
                "the trace at byte {offset} has more than {largest} bytes; ask the store for less at a time"
            ));
            return take(QueryResponse {
                problems,
                ..QueryResponse::default()
            });
        }
    }
    let mut answer = QueryResponse::default();
    let is_over = !pieces.is_inside() && offset > 0 && text.trim_ascii().is_empty();
    if !is_over {
        let rest = pieces.rest(&text);
        answer.shift = offset as i64 + rest.shift;
        answer.used_until = pieces.is_inside().then_some(offset);
        drop(text);
        answer.take_all(&rest.text, limits);
    }
    problems.append(&mut answer.problems);
    take(QueryResponse { problems, ..answer })
}

#[cfg(test)]
mod tests {
    use pulsetrain_otlp::limits::check;

    use super::*;

    const SPAN: &str = r#"{"spanId":"AAAAAAAAAAE=","name":"a"}"#;
    const JAEGERS: &str =
        r#"{"traceID":"1","spanID":"1","operationName":"a","startTime":1,"duration":1,"processID":"p"}"#;

    /// Returns answers in each form, with `count` spans.
    fn answers(count: usize) -> [(String, &'static str); 4] {
        let element = format!("{{\"scopeSpans\":[{{\"spans\":[{SPAN}]}}]}}");
        let all = vec![element; count].join(", ");
        let within = format!(
            "{{\"scopeSpans\":[{{\"spans\":[{}]}}]}}",
            vec![SPAN; count].join(",")
        );
        let trace = format!(
            "{{\"traceID\":\"1\",\"spans\":[{JAEGERS}],\"processes\":{{\"p\":{{\"serviceName\":\"s\"}}}}}}"
        );
        let traces = vec![trace; count].join(",\n");
        [
            (format!("{{\"batches\":[{all}]}}"), SPAN),
            (
                format!("\u{feff}{{\"trace\":{{\"resourceSpans\":[{all}]}}}}\n"),
                SPAN,
            ),
            (format!("{{\"result\":{{\"resourceSpans\":[{within}]}}}}"), SPAN),
            (format!("{{\"data\":[{traces}]}}"), JAEGERS),
        ]
    }

    /// Returns the number of spans of each part, and the problems.
    fn read(text: &[u8], sizes: (usize, usize, usize)) -> (Vec<u64>, Vec<String>) {
        let (mut spans, mut problems) = (Vec::new(), Vec::new());
        let outcome = read_in_pieces(text, sizes, &Limits::default(), |answer| {
            for (signal, bytes) in &answer.messages {
                spans.push(check(*signal, bytes, &Limits::default())?.items);
            }
            problems.extend(answer.problems);
            Ok::<_, pulsetrain_otlp::limits::LimitError>(())
        });
        outcome.expect("messages are OTLP");
        (spans, problems)
    }

    #[test]
    fn large_response_read_in_pieces_yields_every_span_once() {
        for (text, _) in answers(50) {
            for piece in [1, 7, 100, 1_000, 100_000] {
                let (spans, problems) = read(text.as_bytes(), (piece, 400, 100_000));
                assert_eq!((spans.iter().sum(), problems), (50, vec![]), "{piece}: {text}");
            }
        }
    }

    #[test]
    fn truncated_large_response_yields_complete_spans_and_reports_where_they_end() {
        for (text, span) in answers(6) {
            let ends: Vec<usize> = text.match_indices(span).map(|(at, _)| at + span.len()).collect();
            let end = text.trim_end().len();
            for cut in 1..end {
                for piece in [64, 100_000] {
                    let (spans, problems) = read(&text.as_bytes()[..cut], (piece, 200, 100_000));
                    let whole = ends.iter().filter(|end| **end <= cut).count();
                    assert_eq!(spans.iter().sum::<u64>(), whole as u64, "{cut}: {problems:?}");
                    assert_eq!(problems.len(), 1, "{cut}: {problems:?}");
                    let until = problems[0].split_once("before byte ").map(|(_, rest)| {
                        let digits = rest.split(' ').next().unwrap_or_default();
                        digits.parse::<usize>().expect("a place is a number")
                    });
                    let last = ends.iter().rfind(|end| **end <= cut).copied();
                    assert!(until.is_some() || last.is_none(), "{cut}: {problems:?}");
                    assert!(
                        until.is_none_or(|until| last <= Some(until) && until <= cut),
                        "{cut}: {problems:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn error_in_a_piece_has_its_offset_in_the_response() {
        let [(text, _), ..] = answers(40);
        let text = text.replace("\"a\"", "7").replacen("7", "\"a\"", 39);
        let (spans, problems) = read(text.as_bytes(), (200, 400, 100_000));
        assert_eq!(spans.iter().sum::<u64>(), 39);
        let at = text.rfind('7').expect("the fault is there");
        assert_eq!(problems, [format!("expected a string in `name` at byte {at}")]);
    }

    #[test]
    fn too_large_trace_is_reported_and_earlier_ones_are_kept() {
        let spans = vec![JAEGERS; 50].join(",");
        let text =
            format!("{{\"data\":[{{\"spans\":[{JAEGERS}],\"processes\":{{}}}},{{\"spans\":[{spans}]}}]}}");
        let (spans, problems) = read(text.as_bytes(), (200, 400, 1_000));
        assert_eq!(spans, [1]);
        assert!(problems[0].contains("ask the store for less"), "{problems:?}");
    }
}
