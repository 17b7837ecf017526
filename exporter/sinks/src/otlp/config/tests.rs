use pulsetrain_net::client::{Identity, NamedFile};

use super::*;

fn env(variables: &[(&'static str, &'static str)]) -> impl Fn(&str) -> Option<String> {
    let variables = variables.to_vec();
    move |name| {
        let known = variables
            .iter()
            .find(|(known, _)| name.strip_prefix("OTEL_EXPORTER_OTLP_") == Some(known));
        known.map(|(_, value)| (*value).to_owned())
    }
}

fn from_env(variables: &[(&'static str, &'static str)]) -> OtlpConfig {
    OtlpConfig::from_env(env(variables)).unwrap()
}

fn error(variables: &[(&'static str, &'static str)]) -> String {
    OtlpConfig::from_env(env(variables)).unwrap_err().to_string()
}

fn endpoints(config: &OtlpConfig) -> [String; 3] {
    Signal::ALL.map(|signal| config.signal(signal).endpoint.to_string())
}

fn target(url: &str) -> OtlpConfig {
    OtlpConfig::from_url(url, env(&[])).unwrap()
}

#[test]
fn defaults_are_protobuf_to_localhost_with_a_timeout_of_ten_seconds() {
    let config = from_env(&[]);
    assert_eq!(
        endpoints(&config),
        [
            "http://localhost:4318/v1/traces",
            "http://localhost:4318/v1/metrics",
            "http://localhost:4318/v1/logs"
        ]
    );
    for signal in Signal::ALL {
        let settings = config.signal(signal);
        assert_eq!(settings.protocol, Protocol::HttpProtobuf);
        assert_eq!(settings.timeout, Some(Duration::from_secs(10)));
        assert_eq!(settings.compression, Compression::None);
        assert_eq!(settings.tls, ClientTls::default());
        assert!(settings.headers.is_empty());
    }
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let names = [
        "ENDPOINT",
        "HEADERS",
        "TIMEOUT",
        "COMPRESSION",
        "PROTOCOL",
        "CERTIFICATE",
        "CLIENT_KEY",
        "INSECURE",
    ];
    let empty = names.map(|name| (name, ""));
    assert_eq!(from_env(&empty), from_env(&[]));
    assert_eq!(
        from_env(&[("TRACES_TIMEOUT", " "), ("TIMEOUT", "7")]),
        from_env(&[("TIMEOUT", "7")])
    );
}

#[test]
fn common_endpoint_is_a_base_url_and_a_signal_endpoint_is_used_unchanged() {
    let config = from_env(&[
        ("ENDPOINT", "http://h:1/base/"),
        ("METRICS_ENDPOINT", "https://m:2/in?tenant=a"),
    ]);
    assert_eq!(
        endpoints(&config),
        [
            "http://h:1/base/v1/traces",
            "https://m:2/in?tenant=a",
            "http://h:1/base/v1/logs"
        ]
    );
    let bare = from_env(&[("LOGS_ENDPOINT", "http://l:3")]);
    assert_eq!(endpoints(&bare)[2], "http://l:3/");
    assert_eq!(
        endpoints(&from_env(&[("ENDPOINT", "http://[::1]:5")]))[0],
        "http://[::1]:5/v1/traces"
    );
}

#[test]
fn grpc_has_its_own_default_port_and_no_path() {
    assert_eq!(
        endpoints(&from_env(&[("PROTOCOL", "grpc")]))[0],
        "http://localhost:4317/"
    );
    let config = from_env(&[
        ("PROTOCOL", "grpc"),
        ("ENDPOINT", "https://h:1/base"),
        ("LOGS_PROTOCOL", "http/json"),
    ]);
    assert_eq!(
        endpoints(&config),
        ["https://h:1/", "https://h:1/", "https://h:1/base/v1/logs"]
    );
    assert_eq!(config.signal(Signal::Logs).protocol, Protocol::HttpJson);
}

#[test]
fn grpc_endpoint_without_a_scheme_uses_tls_unless_insecure_is_set() {
    let endpoint =
        |insecure| endpoints(&from_env(&[("PROTOCOL", "grpc"), ("ENDPOINT", "h:1"), insecure]))[0].clone();
    assert_eq!(endpoint(("INSECURE", "false")), "https://h:1/");
    assert_eq!(endpoint(("INSECURE", "True")), "http://h:1/");
    assert_eq!(endpoint(("TRACES_INSECURE", "true")), "http://h:1/");
    let with_scheme = from_env(&[
        ("PROTOCOL", "grpc"),
        ("ENDPOINT", "https://h:1"),
        ("INSECURE", "true"),
    ]);
    assert_eq!(endpoints(&with_scheme)[0], "https://h:1/");
}

#[test]
fn variable_of_one_signal_overrides_the_one_for_all() {
    let config = from_env(&[
        ("PROTOCOL", "http/json"),
        ("TRACES_PROTOCOL", "http/protobuf"),
        ("TIMEOUT", "1500"),
        ("TRACES_TIMEOUT", "0"),
        ("COMPRESSION", "gzip"),
        ("TRACES_COMPRESSION", "none"),
        ("HEADERS", "a=1,b=2"),
        ("TRACES_HEADERS", "c=3"),
        ("CERTIFICATE", "/ca.pem"),
        ("TRACES_CERTIFICATE", "/own.pem"),
        ("CLIENT_CERTIFICATE", "/crt.pem"),
        ("CLIENT_KEY", "/key.pem"),
        ("TRACES_CLIENT_KEY", "/own-key.pem"),
    ]);
    let (own, all) = (config.signal(Signal::Traces), config.signal(Signal::Logs));
    assert_eq!(
        (own.protocol, all.protocol),
        (Protocol::HttpProtobuf, Protocol::HttpJson)
    );
    assert_eq!(
        (own.timeout, all.timeout),
        (None, Some(Duration::from_millis(1500)))
    );
    assert_eq!(
        (own.compression, all.compression),
        (Compression::None, Compression::Gzip(1))
    );
    assert_eq!((own.headers.len(), all.headers.len()), (1, 2));
    assert_eq!(own.headers["c"], "3");
    let file = |variable: &str, path: &str| NamedFile {
        variable: format!("OTEL_EXPORTER_OTLP_{variable}"),
        path: path.into(),
    };
    assert_eq!(own.tls.authority, Some(file("TRACES_CERTIFICATE", "/own.pem")));
    assert_eq!(all.tls.authority, Some(file("CERTIFICATE", "/ca.pem")));
    let certificate = file("CLIENT_CERTIFICATE", "/crt.pem");
    let key = file("TRACES_CLIENT_KEY", "/own-key.pem");
    assert_eq!(own.tls.identity, Some(Identity { certificate, key }));
}

#[test]
fn header_values_are_percent_decoded_and_may_hold_equals_signs() {
    let config = from_env(&[(
        "HEADERS",
        " Authorization = Basic%20YQ== , x-list=a%2Cb,, x-empty=",
    )]);
    let headers = &config.signal(Signal::Metrics).headers;
    assert_eq!(headers["authorization"], "Basic YQ==");
    assert_eq!(headers["x-list"], "a,b");
    assert_eq!(headers["x-empty"], "");
    assert_eq!(headers.len(), 3);
}

#[test]
fn header_values_never_appear_in_messages_or_debug_output() {
    let config = from_env(&[("HEADERS", "authorization=s3cret")]);
    assert!(!format!("{config:?}").contains("s3cret"));
    for list in [
        "s3cret",
        "k=ok,a b=s3cret",
        "content-length=s3cret",
        "k=s3cret%0A",
    ] {
        let message = error(&[("LOGS_HEADERS", list)]);
        assert!(!message.contains("s3cret"), "{message}");
        assert!(
            message.starts_with("OTEL_EXPORTER_OTLP_LOGS_HEADERS: entry "),
            "{message}"
        );
    }
    assert!(error(&[("HEADERS", "k=ok,no-value")]).contains("entry 2 has no `=`"));
}

#[test]
fn credentials_sent_unencrypted_to_another_host_are_reported_once_without_their_value() {
    let config = |url: &str, header: (&'static str, &'static str)| {
        let headers = OtlpSettings::headers("headers", [header]).unwrap();
        let settings = OtlpSettings {
            headers: Some(headers),
            ..OtlpSettings::default()
        };
        OtlpConfig::from_section(Some(url), &settings, env(&[])).unwrap()
    };
    for (url, header) in [
        ("http://collector:4318", ("authorization", "s3cret")),
        ("grpc://10.0.0.1:4317", ("x-api-key", "s3cret")),
    ] {
        let config = config(url, header);
        let [notice] = config.notices() else {
            panic!("{:?}", config.notices())
        };
        assert!(
            notice.what.contains("unencrypted")
                && notice.remedy.as_deref() == Some("use https:// or grpcs://")
                && !notice.what.contains("s3cret"),
            "{notice}"
        );
    }
    for (url, header) in [
        ("https://collector:4318", ("authorization", "s3cret")),
        ("grpcs://collector:4317", ("authorization", "s3cret")),
        ("http://localhost:4318", ("authorization", "s3cret")),
        ("http://[::1]:4318", ("authorization", "s3cret")),
        ("http://collector:4318", ("x-scope-orgid", "training")),
    ] {
        assert_eq!(config(url, header).notices(), [], "{url}");
    }
}

#[test]
fn unknown_variable_value_is_ignored_with_a_notice_that_hides_it() {
    let cases = [
        ("PROTOCOL", "s3cret", "set it to grpc, http/protobuf or http/json"),
        ("METRICS_TIMEOUT", "s3cret", "give an integer of milliseconds"),
        ("TIMEOUT", "-1", "give an integer of milliseconds"),
        ("COMPRESSION", "s3cret", "set it to gzip, zstd or none"),
        ("INSECURE", "s3cret", "set it to true or false"),
    ];
    for (name, value, way_out) in cases {
        let mut config = from_env(&[(name, value), ("LOGS_PROTOCOL", "HTTP/protobuf")]);
        let [notice] = &config.notices[..] else {
            panic!("{name}: {:?}", config.notices)
        };
        assert!(
            notice
                .what
                .starts_with(&format!("OTEL_EXPORTER_OTLP_{name} is ignored"))
                && notice
                    .remedy
                    .as_ref()
                    .is_some_and(|remedy| remedy.contains(way_out)),
            "{notice}"
        );
        assert!(!notice.what.contains("s3cret"), "{notice}");
        config.notices.clear();
        assert_eq!(config, from_env(&[]));
    }
}

#[test]
fn invalid_endpoint_is_an_error_that_hides_its_query() {
    let cases = [
        (
            ("ENDPOINT", "localhost:4318"),
            "write a URL such as http://localhost:4318",
        ),
        (
            ("ENDPOINT", "grpc://localhost:4317"),
            "set OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
        ),
        (("ENDPOINT", "http://"), "write a URL such as"),
        (
            ("ENDPOINT", "http://h:99999/?api_key=s3cret"),
            "write a URL such as",
        ),
        (("LOGS_ENDPOINT", "http://h:99999/"), "write a URL such as"),
    ];
    for ((name, value), way_out) in cases {
        let message = error(&[(name, value)]);
        let shown = value.replace("api_key=s3cret", "...");
        assert!(
            message.starts_with(&format!("OTEL_EXPORTER_OTLP_{name} is {shown:?}; ")),
            "{message}"
        );
        assert!(message.contains(way_out), "{message}");
    }
}

#[test]
fn client_certificate_without_its_key_file_is_an_error_that_names_the_missing_variable() {
    let message = error(&[("TRACES_CLIENT_KEY", "/key.pem")]);
    assert_eq!(
        message,
        "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY is set but OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE is not; \
         a client certificate needs both files"
    );
}

#[test]
fn credentials_in_an_endpoint_are_refused_and_not_repeated() {
    for url in [
        "http://user:s3cret@h:1",
        "http://user:s3cret@h:99999",
        "user:s3cret@h:1",
    ] {
        let message = error(&[("ENDPOINT", url)]);
        assert!(
            message.contains("OTEL_EXPORTER_OTLP_HEADERS") && !message.contains("s3cret"),
            "{message}"
        );
    }
    let message = OtlpConfig::from_url("grpc://user:s3cret@h", env(&[]))
        .unwrap_err()
        .to_string();
    assert!(!message.contains("s3cret"), "{message}");
}

#[test]
fn scheme_of_a_target_selects_protocol_and_tls() {
    let cases = [
        ("grpc://h:1", Protocol::Grpc, "http://h:1/"),
        ("GRPCS://h:1/", Protocol::Grpc, "https://h:1/"),
        (
            "http://h:1/base/",
            Protocol::HttpProtobuf,
            "http://h:1/base/v1/traces",
        ),
        ("https://h:1", Protocol::HttpProtobuf, "https://h:1/v1/traces"),
    ];
    for (url, protocol, endpoint) in cases {
        let config = target(url);
        assert_eq!(config.signal(Signal::Traces).protocol, protocol, "{url}");
        assert_eq!(endpoints(&config)[0], endpoint, "{url}");
    }
}

#[test]
fn target_without_a_port_uses_the_otlp_default_except_for_https() {
    let cases = [
        ("grpc://h", "http://h:4317/"),
        ("grpcs://[::1]", "https://[::1]:4317/"),
        ("http://h/base", "http://h:4318/base/v1/traces"),
        ("https://h", "https://h/v1/traces"),
    ];
    for (url, endpoint) in cases {
        assert_eq!(endpoints(&target(url))[0], endpoint, "{url}");
    }
}

#[test]
fn target_overrides_the_endpoints_and_keeps_other_variables() {
    let variables = [
        ("LOGS_ENDPOINT", "not a URL"),
        ("PROTOCOL", "http/json"),
        ("LOGS_PROTOCOL", "grpc"),
        ("HEADERS", "k=v"),
        ("COMPRESSION", "gzip"),
        ("TIMEOUT", "5"),
    ];
    let config = OtlpConfig::from_url("http://h:1", env(&variables)).unwrap();
    assert_eq!(endpoints(&config)[2], "http://h:1/v1/logs");
    assert_eq!(config.signal(Signal::Traces).protocol, Protocol::HttpJson);
    assert_eq!(config.signal(Signal::Logs).protocol, Protocol::HttpProtobuf);
    let settings = config.signal(Signal::Metrics);
    assert_eq!(settings.headers["k"], "v");
    assert_eq!(settings.compression, Compression::Gzip(1));
    assert_eq!(settings.timeout, Some(Duration::from_millis(5)));
}

#[test]
fn environment_headers_are_sent_only_to_the_environment_endpoint() {
    let variables = [
        ("ENDPOINT", "http://Own:4318/base"),
        ("LOGS_ENDPOINT", "https://logs"),
        ("HEADERS", "authorization=s3cret"),
        ("LOGS_HEADERS", "authorization=of-logs"),
    ];
    let sent = |config: &OtlpConfig| Signal::ALL.map(|signal| config.signal(signal).headers.len());
    let none = OtlpSettings::default();
    for (url, expected) in [
        ("http://own", [1, 1, 0]),
        ("https://logs:443/other", [0, 0, 1]),
        ("https://own:4318", [0; 3]),
        ("http://own:4319", [0; 3]),
        ("grpc://other:4318", [0; 3]),
    ] {
        let target = OtlpConfig::from_url(url, env(&variables)).unwrap();
        assert_eq!(sent(&target), expected, "{url}");
        let section = OtlpConfig::from_section(Some(url), &none, env(&variables)).unwrap();
        assert_eq!(sent(&section), expected, "{url}");
    }
    let section = OtlpConfig::from_section(None, &none, env(&variables)).unwrap();
    assert_eq!(sent(&section), [1; 3], "the endpoint is the environment's");
    // Without an endpoint, the headers apply to the target of the same command and to the default endpoint.
    let only = [("HEADERS", "authorization=s3cret")];
    assert_eq!(
        sent(&OtlpConfig::from_url("grpc://h", env(&only)).unwrap()),
        [1; 3]
    );
    let section = |url| sent(&OtlpConfig::from_section(Some(url), &none, env(&only)).unwrap());
    assert_eq!(section("grpc://h"), [0; 3]);
    assert_eq!(section("http://localhost"), [1; 3]);
}

#[test]
fn section_settings_override_the_environment_for_every_signal() {
    let own = |name: &str| NamedFile {
        variable: name.to_owned(),
        path: format!("/{name}").into(),
    };
    let set = OtlpSettings {
        json: Some(true),
        headers: Some(OtlpSettings::headers("headers", [("authorization", "of-section")]).unwrap()),
        timeout: Some(Duration::from_millis(7)),
        compression: Some(Compression::Zstd(3)),
        tls: ClientTls {
            authority: Some(own("tls.ca")),
            ..ClientTls::default()
        },
        ..OtlpSettings::default()
    };
    let variables = [
        ("HEADERS", "authorization=s3cret,more=1"),
        ("LOGS_HEADERS", "authorization=of-logs"),
        ("LOGS_COMPRESSION", "gzip"),
        ("METRICS_TIMEOUT", "5"),
        ("TRACES_CERTIFICATE", "/of-environment.pem"),
        ("PROTOCOL", "http/protobuf"),
    ];
    for url in [Some("http://localhost:4318"), None] {
        let config = OtlpConfig::from_section(url, &set, env(&variables)).unwrap();
        for signal in Signal::ALL {
            let settings = config.signal(signal);
            assert_eq!(settings.protocol, Protocol::HttpJson);
            assert_eq!(settings.headers.len(), 1);
            assert_eq!(settings.headers["authorization"], "of-section");
            assert_eq!(settings.compression, Compression::Zstd(3));
            assert_eq!(settings.timeout, Some(Duration::from_millis(7)));
            assert_eq!(settings.tls.authority, Some(own("tls.ca")));
        }
    }
}

#[test]
fn environment_settings_are_not_used_for_another_host() {
    let variables = [
        ("ENDPOINT", "https://own:4318"),
        ("HEADERS", "authorization=s3cret"),
        ("COMPRESSION", "gzip"),
        ("TIMEOUT", "5"),
        ("CERTIFICATE", "/ca.pem"),
        ("CLIENT_CERTIFICATE", "/crt.pem"),
        ("CLIENT_KEY", "/key.pem"),
    ];
    let none = OtlpSettings::default();
    let section = |url| OtlpConfig::from_section(Some(url), &none, env(&variables)).unwrap();
    let target = |url| OtlpConfig::from_url(url, env(&variables)).unwrap();
    for other in ["https://other:4318", "http://own:4318", "grpcs://own:4317"] {
        let plain = OtlpConfig::from_url(other, env(&[])).unwrap();
        assert_eq!(section(other), plain, "{other}");
        assert_eq!(target(other), plain, "{other}");
    }
    for own in [section("https://own:4318"), target("https://own:4318")] {
        assert_eq!(own, from_env(&variables), "the environment's own host");
    }
}

#[test]
fn invalid_target_names_the_valid_forms() {
    for url in [
        "collector:4317",
        "ftp://h",
        "grpc://",
        "grpc://h:1/path",
        "grpc://h:",
        "http://h:x",
        "grpc://h:99999",
    ] {
        let message = OtlpConfig::from_url(url, env(&[])).unwrap_err().to_string();
        assert!(
            message.starts_with("target is ") && message.contains("grpc"),
            "{message}"
        );
    }
}

#[test]
fn signal_with_exporter_none_is_not_sent() {
    let off = |name: &str| match name {
        "OTEL_TRACES_EXPORTER" => Some("none".to_owned()),
        "OTEL_LOGS_EXPORTER" => Some("otlp,console".to_owned()),
        _ => None,
    };
    assert_eq!(
        OtlpConfig::from_env(off).unwrap().signals().to_string(),
        "metrics, logs"
    );
    let named = OtlpConfig::from_url("http://h:1", off).unwrap();
    assert_eq!(
        named.signals(),
        Signals::ALL,
        "the endpoint is not that of the variables"
    );
    let all = OtlpConfig::from_env(|name| name.ends_with("_EXPORTER").then(|| "None".to_owned())).unwrap();
    assert!(all.signals().is_empty() && all.by_receiver().is_empty());
}

#[test]
fn signals_with_equal_scheme_host_and_port_share_a_receiver() {
    let parts = |variables: &[(&'static str, &'static str)]| -> Vec<String> {
        let parts = from_env(variables).by_receiver();
        parts.iter().map(|part| part.signals().to_string()).collect()
    };
    assert_eq!(parts(&[]), ["traces, metrics, logs"]);
    let paths = [("TRACES_ENDPOINT", "http://localhost:4318/spans")];
    assert_eq!(parts(&paths), ["traces, metrics, logs"]);
    for other in [
        "http://localhost:4319",
        "https://localhost:4318",
        "http://tempo:4318",
    ] {
        assert_eq!(parts(&[("METRICS_ENDPOINT", other)]), ["traces, logs", "metrics"]);
    }
    assert_eq!(target("http://h").by_receiver().len(), 1);
}
