//! Unwraps what container runtimes, log shippers, schedulers and launchers put around a line: the JSON of Docker, journald, clouds and
//! structured loggers, the prefix of containerd, kubectl, stern, Docker Compose, syslog and pdsh.

use std::borrow::Cow;

use pulsetrain_mapping::number_text;
use pulsetrain_otlp::{UnixNanos, write::Severity};
use pulsetrain_record::{LoggedTime, Rank};
use serde_json::{Map, Value};

use super::{
    clean::clean,
    prefix,
    tag::{Speaker, Tag, number},
    timestamp::{DateOrder, Timestamp},
};

/// A line without one envelope.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unwrapped<'a> {
    /// The line inside. It can have several lines.
    pub(super) text: Cow<'a, str>,
    pub(super) time: Option<LoggedTime>,
    /// The level of the logger.
    pub(super) level: Option<Severity>,
    pub(super) rank: Option<Rank>,
    /// The name of the host, pod or container, with its number.
    pub(super) name: Option<(String, Option<i64>)>,
    /// Whether the next line of the stream continues this one.
    pub(super) is_partial: bool,
    /// Whether the line is of the standard error.
    pub(super) is_stderr: bool,
    /// Whether only a newline at the end of the text shows that it is complete.
    pub(super) is_container: bool,
}

impl<'a> Unwrapped<'a> {
    fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            text: text.into(),
            time: None,
            level: None,
            rank: None,
            name: None,
            is_partial: false,
            is_stderr: false,
            is_container: false,
        }
    }

    /// Removes an envelope that cannot be part of a record.
    pub(super) fn strict(line: &'a str, near: UnixNanos, order: &DateOrder) -> Option<Self> {
        match line.as_bytes().first()? {
            b'{' => json(line, near, order),
            b'0'..=b'9' | b'A'..=b'Z' | b'<' => timed(line, near, order),
            _ => None,
        }
    }

    /// Removes any envelope, also one that looks like the beginning of a record: the format of the line inside proves it.
    pub(super) fn any(line: &'a str, near: UnixNanos, order: &DateOrder) -> Option<Self> {
        Self::strict(line, near, order)
            .or_else(|| tagged(line))
            .or_else(|| stamped(line, near, order))
            .or_else(|| named(line))
    }
}

impl<'a> Unwrapped<'a> {
    /// Removes an envelope that a record rarely begins with.
    pub(super) fn likely(line: &'a str, near: UnixNanos, order: &DateOrder) -> Option<Self> {
        let is_rfc_3339 = line.get(10..11) == Some("T") && line.split(' ').next()?.ends_with('Z');
        Self::strict(line, near, order)
            .or_else(|| tagged(line))
            .or_else(|| is_rfc_3339.then(|| stamped(line, near, order))?)
            .or_else(|| named(line).filter(|_| is_of_compose(line)))
    }
}

/// Returns whether a line begins with the name of a container and a bar, as Docker Compose prints it.
fn is_of_compose(line: &str) -> bool {
    let name = line.split_once("  |").map_or("", |(name, _)| name.trim_end());
    !name.contains(' ') && name.ends_with(|last: char| last.is_ascii_digit())
}

/// Removes the tag of a process.
fn tagged(line: &str) -> Option<Unwrapped<'_>> {
    let tag = Tag::parse(line.trim_start())?;
    let start = line.len() - line.trim_start().len();
    let rest = &line[start + tag.len..];
    let mut inner = Unwrapped::new(if tag.is_last { rest } else { without_space(rest) });
    match tag.speaker {
        Speaker::Ranked(rank) => inner.rank = Some(rank),
        Speaker::Numbered(name, number) => inner.name = Some((name.to_owned(), Some(number))),
        Speaker::Named(..) => {}
    }
    Some(inner)
}

/// Removes the time of `kubectl logs --timestamps`.
fn stamped<'a>(line: &'a str, near: UnixNanos, order: &DateOrder) -> Option<Unwrapped<'a>> {
    let stamp = Timestamp::parse(line, near, order).filter(|stamp| !stamp.can_be_progress)?;
    let rest = line[stamp.len..].strip_prefix([' ', '\t'])?;
    Some(Unwrapped {
        time: Some(stamp.time),
        ..Unwrapped::new(rest)
    })
}

/// Removes the name of a host or container of any kind: `alpha: `, `app-1  | `, `app-0 main `.
fn named(line: &str) -> Option<Unwrapped<'_>> {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let len = line.bytes().take_while(is_of_name).count();
    let (name, rest) = line.split_at(len);
    let bar = || {
        let rest = rest.trim_start_matches(' ').strip_prefix('|')?;
        Some(without_space(rest))
    };
    // stern prints the pod and the container.
    let container = || {
        let rest = rest.strip_prefix(' ')?;
        let rest = rest.strip_prefix("› ").unwrap_or(rest);
        let (container, rest) = rest.split_once(' ')?;
        let is_container =
            |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        (name.contains('-') && container.chars().all(is_container)).then_some(rest)
    };
    let inner = rest.strip_prefix(": ").or_else(bar).or_else(container)?;
    (len > 0).then(|| Unwrapped::new(inner))
}

/// Removes an envelope that begins with a time: of containerd, syslog, journald and Fluentd.
fn timed<'a>(line: &'a str, near: UnixNanos, order: &DateOrder) -> Option<Unwrapped<'a>> {
    // `<34>1 ` and `<34>` are priorities of RFC 5424 and RFC 3164.
    let (is_rfc_5424, start) = match line.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((priority, rest)) if number(priority).is_some() => match rest.strip_prefix("1 ") {
            Some(rest) => (true, line.len() - rest.len()),
            None => (false, line.len() - rest.len()),
        },
        Some(_) => return None,
        None => (false, 0),
    };
    let stamp = Timestamp::parse(&line[start..], near, order)?;
    let rest = &line[start + stamp.len..];
    let inner = match is_rfc_5424 {
        true => rfc_5424(rest),
        false => containerd(rest)
            .or_else(|| syslog(rest))
            .or_else(|| fluentd(rest)),
    };
    Some(Unwrapped {
        time: Some(stamp.time),
        ..inner?
    })
}

/// Parses ` stdout F text`, where `P` marks a line that continues.
fn containerd(rest: &str) -> Option<Unwrapped<'_>> {
    let (stream, rest) = rest.strip_prefix(' ')?.split_once(' ')?;
    let is_stderr = match stream {
        "stdout" => false,
        "stderr" => true,
        _ => return None,
    };
    let (tags, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let is_partial = match tags.split(':').next()? {
        "F" => false,
        "P" => true,
        _ => return None,
    };
    Some(Unwrapped {
        is_partial,
        is_stderr,
        ..Unwrapped::new(text)
    })
}

/// Parses ` host program[12]: text`.
fn syslog(rest: &str) -> Option<Unwrapped<'_>> {
    let (host, rest) = rest.trim_start_matches(' ').split_once(' ')?;
    let (program, text) = rest.split_once("]: ")?;
    let (program, pid) = program.split_once('[')?;
    let is_program = !program.is_empty() && !program.contains([' ', '=', ':']);
    let is_host = !prefix::is_level(host);
    (is_host && is_program && number_of_any_length(pid)).then(|| Unwrapped {
        name: Some((host.to_owned(), None)),
        ..Unwrapped::new(text)
    })
}

/// Parses ` host program 12 message-id - text`, with `-` or `[...]` for the structured data.
fn rfc_5424(rest: &str) -> Option<Unwrapped<'_>> {
    let mut words = rest.trim_start_matches(' ').splitn(5, ' ');
    let (host, _, _, _) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let rest = words.next()?;
    let text = match rest.strip_prefix("- ") {
        Some(text) => text,
        None => rest.strip_prefix('[')?.split_once("] ")?.1,
    };
    Some(Unwrapped {
        name: Some((host.to_owned(), None)),
        ..Unwrapped::new(text.strip_prefix('\u{feff}').unwrap_or(text))
    })
}

/// Parses `\ttag\t{...}`, whose object is another envelope or a record.
fn fluentd(rest: &str) -> Option<Unwrapped<'_>> {
    let (_, object) = rest.strip_prefix('\t')?.split_once('\t')?;
    object.starts_with('{').then(|| Unwrapped::new(object))
}

/// The keys of the text of a line, the more specific ones first.
const TEXTS: [&str; 9] = [
    "log",
    "MESSAGE",
    "textPayload",
    "message",
    "msg",
    "line",
    "body",
    "text",
    "event",
];

/// The keys of the time of a line.
const TIMES: [&str; 10] = [
    "time",
    "timestamp",
    "@timestamp",
    "ts",
    "asctime",
    "datetime",
    "date",
    "__REALTIME_TIMESTAMP",
    "_SOURCE_REALTIME_TIMESTAMP",
    "created",
];

/// The keys of numbers that describe a line and are no values of training.
const DESCRIPTIONS: [&str; 20] = [
    "pid",
    "process",
    "process_id",
    "thread",
    "thread_id",
    "tid",
    "line",
    "lineno",
    "line_no",
    "level",
    "levelno",
    "severity",
    "priority",
    "msecs",
    "relativeCreated",
    "relative_created",
    "rank",
    "local_rank",
    "global_rank",
    "world_size",
];

/// The keys of objects that describe the source of a line.
const SOURCES: [&str; 9] = [
    "resource",
    "labels",
    "kubernetes",
    "sourceLocation",
    "logging.googleapis.com/sourceLocation",
    "host",
    "agent",
    "docker",
    "source",
];

/// The keys of the level.
const LEVELS: [&str; 5] = ["level", "severity", "levelname", "lvl", "log_level"];

/// Parses an object with the text of a line, unless it has values of training: then it is the record.
fn json<'a>(line: &'a str, near: UnixNanos, order: &DateOrder) -> Option<Unwrapped<'a>> {
    let line = line.trim_end();
    let has_text = || {
        TEXTS
            .iter()
            .any(|key| memchr::memmem::find(line.as_bytes(), key.as_bytes()).is_some())
    };
    if !line.ends_with('}') || !has_text() {
        return None;
    }
    let object: Map<String, Value> = serde_json::from_str(line).ok()?;
    let inner = object.get("jsonPayload").and_then(Value::as_object);
    let text = TEXTS.iter().find_map(|key| {
        let nested = inner.and_then(|inner| inner.get(*key));
        object.get(*key).or(nested)?.as_str()
    })?;
    let is_container = object.contains_key("log") && object.contains_key("stream");
    let has_digits = text.contains(|letter: char| letter.is_ascii_digit());
    let is_message = is_container || !has_values(&object) && (has_digits || is_described(&object));
    if !is_message {
        return None;
    }
    let found = |key: &str| object.get(key).or_else(|| inner?.get(key));
    let integer = |key: &str| found(key).and_then(Value::as_i64);
    let job = integer("rank")
        .or_else(|| integer("global_rank"))
        .map(Rank::OfJob);
    let host = ["_HOSTNAME", "hostname", "host"]
        .iter()
        .find_map(|key| found(key)?.as_str());
    let pod = object
        .get("kubernetes")
        .and_then(|kubernetes| kubernetes.get("pod_name")?.as_str());
    let name = pod.map_or_else(
        || Some((host?.to_owned(), None)),
        |pod| Some((pod.to_owned(), pod.rsplit('-').next().and_then(number))),
    );
    let printed = text.strip_suffix('\n').unwrap_or(text);
    Some(Unwrapped {
        time: TIMES.iter().find_map(|key| time(found(key)?, near, order)),
        level: LEVELS
            .iter()
            .find_map(|key| prefix::severity(found(key)?.as_str()?)),
        rank: job.or_else(|| integer("local_rank").map(Rank::OfHost)),
        name,
        is_partial: is_container && printed.len() == text.len(),
        is_stderr: found("stream").is_some_and(|stream| stream == "stderr"),
        is_container,
        ..Unwrapped::new(clean(printed.as_bytes()).into_owned())
    })
}

/// Returns whether an object has numbers that are values of training.
fn has_values(object: &Map<String, Value>) -> bool {
    object.iter().any(|(key, value)| match value {
        Value::Number(_) => !is_description(key),
        Value::String(text) => number_text::finite(text).is_some() && !is_description(key),
        Value::Array(items) => items.iter().any(Value::is_number),
        Value::Object(inner) => !SOURCES.contains(&key.as_str()) && has_values(inner),
        _ => false,
    })
}

/// Keys of texts that describe a line.
const ABOUT: [&str; 7] = [
    "jsonPayload",
    "logger",
    "name",
    "levelname",
    "stream",
    "logName",
    "receiveTimestamp",
];

/// Returns whether an object has nothing but the text of a line and its description.
fn is_described(object: &Map<String, Value>) -> bool {
    object.iter().all(|(key, value)| match value {
        Value::Object(inner) if SOURCES.contains(&key.as_str()) => !has_values(inner),
        _ => is_description(key) || TEXTS.contains(&key.as_str()) || ABOUT.contains(&key.as_str()),
    })
}

/// Returns whether the numbers of a key describe a line. The keys of journald are in capitals.
fn is_description(key: &str) -> bool {
    let is_of_journald = !key.contains(|letter: char| letter.is_ascii_lowercase());
    let is_id = key.to_ascii_lowercase().ends_with("id");
    is_of_journald || is_id || DESCRIPTIONS.contains(&key) || TIMES.contains(&key)
}

/// Parses a time of an object: a text, or a number since 1970.
fn time(value: &Value, near: UnixNanos, order: &DateOrder) -> Option<LoggedTime> {
    let text = match value {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        Value::Number(number) => Cow::Owned(number.to_string()),
        _ => return None,
    };
    let stamp = Timestamp::parse(&text, near, order)?;
    (stamp.len == text.len()).then_some(stamp.time)
}

fn number_of_any_length(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn without_space(text: &str) -> &str {
    text.strip_prefix(' ').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2025-12-13 14:02:11, as if it were UTC.
    const EXPECTED: u64 = 1_765_634_531_000_000_000;
    const RECORD: &str = "step 10 | loss 2.5";

    fn strict(line: &str) -> Option<Unwrapped<'_>> {
        Unwrapped::strict(line, UnixNanos(EXPECTED), &DateOrder::default())
    }

    #[test]
    fn envelopes_are_removed_and_their_times_are_kept() {
        for line in [
            r#"{"log":"step 10 | loss 2.5\n","stream":"stdout","time":"2025-12-13T14:02:11Z"}"#,
            r#"{"date":1765634531.0,"log":"step 10 | loss 2.5","kubernetes":{"pod_name":"train-3"}}"#,
            r#"{"insertId":"a","jsonPayload":{"message":"step 10 | loss 2.5","lineno":3},"timestamp":"2025-12-13T14:02:11Z"}"#,
            r#"{"event":"step 10 | loss 2.5","level":"info","timestamp":"2025-12-13T14:02:11Z"}"#,
            r#"{"__REALTIME_TIMESTAMP":"1765634531000000","MESSAGE":"step 10 | loss 2.5","_PID":"12"}"#,
            "2025-12-13T14:02:11Z stdout F step 10 | loss 2.5",
            "2025-12-13T14:02:11+0000 gpu-3 python[4711]: step 10 | loss 2.5",
            "<34>1 2025-12-13T14:02:11Z gpu-3 train 12 - - step 10 | loss 2.5",
        ] {
            let inner = strict(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(inner.text, RECORD, "{line}");
            assert_eq!(inner.time, Some(LoggedTime::Utc(UnixNanos(EXPECTED))), "{line}");
            assert!(!inner.is_partial, "{line}");
        }
        let inner = strict("Dec 13 14:02:11 gpu-3 python[4711]: step 10 | loss 2.5").unwrap();
        assert_eq!(
            (inner.text.as_ref(), inner.time),
            (RECORD, Some(LoggedTime::Local(EXPECTED)))
        );
    }

    #[test]
    fn lines_that_continue_are_marked() {
        for line in [
            r#"{"log":"step 10 | lo","stream":"stderr","time":"2025-12-13T14:02:11Z"}"#,
            "2025-12-13T14:02:11Z stderr P step 10 | lo",
        ] {
            let inner = strict(line).unwrap();
            assert!(inner.is_partial && inner.is_stderr, "{line}");
        }
    }

    #[test]
    fn records_are_not_envelopes() {
        for line in [
            r#"{"step": 10, "loss": 2.5, "message": "train step 10"}"#,
            r#"{"event": "train", "fields": {"step": 50, "loss": 2.5}}"#,
            r#"{"loss": 2.5}"#,
            r#"{"message":"train 1","step":"10","loss":"2.31"}"#,
            r#"{"event":"eval_start","split":"val"}"#,
            r#"{"msg":"update","agent":{"loss":1.2}}"#,
            r#"{"log": "#,
            "2025-12-13 14:02:11 train loss: 2.5",
            "2025-12-13 14:02:11 INFO step[10]: 2.5",
            "Dec 13 14:02:11 step 10 loss 2.5",
            "",
        ] {
            assert_eq!(strict(line), None, "{line}");
        }
    }

    #[test]
    fn other_envelopes_are_removed_if_the_format_inside_proves_them() {
        for line in [
            "alpha: step 10 | loss 2.5",
            "app-1  | step 10 | loss 2.5",
            "app-0 main step 10 | loss 2.5",
            "2025-12-13T14:02:11.123456789Z step 10 | loss 2.5",
            "[pod/train-3/main] step 10 | loss 2.5",
        ] {
            let inner = Unwrapped::any(line, UnixNanos(EXPECTED), &DateOrder::default()).unwrap();
            assert_eq!(inner.text, RECORD, "{line}");
        }
    }
}
