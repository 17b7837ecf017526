//! Tests of the messages about faulty configurations.

use std::collections::HashMap;

use super::*;

fn parse(file: &str, text: &str, variables: &HashMap<String, String>) -> Result<Config, Fault> {
    read::parse(file, text, variables)
}

/// Returns the messages about a configuration that cannot be read.
fn refused(text: &str) -> String {
    parse("agent.yaml", text, &variables()).unwrap_err().to_string()
}

/// Returns the faults of a configuration that can be read.
fn faults(text: &str) -> Vec<String> {
    let config = parse("agent.yaml", text, &variables()).unwrap();
    let faults = check("agent.yaml", &config, &[]);
    faults.iter().map(ToString::to_string).collect()
}

fn variables() -> HashMap<String, String> {
    HashMap::from([
        ("PORT".to_owned(), "9999".to_owned()),
        ("ODD".to_owned(), "a: b # c".to_owned()),
    ])
}

#[test]
fn the_printed_default_is_read_as_the_default() {
    let printed = print(&Config::example());
    let config =
        parse("printed", &printed, &HashMap::new()).unwrap_or_else(|fault| panic!("{fault}\n{printed}"));
    assert_eq!(config, Config::example());
    insta::assert_snapshot!(printed);
}

#[test]
fn queue_that_cannot_hold_a_batch_of_logs_is_rejected() {
    let with = |bytes: &str| {
        let text = format!(
            "limits:\n  queue_bytes: {bytes}\nhealth:\n  enabled: false\nsinks:\n  t:\n    console: {{}}\n"
        );
        faults(&text).join("\n")
    };
    let problem = "agent.yaml:2:16: limits: a queue below 256KiB has no room for a batch of logs; give it at least 256KiB";
    assert_eq!(with("255KiB"), problem);
    assert_eq!(with("256KiB"), "");
}

#[test]
fn every_commented_example_in_the_printed_config_parses() {
    let printed = print(&Config::example());
    let (before, rest) = printed.split_once("\nsinks:\n").unwrap();
    let (sinks, after) = rest.split_once("\n\n").unwrap();
    let sinks = sinks.replace("\n  # ", "\n  ");
    let uncommented = format!("{before}\nsinks:\n{sinks}\n\n{after}");
    let config = parse("printed", &uncommented, &HashMap::new())
        .unwrap_or_else(|fault| panic!("{fault}\n{uncommented}"));
    let names: Vec<_> = config.sinks.iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(
        names,
        [
            "archive",
            "collector",
            "prometheus",
            "recorder",
            "terminal",
            "traces"
        ]
    );
}

#[test]
fn faults_name_their_location_and_the_fix() {
    let cases = [
        "limitz:\n  drain: 5s\n",
        "limits:\n  queue_batch: 5\n",
        "limits:\n  queue_batches: many\n",
        "limits:\n  drain: 5\n",
        "limits:\n  queue_bytes: 64MB\n",
        "limits:\n  drain: 5s\n  drain: 6s\n",
        "limits:\n  drain: 5s\n telemetry:\n  enabled: true\n",
        "sources:\n  trainer:\n    log:\n      paths: [a]\n",
        "sources:\n  trainer:\n    logs:\n      paths: a\n",
        "sources:\n  trainer:\n    logs:\n      path: [a]\n",
        "sinks:\n  page:\n    prometheus:\n      listen: localhost\n",
        "sinks:\n  page:\n    prometheus:\n      listen: ${NOT_SET}\n",
        "sinks:\n  page:\n    prometheus:\n      translation: none\n",
        "state_folder: ${PORT}\nsinks:\n  page:\n    \"prometeus\": {}\n",
        "sinks: [\n",
        "sinks:\n\tpage: {}\n",
        "gpu:\n  enabled: maybe\n",
        "sources:\n  a: [x]\n",
        "sources:\n  a:\n    logs:\n      paths: [x]\n    format: auto\n",
    ];
    let said: Vec<String> = cases
        .iter()
        .map(|text| format!("{text}{}\n", refused(text)))
        .collect();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn all_faults_are_reported_at_once() {
    let text = "limits:
  queue_batch: 5
  drain: 5
sources:
  trainer:
    logs:
      path: [a]
  other:
    log:
      paths: [a]
sinks:
  page:
    prometheus:
      listen: ${NOT_SET}
      series_limit: many
telemetri:
  interval: 1s
";
    let found: Vec<String> = faults::all("agent.yaml", text, &variables())
        .iter()
        .map(ToString::to_string)
        .collect();
    let places = [
        "14:15: the variable NOT_SET",
        "2:3: unknown key \"queue_batch\"",
        "3:10: ",
        "7:7: unknown key \"path\"",
        "9:5: unknown name \"log\"",
        "15:21: ",
        "16:1: unknown key \"telemetri\"",
    ];
    assert_eq!(found.len(), places.len(), "{found:#?}");
    for place in places {
        let start = format!("agent.yaml:{place}");
        assert!(
            found.iter().any(|fault| fault.starts_with(&start)),
            "{start} is not in {found:#?}"
        );
    }
    assert_eq!(faults::all("agent.yaml", "limits: {}\n", &variables()), []);
}

#[test]
fn environment_variables_are_substituted_in_values_only() {
    let text = "sinks:
  page:
    prometheus:
      listen: 127.0.0.1:${PORT}
      path: \"/${MISSING:-metrics}/$$x\"
      resource_labels: [\"${ODD}\"]
";
    let config = parse("agent.yaml", text, &variables()).unwrap();
    let Some(SinkConfig::Prometheus(page)) = config.sinks.0.get("page") else {
        panic!("no page in {config:?}");
    };
    assert_eq!(page.listen.0.to_string(), "127.0.0.1:9999");
    assert_eq!(page.path, "/metrics/$x");
    assert_eq!(page.resource_labels, ["a: b # c"]);
}

#[test]
fn live_page_on_a_remote_address_requires_the_page_key() {
    let has_page = |keys: &str| {
        let text = format!("sinks:\n  page:\n    prometheus:\n      {keys}\n");
        let config = parse("agent.yaml", &text, &variables()).unwrap();
        let Some(SinkConfig::Prometheus(section)) = config.sinks.0.get("page") else {
            panic!("no page in {config:?}");
        };
        section.has_page()
    };
    assert!(has_page("listen: 127.0.0.1:9464"));
    assert!(has_page("listen: \"[::1]:9464\""));
    assert!(!has_page("listen: 127.0.0.1:9464\n      page: false"));
    let remote = "listen: 0.0.0.0:9464\n      allow_remote: true";
    assert!(!has_page(remote));
    assert!(has_page(&format!("{remote}\n      page: true")));
}

#[test]
fn moving_a_value_to_another_line_is_not_a_config_change() {
    let text = "sources:\n  trainer:\n    logs:\n      paths: [a]\n";
    let moved = format!("# a comment\n{text}");
    let [config, moved] = [text, &moved].map(|text| parse("agent.yaml", text, &variables()).unwrap());
    assert_eq!(config, moved);
}

#[test]
fn the_check_names_everything_that_cannot_work() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let text = format!(
        "sources:
  trainer:
    logs:
      paths: [training.json]
      format: surogat
  nothing:
    logs: {{}}
sinks:
  page:
    prometheus:
      listen: 127.0.0.1:{port}
  open:
    prometheus:
      listen: 0.0.0.0:0
  archive:
    file:
      path: out.csv
  collector:
    otlp:
      endpoint: collector:4317
health:
  enabled: false
"
    );
    let said = faults(&text).join("\n").replace(&port.to_string(), "PORT");
    let us = format!("(process {})", std::process::id());
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    insta::assert_snapshot!(said.replace(&us, "(process ID)").replace(name.trim_end(), "NAME"));
}

#[test]
fn interval_that_would_saturate_a_cpu_is_rejected() {
    let text = "sources:\n  a:\n    logs:\n      paths: [a]\n      poll_interval: 0s\ntelemetry:\n  interval: 1ms\nhealth:\n  enabled: false\nsinks:\n  t:\n    console: {}\n";
    let faults = faults(text);
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(
        faults[0].starts_with("agent.yaml:5:22: sources.a.logs:"),
        "{faults:?}"
    );
    assert!(faults[1].starts_with("agent.yaml:7:13: telemetry:"), "{faults:?}");
}

#[test]
fn imex_program_setting_is_auto_off_or_an_absolute_path() {
    use pulsetrain_gpu::ImexProgram::{At, Auto, Off};
    for (text, program) in [
        ("{}", Auto),
        ("{imex: auto}", Auto),
        ("{imex: off}", Off),
        (
            "{imex: /opt/bin/nvidia-imex-ctl}",
            At("/opt/bin/nvidia-imex-ctl".into()),
        ),
    ] {
        let config = parse("agent.yaml", &format!("gpu: {text}\n"), &variables()).unwrap();
        assert_eq!(config.gpu.settings().imex.program, program, "{text}");
    }
    let fault = refused("gpu:\n  imex: nvidia-imex-ctl\n");
    assert!(
        fault.contains("write auto, off, or the absolute path of nvidia-imex-ctl"),
        "{fault}"
    );
}

#[test]
fn queue_of_zero_is_reported_at_its_location() {
    let text = "limits:\n  queue_batches: 0\n  queue_bytes: 0\nhealth:\n  enabled: false\nsinks:\n  t:\n    console: {}\n";
    let faults = faults(text);
    let places: Vec<&str> = faults.iter().map(|fault| &fault[..16]).collect();
    assert_eq!(places, ["agent.yaml:2:18:", "agent.yaml:3:16:"], "{faults:?}");
}

#[test]
fn names_of_the_gpus_and_of_the_agent_are_reserved() {
    for name in ["gpu", "pulsetrain"] {
        let text = format!(
            "sources:\n  {name}:\n    logs:\n      paths: [a]\nhealth:\n  enabled: false\nsinks:\n  t:\n    console: {{}}\n"
        );
        let faults = faults(&text);
        let [fault] = faults.as_slice() else {
            panic!("{faults:?}");
        };
        let expected = format!("agent.yaml:4:7: sources.{name}: the name is reserved for");
        assert!(fault.starts_with(&expected), "{fault}");
    }
}

#[test]
fn unrouted_sources_and_unknown_source_names_are_rejected() {
    let text = "sources:\n  a:\n    logs:\n      paths: [a]\n  b:\n    logs:\n      paths: [b]\nhealth:\n  enabled: false\n\
                sinks:\n  t:\n    console: {sources: [a, c, gpu, pulsetrain]}\n";
    assert_eq!(
        faults(text),
        [
            "agent.yaml:7:7: sources.b: no sink receives it; add b to the sources of a sink, or remove it",
            "agent.yaml:12:28: sinks.t: there is no source \"c\"; it can be: a, b, gpu, pulsetrain",
        ]
    );
}

#[test]
fn disabled_source_in_a_sink_and_unrouted_gpu_source_are_warnings() {
    let warned = |text: &str| {
        let config = parse("agent.yaml", text, &variables()).unwrap();
        let warnings = warnings("agent.yaml", &config);
        warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let sinks = "sinks:\n  t:\n    console: {sources: [gpu, pulsetrain]}\n  all:\n    console: {}\n";
    assert_eq!(warned(sinks), [""; 0]);
    assert_eq!(
        warned(&format!(
            "gpu: {{enabled: false}}\ntelemetry: {{enabled: false}}\n{sinks}"
        )),
        [
            "agent.yaml:5:25: sinks.t: gpu sends nothing, because gpu.enabled is false; set it to true, or remove gpu from the \
             sources",
            "agent.yaml:5:30: sinks.t: pulsetrain sends nothing, because telemetry.enabled is false; set it to true, or remove \
             pulsetrain from the sources",
        ]
    );
    assert_eq!(
        warned("sinks:\n  t:\n    console: {sources: [pulsetrain]}\n"),
        [
            "agent.yaml: gpu: no sink receives it; add gpu to the sources of a sink, or set gpu.enabled to false"
        ]
    );
}

#[test]
fn out_of_range_message_limit_is_rejected_with_its_location() {
    for (size, is_valid) in [
        ("1KiB", true),
        ("64MiB", true),
        ("1023", false),
        ("65MiB", false),
        ("0", false),
    ] {
        let text = format!(
            "sources:\n  sdk:\n    otlp:\n      listen: [127.0.0.1:0]\n      max_message: {size}\nhealth:\n  enabled: false\n\
             limits: {{queue_bytes: 128MiB}}\nsinks:\n  t:\n    console: {{}}\n"
        );
        let faults = faults(&text);
        let expected = "agent.yaml:5:20: sources.sdk.otlp: max_message is out of range; give 1KiB to 64MiB";
        match is_valid {
            true => assert_eq!(faults, [""; 0], "{size}"),
            false => assert_eq!(faults, [expected], "{size}"),
        }
    }
}

#[test]
fn port_of_the_running_agent_is_not_reported_as_in_use() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!(
        "sources:\n  a:\n    logs:\n      paths: [a]\nhealth:\n  listen: {}\nsinks:\n  page:\n    prometheus:\n      listen: 127.0.0.1:0\n",
        taken.local_addr().unwrap()
    );
    let config = parse("agent.yaml", &text, &variables()).unwrap();
    assert_eq!(check("agent.yaml", &config, &[]).len(), 1);
    assert_eq!(check("agent.yaml", &config, &addresses(&config)), []);
}

#[test]
fn fault_of_a_mapping_is_reported_at_its_location() {
    let text = "sources:
  trainer:
    logs:
      paths: [training.log]
      format: keyvalue
      mapping:
        time_format: iso
        line: '('
        sign: ''
        values:
          - {key: loss, metric: train.los}
          - {key: dt, metric: train.step.duration, unit: GiB}
          - key: reward
            metric: rl.trajectory_reward
            attributes:
              rl.statistic: median
          - {pattern: '(?<gpu>.+)_loss', metric: train.loss_component}
          - {key: a, pattern: b, drop: true}
          - {key: a}
          - {key: n, custom: n, unit: ms}
  other:
    logs:
      paths: [training.log]
      format: maxtext
      mapping: {step: iter}
health:
  enabled: false
sinks:
  terminal:
    console: {}
";
    let faults = faults(text);
    insta::assert_snapshot!(faults.join("\n"));
    let one = self::faults(
        "sources: {a: {logs: {paths: [a], mapping: {format: keyvalue, values: [{key: loss, metric: train.los}]}}}}\nhealth: {enabled: false}\nsinks: {t: {console: {}}}\n",
    );
    assert_eq!(one.len(), 1, "the mapping names the format: {one:?}");
    let message =
        refused("sources:\n  a:\n    logs:\n      mapping:\n        values:\n          - {kei: loss}\n");
    assert!(
        message.starts_with("agent.yaml:6:14: unknown key \"kei\""),
        "{message}"
    );
}

#[test]
fn otlp_sink_without_an_endpoint_uses_the_environment() {
    let config = parse("agent.yaml", "sinks:\n  c:\n    otlp: {}\n", &variables()).unwrap();
    assert_eq!(crate::topology::check_sink(&config.sinks.0["c"]), Ok(()));
    let empty = "sinks:\n  c:\n    otlp: {endpoint: \"\"}\n";
    let config = parse("agent.yaml", empty, &variables()).unwrap();
    let message = (crate::topology::check_sink(&config.sinks.0["c"]).unwrap_err()).problem;
    assert!(
        message.to_string().contains("write grpc://host:4317"),
        "{message}"
    );
}

#[test]
fn signal_list_must_be_non_empty_and_contain_known_signals() {
    let text =
        |signals: &str| format!("sinks:\n  c:\n    file:\n      path: a.jsonl\n      signals: {signals}\n");
    let config = parse("agent.yaml", &text("[logs, traces]"), &variables()).unwrap();
    let signals = config.sinks.0["c"].signals().unwrap();
    assert_eq!(signals.0.to_string(), "traces, logs");
    let config = parse("agent.yaml", &text("[]"), &variables()).unwrap();
    let fault = crate::topology::check_sink(&config.sinks.0["c"]).unwrap_err();
    let (location, message) = (fault.location, fault.problem);
    assert_eq!((location.line, location.column), (5, 16));
    assert!(
        message.to_string().contains("name traces, metrics or logs"),
        "{message}"
    );
    let message = refused(&text("[trace]"));
    assert!(
        message.starts_with("agent.yaml:5:17: ") && message.contains("did you mean \"traces\"?"),
        "{message}"
    );
}

#[test]
fn file_rotation_and_permissions_follow_the_config_section() {
    let text = |keys: &str| format!("sinks:\n  archive:\n    file:\n      path: out.jsonl\n{keys}");
    let file = |keys: &str| {
        let config = parse("agent.yaml", &text(keys), &variables()).expect("it can be read");
        match &config.sinks.0["archive"] {
            SinkConfig::File(file) => file.value.clone(),
            other => panic!("{other:?}"),
        }
    };
    let rotated = "      rotation:\n        max_bytes: 1MiB\n        max_age: 24h\n        keep: 3\n        compression: zstd\n";
    for permissions in ["\"0640\"", "0640"] {
        let settings = file(&format!("{rotated}      permissions: {permissions}\n")).settings();
        let settings = settings.expect("it makes sense");
        assert_eq!(
            format!("{settings:?}"),
            "FileConfig { rotation: Some(FileRotation { max_bytes: 1048576, max_age: Some(86400s), keep: 3, compression: \
             Zstd }), permissions: Some(0640) }"
        );
    }
    let defaults = file("      rotation: {}\n").settings().expect("it makes sense");
    assert_eq!(defaults.rotation, Some(pulsetrain_sinks::FileRotation::default()));
    for (keys, words) in [
        ("      permissions: rw-r-----\n", "such as \"0640\""),
        ("      permissions: \"0440\"\n", "let the owner read and write"),
        ("      rotation: {max_bytes: 0}\n", "a max_bytes of zero"),
        ("      rotation: {max_age: 0s}\n", "a max_age of zero"),
    ] {
        let (location, message) = file(keys).settings().expect_err("it makes no sense");
        assert!(
            message.to_string().contains(words),
            "{words} is not in: {message}"
        );
        assert_eq!(location.line, 5);
    }
}
