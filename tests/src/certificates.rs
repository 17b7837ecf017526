//! A certificate authority of one test, with a certificate for the server and one for the client.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tempfile::TempDir;

/// PEM files in a folder that goes away with this value.
#[derive(Debug)]
pub struct Certificates {
    folder: TempDir,
}

impl Certificates {
    /// Makes an authority, and by it a server certificate for 127.0.0.1 and a client certificate.
    pub fn generate() -> Self {
        let made = Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
        };
        let key = KeyPair::generate().expect("a key can be made");
        let authority = CertifiedIssuer::self_signed(authority(), key).expect("a key can sign itself");
        made.write("authority.pem", &authority.pem());
        made.issue("server", ExtendedKeyUsagePurpose::ServerAuth, &authority);
        made.issue("client", ExtendedKeyUsagePurpose::ClientAuth, &authority);
        made
    }

    /// The authority's certificate.
    pub fn authority(&self) -> PathBuf {
        self.path("authority.pem")
    }

    /// The server's certificate and key.
    pub fn server(&self) -> (PathBuf, PathBuf) {
        (self.path("server.pem"), self.path("server.key"))
    }

    /// The client's certificate and key.
    pub fn client(&self) -> (PathBuf, PathBuf) {
        (self.path("client.pem"), self.path("client.key"))
    }

    fn issue(&self, name: &str, purpose: ExtendedKeyUsagePurpose, authority: &CertifiedIssuer<'_, KeyPair>) {
        let key = KeyPair::generate().expect("a key can be made");
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("an address is a subject");
        params.extended_key_usages = vec![purpose];
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
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}
