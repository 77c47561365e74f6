//! Credentials that run out, against a server that takes one token, and a plugin that gives what a file says.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

use super::*;

/// A server that takes one token and answers every other request with 401; it ends with the test.
fn server(token: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut asked = Vec::new();
            let mut part = [0; 1024];
            while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
                let read = connection.read(&mut part).unwrap_or(0);
                if read == 0 {
                    break;
                }
                asked.extend_from_slice(&part[..read]);
            }
            let asked = String::from_utf8_lossy(&asked).to_lowercase();
            let status = if asked.contains(&format!("authorization: bearer {token}\r\n")) {
                "200 OK"
            } else {
                "401 Unauthorized"
            };
            let answer =
                format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
            let _ = connection.write_all(answer.as_bytes());
        }
    });
    format!("http://{address}")
}

/// A credential plugin that gives what stands in the file `token`, without an end of its life, and counts its calls.
fn plugin(folder: &Path, then: &str) -> String {
    let path = folder.join("plugin");
    let script = format!(
        "#!/bin/sh\ncd {folder}\necho . >> count\n{then}\n\
         echo '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{{\"token\":\"'$(cat token)'\"}}}}'\n",
        folder = folder.display()
    );
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    rotate(folder, "old");
    path.display().to_string()
}

fn rotate(folder: &Path, token: &str) {
    fs::write(folder.join("token"), token).unwrap();
}

fn calls(folder: &Path) -> usize {
    let text = fs::read_to_string(folder.join("count")).unwrap();
    text.lines().count()
}

async fn chosen(folder: &Path, server: &str, user: &str) -> Chosen {
    let file = folder.join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n\
         users: [{{name: me, user: {user}}}]\ncontexts: [{{name: lab, context: {{cluster: c, user: me}}}}]\n"
    );
    fs::write(&file, text).unwrap();
    Chosen::find("lab", Some(&file)).await.unwrap()
}

fn exec(command: &str) -> String {
    format!(
        "{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: '{command}', interactiveMode: Never}}}}"
    )
}

async fn asked(session: &Session) -> u16 {
    let request = Request::get("/version").body(Body::empty()).unwrap();
    session.send(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_token_that_has_run_out_is_asked_for_again_once() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = plugin(folder.path(), "");
    let url = server("new");
    let session = Session::open(chosen(folder.path(), &url, &exec(&plugin)).await).unwrap();
    rotate(folder.path(), "new");
    assert_eq!(asked(&session).await, 200);
    // The next request goes with the new one.
    let before = calls(folder.path());
    assert_eq!(asked(&session).await, 200);
    assert_eq!(calls(folder.path()), before);
}

#[tokio::test]
async fn a_server_that_takes_no_token_is_asked_twice_and_its_word_stands() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = plugin(folder.path(), "");
    let url = server("another");
    let session = Session::open(chosen(folder.path(), &url, &exec(&plugin)).await).unwrap();
    // A client asks more than once for itself; a second client is made, and no third.
    let of_one_client = calls(folder.path());
    assert_eq!(asked(&session).await, 401);
    assert_eq!(calls(folder.path()), 2 * of_one_client);
}

#[tokio::test]
async fn a_rewritten_token_and_a_kubeconfig_that_leads_elsewhere_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let url = server("new");
    let session = Session::open(chosen(folder.path(), &url, "{token: old}").await).unwrap();
    chosen(folder.path(), &url, "{token: new}").await;
    assert_eq!(asked(&session).await, 200);

    let session = Session::open(chosen(folder.path(), &url, "{token: old}").await).unwrap();
    // The other server would take the token: it must never be asked.
    let other = server("new");
    chosen(folder.path(), &other, "{token: new}").await;
    assert_eq!(asked(&session).await, 401);
}

#[tokio::test]
async fn a_failing_plugins_words_reach_the_user_and_its_token_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let fails = "echo '{\"token\":\"s3cr3t\"}'; echo 'session expired, log in again' >&2; exit 1";
    let plugin = plugin(folder.path(), fails);
    let chosen = chosen(folder.path(), "http://127.0.0.1:1", &exec(&plugin)).await;
    let Err(problem) = Session::open(chosen) else {
        panic!("the plugin failed");
    };
    let told = format!("{problem} {problem:?}");
    assert!(told.contains("session expired, log in again"), "{told}");
    assert!(!told.contains("s3cr3t"), "{told}");
}
