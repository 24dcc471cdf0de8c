//! One paid route behind x402-axum, with the least work that an answer can be: `PORT`, `FACILITATOR_URL`.

use alloy_primitives::address;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use x402_axum::X402Middleware;
use x402_chain_eip155::{KnownNetworkEip155, V2Eip155Exact};
use x402_types::networks::USDC;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port = std::env::var("PORT")?;
    let x402 = X402Middleware::try_from(std::env::var("FACILITATOR_URL")?)?;
    let price = USDC::base_sepolia().amount(10_000u64);
    let payee = address!("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC");
    let paid = get(memo).layer(x402.with_price_tag(V2Eip155Exact::price_tag(payee, price)));
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    axum::serve(listener, Router::new().route("/memo", paid)).await?;
    Ok(())
}

async fn memo() -> Json<Value> {
    Json(json!({"memo": "ok", "ticker": "ACME"}))
}
