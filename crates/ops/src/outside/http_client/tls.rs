//! Encrypted connections, with the root certificates of the machine and those of the operator.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The trust of encrypted connections. The certificates of the machine are read with the first connection.
#[derive(Default)]
pub struct Tls {
    extra: Vec<CertificateDer<'static>>,
    config: OnceCell<Arc<ClientConfig>>,
}

/// The error for a file without certificates.
#[derive(Debug, thiserror::Error)]
#[error("cannot read certificates in PEM format from {path}: {problem}")]
pub struct BadCertificates {
    path: PathBuf,
    problem: String,
}

/// Why a connection could not be encrypted.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There are no certificates to check a host with.
    #[error(
        "no host can be trusted: this machine has no root certificates (install ca-certificates) and web.ca_file has none"
    )]
    NoRoots,
    /// The configuration is not possible.
    #[error("encrypted connections cannot be set up: {0}")]
    SetUp(String),
    /// The host has no name for which there could be a certificate.
    #[error("there can be no certificate for {0:?}")]
    Name(String),
    /// The handshake failed.
    #[error("no encrypted connection to {host}: {source}")]
    Handshake {
        /// The host.
        host: String,
        /// Why.
        source: io::Error,
    },
}

impl Tls {
    /// Creates the trust, with the certificates of this PEM file in addition to those of the machine.
    pub fn with_file(file: Option<&Path>) -> Result<Self, BadCertificates> {
        let Some(path) = file else { return Ok(Self::default()) };
        let bad = |problem: String| BadCertificates { path: path.to_owned(), problem };
        let certificates = CertificateDer::pem_file_iter(path).map_err(|error| bad(error.to_string()))?;
        let extra: Vec<_> = certificates.collect::<Result<_, _>>().map_err(|error| bad(error.to_string()))?;
        if extra.is_empty() {
            return Err(bad("it has none".to_owned()));
        }
        Ok(Self { extra, config: OnceCell::new() })
    }

    /// Encrypts a connection to a host, after checking that it is this host.
    pub(super) async fn connect(&self, host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, TlsError> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))?;
        let connector = TlsConnector::from(self.config().await?);
        let failed = |source| TlsError::Handshake { host: host.to_owned(), source };
        connector.connect(name, stream).await.map_err(failed)
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let read = async || {
            let extra = self.extra.clone();
            // Reads many files.
            let config = tokio::task::spawn_blocking(move || config(extra)).await;
            config.map_err(|error| TlsError::SetUp(error.to_string()))?
        };
        self.config.get_or_try_init(read).await.cloned()
    }
}

fn config(extra: Vec<CertificateDer<'static>>) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    let own = rustls_native_certs::load_native_certs();
    for error in &own.errors {
        tracing::warn!(%error, "could not read a part of the machine's root certificates");
    }
    roots.add_parsable_certificates(own.certs);
    roots.add_parsable_certificates(extra);
    if roots.is_empty() {
        return Err(TlsError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| TlsError::SetUp(error.to_string()))?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
