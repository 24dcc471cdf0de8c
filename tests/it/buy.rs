//! `jim buy` as a process, against a seller that misbehaves: one payment a purchase, whatever happens in between.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::support::seller::{Seller, Turn};

/// A command on a data folder of its own.
fn jim(seller: &Seller, data: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jim"));
    command.args(["buy", &seller.url(), "--data-dir"]).arg(data).args(more).kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

async fn run(seller: &Seller, data: &Path, more: &[&str]) -> (i32, String, String) {
    told(jim(seller, data, more).output().await.expect("it runs"))
}

fn told(output: Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Begins a purchase that hangs once the payment has arrived.
async fn hanging(seller: &Seller, data: &Path) -> Child {
    seller.on_payment([Turn::Hang]);
    let child = jim(seller, data, &[]).spawn().expect("it starts");
    seller.wait_for(1).await;
    child
}

/// Files of open and abandoned purchases.
fn kept(data: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(data.join("purchases")).expect("a folder").map(|entry| entry.expect("a file").path());
    files.filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect()
}

fn pending() -> Turn {
    Turn::Say(
        503,
        json!({"code": "settlement_pending", "charged": "unknown", "retry": {"safe": true, "same_payment": true}}),
    )
}

fn refusal(status: u16, code: &str, same_payment: bool) -> Turn {
    Turn::Say(status, json!({"code": code, "charged": false, "retry": {"safe": true, "same_payment": same_payment}}))
}

#[tokio::test]
async fn a_pending_settlement_is_asked_about_with_the_same_payment() {
    let (seller, data) = (Seller::start().await, TempDir::new().expect("a folder"));
    seller.on_payment([
        pending(),
        refusal(409, "payment_in_progress", true),
        refusal(503, "overloaded", true),
        pending(),
    ]);
    let (status, out, err) = run(&seller, data.path(), &["--json"]).await;
    assert_eq!(status, 0, "{err}");
    let out: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&out["outcome"], &out["resumed"]), (&"delivered".into(), &false.into()));
    assert_eq!(seller.seen(), (5, 1));
    assert!(kept(data.path()).is_empty());
}

#[tokio::test]
async fn a_killed_process_is_followed_by_the_same_payment() {
    let (seller, data) = (Seller::start().await, TempDir::new().expect("a folder"));
    let mut child = hanging(&seller, data.path()).await;
    child.kill().await.expect("killed");
    let [file] = kept(data.path()).try_into().expect("one file");
    let text = std::fs::read_to_string(&file).expect("readable");
    let purchase: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&purchase["amount"], &purchase["network"]), (&"50000".into(), &"eip155:84532".into()));
    let (status, _, err) = run(&seller, data.path(), &[]).await;
    assert_eq!(status, 0, "{err}");
    let nonce = purchase["nonce"].as_str().expect("a nonce");
    assert!(err.contains(&format!("resuming payment {nonce} of ")), "{err}");
    assert_eq!(seller.seen(), (2, 1));
    assert!(kept(data.path()).is_empty());
    // the purchase has ended, so the next one is a new one
    assert_eq!(run(&seller, data.path(), &[]).await.0, 0);
    assert_eq!(seller.seen(), (3, 2));
}

#[tokio::test]
async fn an_interrupt_says_how_to_go_on() {
    let (seller, data) = (Seller::start().await, TempDir::new().expect("a folder"));
    let child = hanging(&seller, data.path()).await;
    let id = i32::try_from(child.id().expect("it runs")).expect("small");
    kill_process(Pid::from_raw(id).expect("an id"), Signal::INT).expect("sent");
    let (status, _, err) = told(child.wait_with_output().await.expect("it ends"));
    assert_eq!(status, 5, "{err}");
    assert!(err.contains("run the same command again"), "{err}");
    assert_eq!(kept(data.path()).len(), 1);
    assert_eq!(run(&seller, data.path(), &[]).await.0, 0);
    assert_eq!(seller.seen(), (2, 1));
}

#[tokio::test]
async fn a_definite_no_is_not_charged_and_forgotten() {
    let (seller, data) = (Seller::start().await, TempDir::new().expect("a folder"));
    for (turn, count) in [
        (Turn::Terms { contract: false }, 1),
        (refusal(502, "research_rejected", false), 2),
        (refusal(429, "rate_limited", false), 3),
    ] {
        seller.on_payment([turn]);
        let (status, _, err) = run(&seller, data.path(), &[]).await;
        assert_eq!((status, seller.seen()), (4, (count, count)), "{err}");
        assert!(err.contains("not charged") && kept(data.path()).is_empty(), "{err}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_after_the_payment_brings_the_same_payment() {
    let (seller, data) = (Seller::start().await, TempDir::new().expect("a folder"));
    seller.on_payment([Turn::Drop]);
    let (status, out, err) = run(&seller, data.path(), &[]).await;
    assert_eq!((status, seller.seen()), (0, (2, 1)), "{err}");
    assert!(out.contains("bought"), "{out}");
}

#[tokio::test]
async fn a_no_that_may_not_speak_of_the_payment_leaves_it_open() {
    let (seller, data) = (Seller::start().await, TempDir::new().expect("a folder"));
    // new terms from a seller who promises nothing: his facilitator may have said that the nonce is used
    seller.on_payment([pending(), Turn::Terms { contract: false }]);
    let (status, _, err) = run(&seller, data.path(), &[]).await;
    assert_eq!((status, kept(data.path()).len()), (5, 1), "{err}");
    // turned away at the door: not a word about the payment that was sent before
    seller.on_payment([refusal(429, "rate_limited", false)]);
    let (status, _, err) = run(&seller, data.path(), &["--wait", "0"]).await;
    assert_eq!((status, kept(data.path()).len()), (5, 1), "{err}");
    // the same from a seller who never says so while the outcome is open
    seller.on_payment([Turn::Terms { contract: true }]);
    let (status, _, err) = run(&seller, data.path(), &[]).await;
    assert_eq!((status, kept(data.path()).len()), (4, 0), "{err}");
    assert_eq!(seller.seen(), (4, 1));
}

#[tokio::test]
async fn an_outcome_that_stays_unknown_keeps_its_payment_beyond_its_window() {
    let (seller, data) = (Seller::with_window(1).await, TempDir::new().expect("a folder"));
    seller.on_payment([pending(), pending()]);
    let (status, out, err) = run(&seller, data.path(), &["--wait", "0", "--json"]).await;
    assert_eq!((status, kept(data.path()).len()), (5, 1), "{err}");
    assert_eq!(serde_json::from_str::<Value>(&out).expect("JSON")["outcome"], "unknown");
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    let (status, _, err) = run(&seller, data.path(), &["--wait", "0"]).await;
    assert_eq!((status, kept(data.path()).len()), (5, 1), "{err}");
    assert_eq!(run(&seller, data.path(), &[]).await.0, 0);
    assert_eq!(seller.seen(), (3, 1));
}

#[tokio::test]
async fn a_second_process_for_the_same_thing_is_turned_away() {
    let (seller, data) = (Seller::start().await, TempDir::new().expect("a folder"));
    let child = hanging(&seller, data.path()).await;
    let (status, _, err) = run(&seller, data.path(), &[]).await;
    assert_eq!(status, 2, "{err}");
    assert!(err.contains("another jim is buying the same thing"), "{err}");
    let (status, _, err) = run(&seller, data.path(), &["--method", "POST", "--body", "{}"]).await;
    assert_eq!((status, seller.seen()), (0, (2, 2)), "another request is another purchase: {err}");
    drop(child);
}

#[tokio::test]
async fn only_an_explicit_word_gives_an_open_payment_up() {
    let (seller, data) = (Seller::start().await, TempDir::new().expect("a folder"));
    seller.on_payment([pending()]);
    assert_eq!(run(&seller, data.path(), &["--wait", "0"]).await.0, 5);
    let [file] = kept(data.path()).try_into().expect("one file");
    let whole = std::fs::read(&file).expect("readable");
    std::fs::write(&file, &whole[..40]).expect("written");
    let (status, _, err) = run(&seller, data.path(), &[]).await;
    assert_eq!((status, seller.seen()), (2, (1, 1)), "a file that cannot be read signs nothing: {err}");
    std::fs::write(&file, &whole).expect("written");
    let (status, _, err) = run(&seller, data.path(), &["--abandon"]).await;
    assert_eq!((status, seller.seen()), (0, (2, 2)), "{err}");
    assert!(err.contains("paid twice") && err.contains("50000 units"), "{err}");
    let [aside] = kept(data.path()).try_into().expect("the old one");
    assert_eq!(std::fs::read(aside).expect("readable"), whole);
}
