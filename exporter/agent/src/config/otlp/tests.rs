//! Tests of the settings of an OTLP sink that are rejected, with their places, and of the values that are never printed.

use std::{collections::HashMap, time::Duration};

use pulsetrain_pipeline::GiveUp;

use crate::config::{Config, SinkConfig, check, print, read::parse};

fn parsed(text: &str) -> Config {
    parse("agent.yaml", text, &HashMap::new()).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

/// Keys of an OTLP sink, one fault a line, and a part of its message; ` / ` is a line break.
const FAULTS: &str = r#"compression: s3cret => 4:20: sinks.o: compression: set it to gzip, zstd or none
compression: gzip / compression_level: 10 => 5:26: sinks.o: compression: gzip has the levels 1 to 9
compression_level: 1 => 4:26: sinks.o: compression_level needs compression
encoding: s3cret => 4:17: sinks.o: encoding: set it to protobuf or json
endpoint: grpc://h / encoding: json => 5:17: sinks.o: gRPC has one encoding
endpoint: http://h:x/?key=s3cret => 4:17: sinks.o: target is "http://h:x/?..."
endpoint: http://user:s3cret@h => 4:17: sinks.o: target holds a user or a password
headers: {"a b": s3cret} => headers: entry 1 has a key that is not a header name
headers: {a: "s3cret\n"} => headers: entry 1 has a value with a line break
basic_auth: {user: u} => 4:26: sinks.o: basic_auth has a user and one of
basic_auth: {user: u, password: s3cret, password_file: f} => basic_auth has a user and one of
basic_auth: {user: "u:s3cret", password: x} => has a colon
bearer_token_file: f / basic_auth: {user: u, password: s3cret} => keep one
bearer_token_file: f / headers: {Authorization: s3cret} => keep one
bearer_token_file: /not/there => bearer_token_file: cannot use /not/there: No such file
endpoint: https://h / tls: {certificate: c} => 5:26: sinks.o: tls.certificate is set but tls.key is not
endpoint: https://h / tls: {ca: /not/there} => tls.ca: cannot use /not/there
endpoint: https://h / tls: {server_name: "a b"} => tls.server_name is
endpoint: http://h / tls: {ca: f} => 4:17: sinks.o: tls is set, but the endpoint is a plain one
queue: {bytes: 0B} => 4:22: sinks.o.otlp: a queue of zero
queue: {bytes: 255KiB} => 4:22: sinks.o.otlp: a queue below 256KiB has no room for a batch of logs
concurrency: 0 => 4:20: sinks.o.otlp: concurrency is 0
retry: {initial: 1ms} => 4:24: sinks.o.otlp: a retry every few milliseconds
attributes: [{drop: a}, {hash: a}] => 4:31: sinks.o: attributes: "a" is in two rules
attributes: [{rename: {from: a, to: a}}] => 4:20: sinks.o: attributes: "a" is in two rules
attributes: [{drop: ""}] => attributes: a rule has an empty key"#;

#[test]
fn otlp_sink_settings_are_validated_with_location_and_without_secrets() {
    for row in FAULTS.lines() {
        let (keys, expected) = row.split_once(" => ").unwrap();
        let keys = keys.replace(" / ", "\n      ");
        let text = format!("sinks:\n  o:\n    otlp:\n      {keys}\nhealth: {{enabled: false}}\n");
        let config = parsed(&text);
        let faults: Vec<String> = check("agent.yaml", &config, &[])
            .iter()
            .map(ToString::to_string)
            .collect();
        let shown = faults.join("\n");
        assert!(shown.contains(expected), "{expected}\n{shown}\n{text}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

#[test]
fn headers_and_passwords_are_redacted_in_printed_and_debug_output() {
    let text = "sinks:
  o:
    otlp:
      headers: {authorization: s3cret}
      basic_auth: {user: trainer, password: s3cret}
";
    let config = parsed(text);
    let shown = format!("{config:?}{}", print(&config));
    assert!(shown.contains("trainer") && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn sink_settings_override_the_global_limits() {
    let text = "limits: {queue_batches: 7, queue_bytes: 1MiB, retry_after: 1s, retry_at_most: 30s, give_up_after: 1h}
sinks:
  own:
    otlp:
      queue: {batches: 3, bytes: 2MiB}
      retry: {initial: 2s, max: 9s, give_up_after: never}
      batch: {max_bytes: 1KiB, max_wait: 50ms}
      concurrency: 2
      timeout: 3s
  rest:
    otlp: {}
";
    let config = parsed(text);
    let task_config = |name: &str| config.sinks.0[name].task_config(&config.limits);
    let (own, rest) = (task_config("own"), task_config("rest"));
    assert_eq!((own.queue.max_batches, own.queue.max_bytes), (3, 2 << 20));
    assert_eq!((rest.queue.max_batches, rest.queue.max_bytes), (7, 1 << 20));
    let second = Duration::from_secs(1);
    assert_eq!((own.retry.initial, own.retry.max), (2 * second, 9 * second));
    assert_eq!((rest.retry.initial, rest.retry.max), (second, 30 * second));
    assert_eq!(own.retry.give_up, GiveUp::Never);
    assert_eq!(rest.retry.give_up, GiveUp::WhenFull(3600 * second));
    assert_eq!((own.merge.max_bytes, own.merge.max_wait), (1024, second / 20));
    assert_eq!((own.concurrency, rest.concurrency), (2, 4));
    let SinkConfig::Otlp(section) = &config.sinks.0["own"] else {
        panic!("{config:?}");
    };
    assert_eq!(section.settings().unwrap().timeout, Some(3 * second));
}
