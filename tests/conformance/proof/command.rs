//! `jim verify` as a stranger runs it: exit statuses and what it prints.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use ed25519_dalek::pkcs8::EncodePublicKey;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use serde_json::Value;

use super::TestKey;
use super::orders::sale;

fn run(folder: &Path, args: &[&str]) -> Option<Output> {
    // without the service there is no command
    let Some(program) = option_env!("CARGO_BIN_EXE_jim") else {
        eprintln!("skipped: the command line is not built");
        return None;
    };
    Some(Command::new(program).current_dir(folder).arg("verify").args(args).output().expect("the command runs"))
}

fn write_keys(folder: &Path) {
    for (name, seed) in [("right.pem", 1), ("wrong.pem", 2)] {
        let pem = TestKey::new(seed).key.verifying_key().to_public_key_pem(LineEnding::LF).expect("PEM");
        fs::write(folder.join(name), pem).expect("written");
    }
}

#[test]
fn statuses_and_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let sale = sale(&TestKey::new(1));
    write_keys(folder.path());
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).expect("written");
    let bundle = sale.bundle();
    write("bundle.json", &bundle);
    write("body.json", &sale.body);
    write("lie.json", &String::from_utf8_lossy(&sale.body).replace("6.56", "6.65").into_bytes());
    let mut flipped = bundle.clone();
    let at = String::from_utf8_lossy(&bundle)
        .find("still")
        .or(String::from_utf8_lossy(&bundle).find("pass"))
        .expect("a word");
    flipped[at] ^= 1;
    write("flipped.json", &flipped);
    for (args, status, said) in [
        (&["bundle.json"][..], 0, "no key that it names was given"),
        (&["bundle.json", "--key", "right.pem"], 0, "the signatures verify"),
        (&["--key", "wrong.pem", "--keys", "right.pem", "bundle.json"], 0, "the signatures verify"),
        (&["bundle.json", "--key", "wrong.pem"], 1, "none of the keys that were given signed this bundle"),
        (&["flipped.json", "--key", "right.pem"], 1, "digest-mismatch"),
        (
            &["bundle.json", "--key", "right.pem", "--answer", "body.json"],
            0,
            "run again over the answer, 2 figures checked",
        ),
        (&["bundle.json", "--key", "right.pem", "--answer", "lie.json"], 1, "gate:value-mismatch"),
        (&["body.json"], 1, "protocol-unsupported"),
    ] {
        let Some(output) = run(folder.path(), args) else { return };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {text}");
        assert!(text.contains(said), "{args:?}: {text}");
    }
    for (args, said) in [
        (&["none.json"][..], "none.json cannot be read"),
        (&["bundle.json", "--key", "body.json"], "no Ed25519 public key"),
    ] {
        let Some(output) = run(folder.path(), args) else { return };
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(said), "{args:?}");
    }
}

#[test]
fn the_result_as_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let sale = sale(&TestKey::new(1));
    write_keys(folder.path());
    fs::write(folder.path().join("bundle.json"), sale.bundle()).expect("written");
    fs::write(folder.path().join("body.json"), &sale.body).expect("written");
    let Some(output) = run(folder.path(), &["bundle.json", "--key", "right.pem", "--answer", "body.json", "--json"])
    else {
        return;
    };
    let shown: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert_eq!(output.status.code(), Some(0), "{shown}");
    for (member, want) in [
        ("clean", true.into()),
        ("protocolOk", true.into()),
        ("manifestOk", true.into()),
        ("tailRecords", 0.into()),
        ("chainMode", "signed".into()),
        ("checkpointSignature", "verified".into()),
        ("problems", Value::Array(Vec::new())),
    ] {
        assert_eq!(shown[member], want, "{member}");
    }
    assert_eq!((&shown["answer"]["gateRerun"], &shown["answer"]["figuresChecked"]), (&true.into(), &2.into()));
}
