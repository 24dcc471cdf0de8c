//! SIGTERM under load, to the program itself: no paid request is dropped, or the same payment gets the memo afterwards.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use jim::evm::SecretKey;
use jim::x402::{self, OutgoingPayment};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::support::buyer::{next_nonce, now_s};
use crate::support::database::{TestDatabase, fresh_database};
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::rows::{assert_invariants, column};

const PATH: &str = "/research/fundamentals?ticker=COIN";

fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address")
}

fn serve(database: &TestDatabase, data: &Path, public: SocketAddr, stub: &StubFacilitator) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jim"));
    command.args(["serve", "--no-download", "--database-url", &database.url(), "--listen", &public.to_string()]);
    command.arg("--config").arg(data.join("jim.toml")).arg("--data-dir").arg(data);
    let settings = format!(
        "operator_listen = \"{}\"\n[payments]\nfacilitator_url = \"{}\"\n[limits]\nrate_per_minute = 0\n",
        free_port(),
        stub.url()
    );
    std::fs::write(data.join("jim.toml"), settings).expect("settings");
    command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn().expect("it starts")
}

async fn wait_until_ready(client: &reqwest::Client, base: &str) {
    for _ in 0..600 {
        if client.get(format!("{base}/ready")).send().await.is_ok_and(|reply| reply.status() == 200) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not ready");
}

/// A new payment of a new payer; None when the service takes no more requests.
async fn sign(client: &reqwest::Client, base: &str, payer: usize) -> Option<OutgoingPayment> {
    let asked = client.get(format!("{base}{PATH}")).send().await.ok()?;
    let header = asked.headers().get("payment-required")?.to_str().ok()?.to_owned();
    let offer = x402::read_required(&header).expect("terms").offers.remove(0);
    let mut bytes = [9; 32];
    bytes[..8].copy_from_slice(&u64::try_from(payer).expect("small").to_be_bytes());
    Some(x402::pay(&offer, &SecretKey::from_bytes(bytes).expect("a test key"), next_nonce(), now_s()))
}

/// The status, or None when the connection was refused or cut.
async fn pay(client: &reqwest::Client, base: &str, payment: &OutgoingPayment) -> Option<u16> {
    let request = client.get(format!("{base}{PATH}"));
    let reply = request.header(payment.version.payment_header(), &payment.header_value).send().await.ok()?;
    let status = reply.status().as_u16();
    reply.bytes().await.ok().map(|_| status)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_under_load_drops_no_payment_that_cannot_be_resumed() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (database, data, stub) =
        (fresh_database().await, TempDir::new().expect("a folder"), StubFacilitator::start().await);
    stub.on_settle((0..1_000).map(|_| Answer::Late(Duration::from_millis(100))));
    let public = free_port();
    let base = format!("http://{public}");
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().expect("a client");
    let mut running = serve(&database, data.path(), public, &stub);
    wait_until_ready(&client, &base).await;

    let (over, payers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(1)));
    let mut buyers = Vec::new();
    for _ in 0..16 {
        let (client, base) = (client.clone(), base.clone());
        let (over, payers) = (Arc::clone(&over), Arc::clone(&payers));
        buyers.push(tokio::spawn(async move {
            let mut sent = Vec::new();
            while !over.load(Ordering::SeqCst) {
                let Some(payment) = sign(&client, &base, payers.fetch_add(1, Ordering::SeqCst)).await else { break };
                let status = pay(&client, &base, &payment).await;
                sent.push((payment, status));
            }
            sent
        }));
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let pid = Pid::from_raw(i32::try_from(running.id().expect("it runs")).expect("small")).expect("a pid");
    kill_process(pid, Signal::TERM).expect("sent");
    let status =
        tokio::time::timeout(Duration::from_secs(30), running.wait()).await.expect("it ends").expect("a status");
    over.store(true, Ordering::SeqCst);
    assert_eq!(status.code(), Some(0));
    let mut sent = Vec::new();
    for buyer in buyers {
        sent.extend(buyer.await.expect("no panic"));
    }
    let served = sent.iter().filter(|(_, status)| *status == Some(200)).count();
    let in_doubt: Vec<&OutgoingPayment> = sent.iter().filter(|(_, s)| *s != Some(200)).map(|(p, _)| p).collect();
    let open = "select count(*)::text from payment_states where state in ('claimed', 'settling', 'unknown')";
    assert_eq!(column(&database.pool, open).await, ["0"], "what had begun was finished");
    eprintln!("{served} served, {} not answered with the memo", in_doubt.len());
    assert!(served > 16);

    let mut running = serve(&database, data.path(), public, &stub);
    wait_until_ready(&client, &base).await;
    for payment in in_doubt {
        assert_eq!(pay(&client, &base, payment).await, Some(200), "the same payment gets the memo");
    }
    let settled = column(&database.pool, "select count(*)::text from settlements").await;
    assert_eq!((settled, stub.settles()), (vec![sent.len().to_string()], sent.len()));
    assert_invariants(&database.pool).await;
    running.kill().await.expect("killed");
}
