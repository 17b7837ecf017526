//! Converts stack traces of exceptions to callstacks of their events, which viewers show as a tree.
//!
//! In OTel, a stack trace is the text that a language prints. Python, the JVM, JavaScript, .NET and Go print one call per line
//! in a fixed format. The text of other languages is not converted; the event has the complete text in every case.

use pulsetrain_otlp::view::{AnyValue, KeyValue, Repeated};
use pulsetrain_perfetto::{Event, StackFrame};

use super::config::AttributePolicy;

/// The name of the event of an exception.
pub(super) const EVENT: &[u8] = b"exception";

/// The attribute with the text.
const STACK_TRACE: &[u8] = b"exception.stacktrace";

/// The limit for frames of a callstack; the innermost are kept.
const MAX_FRAMES: usize = 256;

/// The first line of Python's text, which the outermost call follows.
const PYTHON: &str = "Traceback (most recent call last):";

/// The first words after the calls of an exception: its cause and suppressed exceptions (JVM), and the outer exception (.NET).
const OTHERS: [&str; 3] = ["Caused by:", "Suppressed:", "--- End of inner exception"];

/// Adds the callstack of an exception, if the attributes contain a stack trace and the policy selects it.
pub(super) fn add(attributes: Repeated<'_, KeyValue<'_>>, policy: &AttributePolicy, event: &mut Event<'_>) {
    if !policy.shows(STACK_TRACE) {
        return;
    }
    let mut texts = attributes.iter().flatten().filter_map(|attribute| {
        let is_trace = attribute.key.as_bytes() == STACK_TRACE;
        match attribute.value {
            Some(AnyValue::String(text)) if is_trace => Some(text),
            _ => None,
        }
    });
    if let Some(text) = texts.next() {
        let text = text.to_str_lossy();
        let frames = frames(&text);
        if !frames.is_empty() {
            event.callstack(frames.iter().copied());
        }
    }
}

/// Returns the calls in a text, the outermost first.
fn frames(text: &str) -> Vec<StackFrame<'_>> {
    let mut frames = match text.rsplit_once(PYTHON) {
        Some((_, last)) => last.lines().filter_map(python).collect(),
        None => innermost_first(text),
    };
    frames.drain(..frames.len().saturating_sub(MAX_FRAMES));
    frames
}

fn innermost_first(text: &str) -> Vec<StackFrame<'_>> {
    let mut frames: Vec<_> = if text.starts_with("goroutine ") {
        go(text)
    } else {
        let own = text
            .lines()
            .take_while(|line| !OTHERS.iter().any(|other| line.trim_start().starts_with(other)));
        own.filter_map(at).collect()
    };
    frames.reverse();
    frames
}

/// Parses a line of Python: `  File "train.py", line 12, in step`.
fn python(line: &str) -> Option<StackFrame<'_>> {
    let line = line.trim_start_matches([' ', '|']).strip_prefix("File \"")?;
    let (file, rest) = line.split_once("\", line ")?;
    let (line, function) = rest.split_once(", in ")?;
    Some(StackFrame {
        function: function.trim_end(),
        file,
        line: line.parse().ok()?,
    })
}

/// Parses a line of the JVM, of JavaScript or of .NET: `at org.Main.run(Main.java:12)`, `at run (/app/main.js:12:5)`,
/// `at /app/main.js:12:5`, `at App.Main.Run(String name) in /app/Main.cs:line 12`.
fn at(line: &str) -> Option<StackFrame<'_>> {
    let call = line.trim().strip_prefix("at ")?;
    if let Some((function, place)) = call.rsplit_once(" in ")
        && let Some((file, line)) = place.rsplit_once(":line ")
    {
        return Some(StackFrame {
            function,
            file,
            line: line.parse().ok()?,
        });
    }
    if let Some((function, place)) = call.strip_suffix(')').and_then(|call| call.rsplit_once('(')) {
        let function = function.trim_end();
        return Some(match place_of(place) {
            Some((file, line)) => StackFrame { function, file, line },
            // `Native Method`, or the parameters of .NET.
            None => StackFrame {
                function,
                ..StackFrame::default()
            },
        });
    }
    let (file, line) = place_of(call)?;
    Some(StackFrame {
        function: "(anonymous)",
        file,
        line,
    })
}

/// Splits `main.js:12:5` and `Main.java:12` into the file and the line.
fn place_of(text: &str) -> Option<(&str, u32)> {
    let (file, last) = text.rsplit_once(':')?;
    let last: u32 = last.parse().ok()?;
    let with_column = file
        .rsplit_once(':')
        .and_then(|(file, line)| Some((file, line.parse().ok()?)));
    Some(with_column.unwrap_or((file, last)))
}

/// Parses the first goroutine: a line `main.run(0x1, 0x2)`, and below it `<tab>/app/main.go:12 +0x1d`.
fn go(text: &str) -> Vec<StackFrame<'_>> {
    let lines: Vec<&str> = text.lines().skip(1).take_while(|line| !line.is_empty()).collect();
    lines
        .chunks_exact(2)
        .map_while(|call| {
            let function = match call[0].strip_prefix("created by ") {
                Some(creator) => creator.split(" in goroutine ").next()?,
                None => call[0].rsplit_once('(').map_or(call[0], |(function, _)| function),
            };
            let place = call[1].strip_prefix('\t')?;
            let (file, line) = place_of(place.split(" +0x").next()?)?;
            Some(StackFrame { function, file, line })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(&str, &str, u32)> {
        let frames = frames(text).into_iter();
        frames
            .map(|frame| (frame.function, frame.file, frame.line))
            .collect()
    }

    #[test]
    fn stack_trace_of_every_language_starts_with_the_outermost_call() {
        let python = "Traceback (most recent call last):\n  File \"a.py\", line 1, in old\nKeyError: 1\n\nDuring handling of the above \
                      exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"/app/train.py\", line 90, in \
                      <module>\n    main()\n    ~~~~^^\n  File \"/app/train.py\", line 12, in step\n    loss.backward()\nRuntimeError: no";
        let jvm = "java.lang.IllegalStateException: no\n\tat org.app.Main.step(Main.java:12)\n\tat \
                   java.base/java.lang.Thread.run(Native Method)\n\tSuppressed: java.io.IOException\n\t\tat org.app.Disk.close(Disk.java:9)\nCaused by: java.io.IOException\n\tat org.app.Disk.read(Disk.java:3)\n\t... 2 more";
        let node = "Error: no\n    at step (/app/main.js:12:5)\n    at async Promise.all (index 0)\n    at file:///app/main.mjs:90:1";
        let net = "System.Exception: no\n   at App.Main.Step(String name) in /app/Main.cs:line 12\n   at App.Main.Run(Int32 a, Int32 b)";
        let go = "goroutine 1 [running]:\nmain.step(0x1, 0x2)\n\t/app/main.go:12 +0x1d\ncreated by main.(*App).main in goroutine 1\n\t/app/main.go:90 \
                  +0x2a\n\ngoroutine 2 [idle]:\nmain.other()\n\t/app/other.go:1 +0x1";
        for (text, expected) in [
            (
                python,
                &[("<module>", "/app/train.py", 90), ("step", "/app/train.py", 12)][..],
            ),
            (
                jvm,
                &[
                    ("java.base/java.lang.Thread.run", "", 0),
                    ("org.app.Main.step", "Main.java", 12),
                ],
            ),
            (
                node,
                &[
                    ("(anonymous)", "file:///app/main.mjs", 90),
                    ("async Promise.all", "", 0),
                    ("step", "/app/main.js", 12),
                ],
            ),
            (
                net,
                &[
                    ("App.Main.Run", "", 0),
                    ("App.Main.Step(String name)", "/app/Main.cs", 12),
                ],
            ),
            (
                go,
                &[
                    ("main.(*App).main", "/app/main.go", 90),
                    ("main.step", "/app/main.go", 12),
                ],
            ),
            ("a text of another kind: it stays text", &[]),
            ("", &[]),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn deep_recursion_keeps_the_innermost_frames() {
        let calls = (1..=1000).map(|line| format!("  File \"a.py\", line {line}, in f\n"));
        let text = format!("{PYTHON}\n{}", calls.collect::<String>());
        let frames = shown(&text);
        assert_eq!(frames.len(), MAX_FRAMES);
        assert_eq!(frames.last(), Some(&("f", "a.py", 1000)));
    }
}
