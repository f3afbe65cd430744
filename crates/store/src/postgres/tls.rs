//! Encrypted connections to PostgreSQL: the parameters `sslmode` and `sslrootcert` of the URL, as libpq has them.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as RustlsStream;
use toolrest_core::{Result, ToolError};

/// The setting that errors name.
const SETTING: &str = "database.url";

/// How connections to a database are encrypted.
#[derive(Clone)]
pub(super) struct Tls(Option<Arc<ClientConfig>>);

/// Opens single connections.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) config: Config,
    pub(super) tls: Tls,
}

impl Connector {
    /// Opens a connection.
    pub(super) async fn connect(&self) -> Result<(Client, Connection<Socket, Encrypted>), tokio_postgres::Error> {
        self.config.connect(self.tls.clone()).await
    }
}

/// How a URL says that connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Not at all.
    Off,
    /// Encrypted, whoever answers.
    Require,
    /// Encrypted, with a certificate for the host.
    VerifyFull,
}

impl Tls {
    /// Reads the parameters about encryption, and returns the URL without them.
    pub(super) fn of_url(url: &str) -> Result<(String, Self)> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut roots) = (Mode::Off, None);
        let mut rest = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", value)) => mode = Mode::parse(value)?,
                Some(("sslrootcert", file)) => roots = Some(decoded(file)),
                _ => rest.push(parameter),
            }
        }
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(ToolError::internal)?;
        let config = match (mode, roots) {
            (Mode::Off, _) => None,
            (Mode::Require, Some(_)) => {
                let message = "`sslrootcert` is used with `sslmode=verify-full`; with `require` nothing is verified";
                return Err(ToolError::argument(SETTING, message));
            }
            (Mode::Require, None) => {
                let verifier = Arc::new(AnyCertificate(provider));
                Some(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
            }
            (Mode::VerifyFull, roots) => {
                let roots = match roots.as_deref() {
                    None | Some("system") => roots_of_machine()?,
                    Some(file) => roots_of_file(Path::new(file))?,
                };
                Some(builder.with_root_certificates(roots).with_no_client_auth())
            }
        };
        let rest = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        Ok((rest, Self(config.map(Arc::new))))
    }

    /// Whether connections are encrypted.
    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }
}

impl Mode {
    fn parse(text: &str) -> Result<Self> {
        match text {
            // Without a promise to encrypt, a connection is not encrypted.
            "disable" | "allow" | "prefer" => Ok(Self::Off),
            "require" => Ok(Self::Require),
            "verify-full" => Ok(Self::VerifyFull),
            other => {
                let message = format!("`sslmode={other}` is not supported; use disable, require or verify-full");
                Err(ToolError::argument(SETTING, message))
            }
        }
    }
}

fn roots_of_machine() -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let message =
            "This machine has no root certificates; install ca-certificates, or name a file with `sslrootcert`";
        return Err(ToolError::argument(SETTING, message));
    }
    Ok(roots)
}

fn roots_of_file(file: &Path) -> Result<RootCertStore> {
    let failed = |problem: String| {
        let message = format!("Cannot read certificates in PEM format from {}: {problem}", file.display());
        ToolError::argument(SETTING, message)
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| failed(error.to_string()))? {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    if roots.is_empty() { Err(failed("it has none".to_owned())) } else { Ok(roots) }
}

/// Decodes the percent-encoding of a parameter.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let byte = byte.filter(|_| *first == b'%');
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Accepts any certificate, as `sslmode=require` says, from whoever has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Why a connection could not be encrypted.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsError {
    #[error("{0:?} is no host for which there could be a certificate")]
    Name(String, #[source] InvalidDnsNameError),
    #[error("connections are not encrypted")]
    Off,
    #[error("{0}")]
    Handshake(#[from] io::Error),
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = TlsError;

    /// Also called for connections that are not encrypted.
    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, TlsError> {
        Ok(Handshake { config: self.0.clone(), host: host.to_owned() })
    }
}

/// The handshake of one connection.
pub(super) struct Handshake {
    config: Option<Arc<ClientConfig>>,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = TlsError;
    type Future = Pin<Box<dyn Future<Output = Result<Encrypted, TlsError>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Self { config, host } = self;
            let name = ServerName::try_from(host.clone()).map_err(|error| TlsError::Name(host, error))?;
            let connector = TlsConnector::from(config.ok_or(TlsError::Off)?);
            Ok(Encrypted(Box::new(connector.connect(name, socket).await?)))
        })
    }
}

/// An encrypted connection.
pub(super) struct Encrypted(Box<RustlsStream<Socket>>);

impl TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
