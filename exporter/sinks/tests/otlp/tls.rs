//! TLS over HTTP and gRPC with test certificates: trusted, untrusted, and with a client certificate.

use std::{path::PathBuf, sync::Arc, time::Duration};

use pulsetrain_net::client::{ClientTls, Identity, NamedFile};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Delivery, Sink};
use pulsetrain_sinks::{OtlpConfig, OtlpSettings, OtlpSink, SinkError};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};
use tempfile::TempDir;

use crate::{
    answers::{PROTOBUF, grpc, http},
    delivery::retry,
    receiver::{Answer, Receiver, batch, lookup},
};

/// A certificate authority, its certificates, and the client's files.
pub(crate) struct Certificates {
    directory: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    pub(crate) fn make() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let made = Self {
            directory: tempfile::tempdir().unwrap(),
            authority,
        };
        made.write("ca.pem", &made.authority.pem());
        let (certificate, key) = made.signed("client");
        made.write("client.pem", &certificate.pem());
        made.write("client.key", &key.serialize_pem());
        made
    }

    fn signed(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        self.signed_until(name, 2099)
    }

    fn signed_until(&self, name: &str, year: i32) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        (params.signed_by(&key, &self.authority).unwrap(), key)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(crate) fn named(&self, key: &str, name: &str) -> NamedFile {
        NamedFile {
            variable: key.to_owned(),
            path: self.path(name),
        }
    }

    /// Returns a server configuration for 127.0.0.1, with or without client certificates.
    pub(crate) fn server(&self, ask_client: bool) -> ServerConfig {
        self.server_with(self.signed("127.0.0.1"), ask_client)
    }

    fn server_with(
        &self,
        (certificate, key): (rcgen::Certificate, KeyPair),
        ask_client: bool,
    ) -> ServerConfig {
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = match ask_client {
            false => builder.with_no_client_auth(),
            true => builder.with_client_cert_verifier(self.client_verifier()),
        };
        let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config
    }

    fn client_verifier(&self) -> Arc<dyn rustls::server::danger::ClientCertVerifier> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        let provider = Arc::new(ring::default_provider());
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .unwrap()
    }
}

/// A kind of receiver: the scheme of its target and its response.
type Kind = (&'static str, fn() -> Answer);

const KINDS: [Kind; 2] = [
    ("https", || http(200, PROTOBUF, "")),
    ("grpcs", || grpc(b"", &[("grpc-status", "0")])),
];

#[tokio::test]
async fn certificate_of_a_configured_authority_is_trusted() {
    let certificates = Certificates::make();
    for (scheme, answer) in KINDS {
        let receiver = Receiver::start_tls(certificates.server(false), answer).await;
        let delivery = receiver
            .deliver(scheme, &[("CERTIFICATE", &certificates.text("ca.pem"))])
            .await;
        assert_eq!(delivery, Delivery::Delivered, "{scheme}");
    }
}

#[tokio::test]
async fn client_certificate_is_presented_on_request() {
    let certificates = Certificates::make();
    for (scheme, answer) in KINDS {
        let receiver = Receiver::start_tls(certificates.server(true), answer).await;
        let variables = [
            ("CERTIFICATE", &*certificates.text("ca.pem")),
            ("CLIENT_CERTIFICATE", &*certificates.text("client.pem")),
            ("CLIENT_KEY", &*certificates.text("client.key")),
        ];
        assert_eq!(
            receiver.deliver(scheme, &variables).await,
            Delivery::Delivered,
            "{scheme}"
        );
    }
}

#[tokio::test]
async fn missing_client_certificate_is_reported_with_its_variables() {
    let certificates = Certificates::make();
    for (scheme, answer) in KINDS {
        let receiver = Receiver::start_tls(certificates.server(true), answer).await;
        let delivery = receiver
            .deliver(scheme, &[("CERTIFICATE", &certificates.text("ca.pem"))])
            .await;
        let message = retry(delivery).1;
        assert!(
            message.contains("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"),
            "{scheme}: {message}"
        );
        assert_eq!(receiver.requests().len(), 0);
    }
}

#[tokio::test]
async fn certificate_of_an_unknown_authority_is_reported_with_the_variable() {
    let (server, other) = (Certificates::make(), Certificates::make());
    for (scheme, answer) in KINDS {
        let receiver = Receiver::start_tls(server.server(false), answer).await;
        let message = retry(
            receiver
                .deliver(scheme, &[("CERTIFICATE", &other.text("ca.pem"))])
                .await,
        )
        .1;
        assert!(
            message.contains("tls.ca")
                && message
                    .contains("in OTEL_EXPORTER_OTLP_CERTIFICATE, did not sign the receiver's certificate"),
            "{scheme}: {message}"
        );
    }
}

#[tokio::test]
async fn tls_to_a_plaintext_port_and_plaintext_to_a_tls_port_are_distinguished() {
    let certificates = Certificates::make();
    let authority = certificates.text("ca.pem");
    for ((tls_scheme, answer), plain_scheme) in KINDS.into_iter().zip(["http", "grpc"]) {
        let plain = Receiver::start(answer).await;
        let message = retry(plain.deliver(tls_scheme, &[("CERTIFICATE", &authority)]).await).1;
        assert!(message.contains("does not speak TLS"), "{tls_scheme}: {message}");

        let tls = Receiver::start_tls(certificates.server(false), answer).await;
        let message = retry(tls.deliver(plain_scheme, &[]).await).1;
        assert!(
            message.contains(&format!("if it wants TLS use {tls_scheme}://")),
            "{plain_scheme}: {message}"
        );
    }
}

#[test]
fn unusable_pem_file_is_an_error_with_its_variable_and_path() {
    let certificates = Certificates::make();
    certificates.write("empty.pem", "");
    let good = [
        ("CERTIFICATE", certificates.text("ca.pem")),
        ("CLIENT_CERTIFICATE", certificates.text("client.pem")),
        ("CLIENT_KEY", certificates.text("client.key")),
    ];
    let cases = [
        ("CERTIFICATE", "missing.pem"),
        ("CERTIFICATE", "empty.pem"),
        ("CERTIFICATE", "client.key"),
        ("CLIENT_CERTIFICATE", "empty.pem"),
        ("CLIENT_KEY", "empty.pem"),
        ("CLIENT_KEY", "client.pem"),
    ];
    for (variable, file) in cases {
        let bad = certificates.text(file);
        let variables = good
            .each_ref()
            .map(|(name, path)| (*name, if *name == variable { &*bad } else { &**path }));
        let make = |url| OtlpSink::new(&OtlpConfig::from_url(url, lookup(&variables)).unwrap());
        let error = make("https://127.0.0.1:1").err().unwrap();
        assert!(matches!(error, SinkError::Pem { .. }), "{error}");
        let message = error.to_string();
        assert!(
            message.starts_with(&format!("OTEL_EXPORTER_OTLP_{variable}: ")),
            "{message}"
        );
        assert!(message.contains(&bad), "{message}");
        assert!(
            make("http://127.0.0.1:1").is_ok(),
            "a plain endpoint reads no certificate"
        );
    }
}

/// Delivers a batch with these settings of a section.
async fn deliver(scheme: &str, receiver: &Receiver, tls: &ClientTls) -> Delivery {
    sink(scheme, receiver, tls).deliver(&batch(Signal::Metrics)).await
}

fn sink(scheme: &str, receiver: &Receiver, tls: &ClientTls) -> OtlpSink {
    let settings = OtlpSettings {
        tls: tls.clone(),
        ..OtlpSettings::default()
    };
    let url = format!("{scheme}://{}", receiver.address);
    OtlpSink::new(&OtlpConfig::from_section(Some(&url), &settings, |_| None).unwrap()).unwrap()
}

#[tokio::test]
async fn certificate_for_another_name_needs_server_name_or_disabled_verification() {
    let certificates = Certificates::make();
    let trusting = ClientTls {
        authority: Some(certificates.named("tls.ca", "ca.pem")),
        ..ClientTls::default()
    };
    for (scheme, answer) in KINDS {
        let server = certificates.server_with(certificates.signed("collector.test"), false);
        let receiver = Receiver::start_tls(server, answer).await;
        let message = retry(deliver(scheme, &receiver, &trusting).await).1;
        assert!(message.contains("tls.server_name"), "{scheme}: {message}");
        let named = ClientTls {
            server_name: Some("collector.test".to_owned()),
            ..trusting.clone()
        };
        assert_eq!(
            deliver(scheme, &receiver, &named).await,
            Delivery::Delivered,
            "{scheme}"
        );
        let unchecked = ClientTls {
            insecure_skip_verify: true,
            ..ClientTls::default()
        };
        assert_eq!(
            deliver(scheme, &receiver, &unchecked).await,
            Delivery::Delivered,
            "{scheme}"
        );
    }
}

#[tokio::test]
async fn expired_certificate_is_reported() {
    let certificates = Certificates::make();
    let trusting = ClientTls {
        authority: Some(certificates.named("tls.ca", "ca.pem")),
        ..ClientTls::default()
    };
    for (scheme, answer) in KINDS {
        let server = certificates.server_with(certificates.signed_until("127.0.0.1", 2001), false);
        let receiver = Receiver::start_tls(server, answer).await;
        let message = retry(deliver(scheme, &receiver, &trusting).await).1;
        assert!(
            message.contains("expired") && message.contains("renew the receiver's certificate"),
            "{scheme}: {message}"
        );
    }
}

#[tokio::test]
async fn renewed_certificates_are_used_without_a_restart() {
    let (certificates, other) = (Certificates::make(), Certificates::make());
    for (scheme, answer) in KINDS {
        for name in ["ca.pem", "client.pem", "client.key"] {
            let of_other = std::fs::read_to_string(other.path(name)).unwrap();
            certificates.write(&format!("used-{name}"), &of_other);
        }
        let receiver = Receiver::start_tls(certificates.server(true), answer).await;
        let tls = ClientTls {
            authority: Some(certificates.named("tls.ca", "used-ca.pem")),
            identity: Some(Identity {
                certificate: certificates.named("tls.certificate", "used-client.pem"),
                key: certificates.named("tls.key", "used-client.key"),
            }),
            ..ClientTls::default()
        };
        let mut sink = sink(scheme, &receiver, &tls);
        retry(sink.deliver(&batch(Signal::Logs)).await);
        for name in ["client.pem", "client.key", "ca.pem"] {
            std::fs::copy(
                certificates.path(name),
                certificates.path(&format!("used-{name}")),
            )
            .unwrap();
        }
        tokio::time::timeout(Duration::from_secs(30), async {
            while sink.deliver(&batch(Signal::Logs)).await != Delivery::Delivered {}
        })
        .await
        .unwrap();
    }
}
