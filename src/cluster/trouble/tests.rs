//! Servers of these tests speak real TLS with certificates made on the spot.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::*;
use crate::cluster::kubeconfig::Chosen;
use crate::cluster::remote;

/// An authority that issues certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate with its key.
struct Issued {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let pem = params.self_signed(&key).unwrap().pem();
        Authority {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// Valid from the first day of one year to the first of another.
    fn issue(&self, name: &str, years: (i32, i32)) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(years.0, 1, 1);
        params.not_after = date_time_ymd(years.1, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Issued { certificate, key }
    }
}

/// Years in which every machine that runs this lives.
const ALWAYS: (i32, i32) = (2020, 2090);

/// An API server that takes nobody; answers its port. It ends with the runtime.
async fn refusing(issued: &Issued, date: &'static str) -> u16 {
    let key = PrivateKeyDer::try_from(issued.key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![issued.certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let body = r#"{"kind":"Status","code":401,"message":"Unauthorized"}"#;
                let answer = format!(
                    "HTTP/1.1 401 Unauthorized\r\nDate: {date}\r\nContent-Type: application/json\r\n\
                     Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    port
}

/// What is told of a failed connection at a moment of this machine's clock.
async fn trouble(server: &str, authority: &Authority, user: &str, now: &str) -> String {
    let ca = STANDARD.encode(&authority.pem);
    let text = format!(
        "apiVersion: v1\nkind: Config\n\
         clusters: [{{name: c, cluster: {{server: '{server}', certificate-authority-data: {ca}}}}}]\n\
         users: [{{name: u, user: {user}}}]\n\
         contexts: [{{name: lab, context: {{cluster: c, user: u}}}}]\n"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let chosen = Chosen::find("lab", Some(file.path())).await.unwrap();
    let config = chosen.config.clone();
    let error = remote::connect(chosen).await.err().unwrap();
    let told = told(&error, &config, now.parse().unwrap()).await;
    let told = told.unwrap_or_else(|| panic!("nothing is told of {error:?}"));
    format!("{} | {}", told.what, told.todo.join(" | "))
}

fn client(issued: &Issued) -> String {
    format!(
        "{{client-certificate-data: {}, client-key-data: {}}}",
        STANDARD.encode(issued.certificate.pem()),
        STANDARD.encode(issued.key.serialize_pem())
    )
}

const NOON: &str = "Tue, 02 Jun 2026 12:00:00 GMT";
const NOW: &str = "2026-06-02T12:00:10Z";

fn assert_says(told: &str, words: &[&str]) {
    for word in words {
        assert!(told.contains(word), "{word:?} in {told}");
    }
}

#[tokio::test]
async fn nobody_there_and_another_cluster_there_are_told_apart() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("https://{}", free.local_addr().unwrap());
    drop(free);
    let told = trouble(&server, &ours, "{token: t}", NOW).await;
    assert_says(&told, &["nobody listens at", &server]);
    let port = refusing(&theirs.issue("127.0.0.1", ALWAYS), NOON).await;
    let server = format!("https://127.0.0.1:{port}");
    let told = trouble(&server, &ours, "{token: t}", NOW).await;
    assert_says(&told, &["another cluster answers at", &server, "authority"]);
}

#[tokio::test]
async fn a_servers_certificate_out_of_date_or_for_another_name_is_told_with_dates_and_names() {
    let ours = Authority::new();
    let told = async |issued: Issued| {
        let port = refusing(&issued, NOON).await;
        let server = format!("https://127.0.0.1:{port}");
        trouble(&server, &ours, "{token: t}", NOW).await
    };
    let old = told(ours.issue("127.0.0.1", (2020, 2021))).await;
    assert_says(
        &old,
        &[
            "expired on 2021-01-01T00:00:00Z",
            "this machine's clock says",
        ],
    );
    let young = told(ours.issue("127.0.0.1", (2089, 2090))).await;
    assert_says(&young, &["valid from 2089-01-01T00:00:00Z only"]);
    let other = told(ours.issue("10.0.0.9", ALWAYS)).await;
    assert_says(&other, &["for other names", "10.0.0.9", "tls-server-name"]);
}

#[tokio::test]
async fn a_client_certificate_out_of_date_is_told_with_its_dates_by_both_clocks() {
    let ours = Authority::new();
    let port = refusing(&ours.issue("127.0.0.1", ALWAYS), NOON).await;
    let server = format!("https://127.0.0.1:{port}");
    let old = client(&ours.issue("me", (2024, 2025)));
    let told = trouble(&server, &ours, &old, NOW).await;
    assert_says(
        &told,
        &[
            "client certificate",
            "has expired",
            "2024-01-01",
            "2025-01-01",
        ],
    );
    let young = client(&ours.issue("me", (2027, 2028)));
    let told = trouble(&server, &ours, &young, NOW).await;
    assert_says(&told, &["not valid yet", "2027-01-01"]);
    // In order by our clock, and not by the server's.
    let told = trouble(&server, &ours, &young, "2027-06-02T12:00:00Z").await;
    assert_says(
        &told,
        &[
            "by the server's clock (2026-06-02T12:00:00Z)",
            "clock that is wrong",
        ],
    );
    let strange = client(&Authority::new().issue("me", ALWAYS));
    let told = trouble(&server, &ours, &strange, NOW).await;
    assert_says(&told, &["client certificate is of another cluster"]);
}

#[tokio::test]
async fn an_expired_token_and_clocks_that_differ_are_told_apart() {
    let ours = Authority::new();
    let port = refusing(&ours.issue("127.0.0.1", ALWAYS), NOON).await;
    let server = format!("https://127.0.0.1:{port}");
    let told = trouble(&server, &ours, "{token: t}", NOW).await;
    assert_says(
        &told,
        &["does not take the credential", "token has expired"],
    );
    let told = trouble(&server, &ours, "{token: t}", "2026-06-02T11:00:00Z").await;
    assert_says(&told, &["3600 s ahead of"]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_credential_plugin_is_told_to_be_missing_or_quoted_but_never_its_token() {
    let ours = Authority::new();
    let port = refusing(&ours.issue("127.0.0.1", ALWAYS), NOON).await;
    let server = format!("https://127.0.0.1:{port}");
    let exec = |command: &str, args: &str| {
        format!(
            "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: {command}, args: {args}, \
             interactiveMode: Never}}}}"
        )
    };
    let missing = exec("no-such-plugin-anywhere", "[]");
    let told = trouble(&server, &ours, &missing, NOW).await;
    assert_says(&told, &["cannot be started", "PATH"]);
    let script = "['-c', 'printf s3cr3t-; echo token; echo session ended, log in >&2; exit 3']";
    let told = trouble(&server, &ours, &exec("sh", script), NOW).await;
    assert_says(&told, &["session ended, log in", "exit status: 3"]);
    assert!(!told.contains("s3cr3t-token"), "{told}");
    let answer = r#"['-c', 'echo "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\"}}"']"#;
    let told = trouble(&server, &ours, &exec("sh", answer), NOW).await;
    assert_says(&told, &["log in again with the plugin"]);
}
