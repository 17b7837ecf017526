//! The content of PEM files: certificates and private keys.

use std::{error::Error, path::Path};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

/// The source of an error about a file.
type Problem = Box<dyn Error + Send + Sync>;

/// Reads the certificates of a file. A file without one is an error.
pub(crate) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let certificates = CertificateDer::pem_file_iter(file)?.collect::<Result<Vec<_>, _>>()?;
    match certificates.is_empty() {
        true => Err("it has no certificate".into()),
        false => Ok(certificates),
    }
}

/// Reads the first private key of a file.
pub(crate) fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, Problem> {
    Ok(PrivateKeyDer::from_pem_file(file)?)
}
