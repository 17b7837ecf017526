//! Tokens and passwords from files: sent with each request, reread when they change, retried while they are
//! rejected.

use std::{
    fs,
    sync::{Arc, Mutex},
    time::Duration,
};

use pulsetrain_net::client::{Credentials, NamedFile, Password};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Delivery, Sink};
use pulsetrain_sinks::{OtlpConfig, OtlpSettings, OtlpSink, SinkError};
use tempfile::NamedTempFile;

use crate::{
    answers::{PROTOBUF, grpc, grpc_status, http},
    delivery::{refusal, retry},
    receiver::{Answer, Receiver, batch},
};

fn settings(credentials: Credentials) -> OtlpSettings {
    OtlpSettings {
        credentials: Some(credentials),
        ..OtlpSettings::default()
    }
}

fn file(key: &str, file: &NamedTempFile) -> NamedFile {
    NamedFile {
        variable: key.to_owned(),
        path: file.path().to_owned(),
    }
}

fn token_file(token: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    fs::write(file.path(), token).unwrap();
    file
}

fn sink(url: &str, settings: &OtlpSettings) -> Result<OtlpSink, SinkError> {
    OtlpSink::new(&OtlpConfig::from_section(Some(url), settings, |_| None)?)
}

/// The scheme of a receiver, its success, and its rejection of credentials.
type Kind = (&'static str, fn() -> Answer, fn() -> Answer);

const KINDS: [Kind; 2] = [
    (
        "http",
        || http(200, PROTOBUF, ""),
        || http(401, "text/plain", "bad token"),
    ),
    (
        "grpc",
        || grpc(b"", &[("grpc-status", "0")]),
        || grpc_status(16, "bad token"),
    ),
];

/// Returns a receiver that accepts only one value of `authorization`.
async fn guarded(scheme: usize, accepted: &Arc<Mutex<String>>) -> Receiver {
    let (_, success, unauthorized) = KINDS[scheme];
    let accepted = Arc::clone(accepted);
    Receiver::start_judging(move |request| {
        if request.header("authorization") == *accepted.lock().unwrap() {
            success()
        } else {
            unauthorized()
        }
    })
    .await
}

#[tokio::test]
async fn user_and_password_are_sent_as_basic_authorization() {
    let password = token_file("pass:word\r\n");
    for password in [
        Password::Text("pass:word".to_owned()),
        Password::File(file("basic_auth.password_file", &password)),
    ] {
        let user = "trainer".to_owned();
        let settings = settings(Credentials::Basic { user, password });
        assert!(!format!("{settings:?}").contains("pass:word"));
        for (kind, (scheme, ..)) in KINDS.iter().enumerate() {
            // printf 'trainer:pass:word' | base64
            let accepted = Arc::new(Mutex::new("Basic dHJhaW5lcjpwYXNzOndvcmQ=".to_owned()));
            let receiver = guarded(kind, &accepted).await;
            let mut sink = sink(&format!("{scheme}://{}", receiver.address), &settings).unwrap();
            assert_eq!(
                sink.deliver(&batch(Signal::Logs)).await,
                Delivery::Delivered,
                "{scheme}"
            );
        }
    }
}

#[tokio::test]
async fn rejected_token_is_reloaded_before_the_next_attempt() {
    for (kind, (scheme, ..)) in KINDS.iter().enumerate() {
        let token = token_file("first\n");
        let accepted = Arc::new(Mutex::new("Bearer first".to_owned()));
        let receiver = guarded(kind, &accepted).await;
        let settings = settings(Credentials::Bearer(file("bearer_token_file", &token)));
        let mut sink = sink(&format!("{scheme}://{}", receiver.address), &settings).unwrap();
        let batch = batch(Signal::Traces);
        assert_eq!(sink.deliver(&batch).await, Delivery::Delivered, "{scheme}");

        *accepted.lock().unwrap() = "Bearer second".to_owned();
        let (_, message) = retry(sink.deliver(&batch).await);
        assert!(message.contains("bad token"), "{scheme}: {message}");
        assert!(
            message.contains(&token.path().display().to_string()),
            "{scheme}: {message}"
        );
        assert!(!message.contains("first"), "{scheme}: {message}");

        fs::remove_file(token.path()).unwrap();
        retry(sink.deliver(&batch).await);
        let (_, message) = retry(sink.deliver(&batch).await);
        assert!(message.contains("cannot be read"), "{scheme}: {message}");

        fs::write(token.path(), "second").unwrap();
        assert_eq!(sink.deliver(&batch).await, Delivery::Delivered, "{scheme}");
    }
}

#[tokio::test]
async fn a_changed_token_is_sent_before_the_old_one_is_refused() {
    let token = token_file("first");
    let receiver = Receiver::start(|| http(200, PROTOBUF, "")).await;
    let settings = settings(Credentials::Bearer(file("bearer_token_file", &token)));
    let mut sink = sink(&format!("http://{}", receiver.address), &settings).unwrap();
    sink.deliver(&batch(Signal::Traces)).await;
    fs::write(token.path(), "second").unwrap();
    let sent = || {
        receiver
            .requests()
            .last()
            .unwrap()
            .header("authorization")
            .to_owned()
    };
    assert_eq!(sent(), "Bearer first");
    tokio::time::timeout(Duration::from_secs(30), async {
        while sent() == "Bearer first" {
            assert_eq!(sink.deliver(&batch(Signal::Traces)).await, Delivery::Delivered);
        }
    })
    .await
    .unwrap();
    assert_eq!(sent(), "Bearer second");
}

#[tokio::test]
async fn rejection_of_static_credentials_is_permanent() {
    for (kind, (scheme, ..)) in KINDS.iter().enumerate() {
        let receiver = guarded(kind, &Arc::new(Mutex::new("never".to_owned()))).await;
        let password = Password::Text("s3cret".to_owned());
        let user = "trainer".to_owned();
        let settings = settings(Credentials::Basic { user, password });
        let mut sink = sink(&format!("{scheme}://{}", receiver.address), &settings).unwrap();
        let message = refusal(sink.deliver(&batch(Signal::Logs)).await);
        assert!(
            message.contains("basic_auth") && !message.contains("s3cret"),
            "{message}"
        );
    }
}

#[test]
fn unusable_token_file_is_an_error_that_hides_its_content() {
    let missing = NamedFile {
        variable: "bearer_token_file".to_owned(),
        path: "/not/there".into(),
    };
    let cases = [
        (Some(""), "it is empty"),
        (Some("s3cret\nmore"), "more than one line"),
        (None, "No such file"),
    ];
    for (content, expected) in cases {
        let written = content.map(token_file);
        let named = written
            .as_ref()
            .map_or(missing.clone(), |written| file("bearer_token_file", written));
        let path = named.path.display().to_string();
        let error = sink("http://127.0.0.1:1", &settings(Credentials::Bearer(named)))
            .err()
            .unwrap();
        let message = error.to_string();
        assert!(
            message.starts_with("bearer_token_file: cannot use ") && message.contains(&path),
            "{message}"
        );
        assert!(
            message.contains(expected) && !message.contains("s3cret"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn emptied_token_file_is_a_warning_while_the_old_token_is_accepted() {
    for (scheme, accepted, _) in KINDS {
        let receiver = Receiver::start(accepted).await;
        let token = token_file("first");
        let settings = settings(Credentials::Bearer(file("bearer_token_file", &token)));
        let mut sink = sink(&format!("{scheme}://{}", receiver.address), &settings).unwrap();
        assert_eq!(sink.deliver(&batch(Signal::Logs)).await, Delivery::Delivered);
        fs::write(token.path(), "").unwrap();
        let warning = loop {
            match sink.deliver(&batch(Signal::Logs)).await {
                Delivery::Delivered => {}
                Delivery::Partial { rejected: 0, problem } => break problem.to_string(),
                other => panic!("{other:?}"),
            }
        };
        assert!(
            warning.starts_with(&token.path().display().to_string())
                && warning.ends_with("it is empty. The content before the change remains in use"),
            "{warning}"
        );
        assert_eq!(sink.deliver(&batch(Signal::Logs)).await, Delivery::Delivered);
    }
}
