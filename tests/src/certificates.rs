//! A certificate authority for one test, with certificates for the server and the client.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use tempfile::TempDir;

/// PEM files in a folder that is removed when the value is dropped.
#[derive(Debug)]
pub struct Certificates {
    folder: TempDir,
}

impl Certificates {
    /// Creates an authority, a server certificate for 127.0.0.1 and localhost, and a client certificate.
    pub fn generate() -> Self {
        let made = Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
        };
        let key = KeyPair::generate().expect("a key can be made");
        let authority = CertifiedIssuer::self_signed(authority(), key).expect("a key can sign itself");
        made.write("authority.pem", &authority.pem());
        made.issue("server", ExtendedKeyUsagePurpose::ServerAuth, &authority, false);
        made.issue("client", ExtendedKeyUsagePurpose::ClientAuth, &authority, false);
        made.issue(
            "expired-server",
            ExtendedKeyUsagePurpose::ServerAuth,
            &authority,
            true,
        );
        made.issue(
            "expired-client",
            ExtendedKeyUsagePurpose::ClientAuth,
            &authority,
            true,
        );
        made
    }

    /// Returns the authority's certificate.
    pub fn authority(&self) -> PathBuf {
        self.path("authority.pem")
    }

    /// Returns the server's certificate and key.
    pub fn server(&self) -> (PathBuf, PathBuf) {
        (self.path("server.pem"), self.path("server.key"))
    }

    /// Returns the client's certificate and key.
    pub fn client(&self) -> (PathBuf, PathBuf) {
        (self.path("client.pem"), self.path("client.key"))
    }

    /// Returns an expired server certificate and its key.
    pub fn expired_server(&self) -> (PathBuf, PathBuf) {
        (self.path("expired-server.pem"), self.path("expired-server.key"))
    }

    /// Returns an expired client certificate and its key.
    pub fn expired_client(&self) -> (PathBuf, PathBuf) {
        (self.path("expired-client.pem"), self.path("expired-client.key"))
    }

    fn issue(
        &self,
        name: &str,
        purpose: ExtendedKeyUsagePurpose,
        authority: &CertifiedIssuer<'_, KeyPair>,
        is_expired: bool,
    ) {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new(["127.0.0.1", "localhost"].map(str::to_owned))
            .expect("an address is a subject");
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![purpose];
        if is_expired {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        }
        let certificate = params.signed_by(&key, authority).expect("the authority can sign");
        self.write(&format!("{name}.pem"), &certificate.pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    fn write(&self, name: &str, pem: &str) {
        fs::write(self.path(name), pem).expect("a temporary file can be written");
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::join(self.folder.path(), name)
    }
}

fn authority() -> CertificateParams {
    let mut params = CertificateParams::default();
    // Each name is unique: OpenSSL treats a certificate whose subject equals its issuer as self-signed, and looks up an
    // authority by its name.
    static MADE: AtomicU32 = AtomicU32::new(0);
    let name = format!("authority {}", MADE.fetch_add(1, Ordering::Relaxed));
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}
