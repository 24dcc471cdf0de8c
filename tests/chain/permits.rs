//! The rails by Permit2 on a real node, signed by the reference client and settled by the reference facilitator through the proxies.

use std::time::Duration;

use alloy_primitives::{Address, U256, hex};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jim::evm::{PERMIT2, PermitTransfer};
use jim::x402::{Authorization, Version as Wire, decode};
use serde_json::{Value, json};

use crate::Case;
use crate::buyers::{Signed, Version, sign_once};
use crate::devnet::{Payer, TOKEN, Transfer};
use crate::money::{Desk, text};
use crate::process::wait_for;
use crate::web::Answer;
use crate::world::{World, pay_to};

/// All tests.
pub(crate) const CASES: [Case; 6] = [
    ("a_permit_of_each_rail_is_served_and_charged_once", served),
    ("a_lost_settle_answer_is_found_by_the_call_of_the_proxy", lost_answer),
    ("a_buyer_who_signs_another_permit_is_charged_once", signs_anew),
    ("a_permit_whose_nonce_its_owner_voids_is_neither_charged_nor_served", voided),
    ("without_an_allowance_it_is_412_and_nothing_moves", no_allowance),
    ("jim_buys_by_permit_from_jim", jim_buys),
];

/// A round of recovery, and a look at the chain.
const FOUND_WITHIN: Duration = Duration::from_secs(60);

const BOTH: [Version; 2] = [Version::Permit2, Version::Upto];

/// A jim with all rails that are settled by the kit's facilitator, which settles from the first account of the kit.
fn open(world: &World) -> Desk {
    Desk::open(
        world,
        &[
            ("JIM_PAYMENTS__RAILS", "exact,exact-permit2,upto"),
            ("JIM_PAYMENTS__UPTO_FACILITATOR", "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"),
        ],
    )
}

fn served(world: &World) {
    let desk = open(world);
    for version in BOTH {
        let (url, payer) = (desk.memo_url(), approved(world, &format!("permit {version:?}")));
        let signed = sign_once(&world.kit, &url, &payer, version);
        let first = ask(world, &url, &signed);
        assert_eq!(first.status, 200, "{version:?}: {}", text(&first));
        let receipt = STANDARD.decode(first.header("payment-response").expect("a receipt")).expect("base64");
        let receipt: Value = serde_json::from_slice(&receipt).expect("JSON");
        let price = world.price(&url);
        assert_eq!((&receipt["success"], &receipt["amount"]), (&json!(true), &json!(price.to_string())));
        let again = ask(world, &url, &signed);
        assert_eq!((again.status, &again.body), (200, &first.body));
        assert_eq!(again.header("idempotent-replay"), Some("true"));
        assert_charged_once(world, &url, &payer);
        assert_eq!(world.facilitator.calls(&world.web, "settle", &payer.address.to_string()), 1);
    }
}

fn lost_answer(world: &World) {
    let desk = open(world);
    for version in BOTH {
        let (url, payer) = (desk.memo_url(), approved(world, &format!("permit lost {version:?}")));
        let signed = sign_once(&world.kit, &url, &payer, version);
        world.facilitator.spoil_next(&world.web, "settle", "drop-after");
        let first = ask(world, &url, &signed);
        assert!(matches!(first.status, 200 | 503), "{version:?} {}: {}", first.status, text(&first));
        let served = until_served(world, &url, &signed);
        assert_charged_once(world, &url, &payer);
        assert_eq!(world.facilitator.calls(&world.web, "settle", &payer.address.to_string()), 1, "found on chain");
        assert_eq!(ask(world, &url, &signed).body, served.body);
    }
}

fn signs_anew(world: &World) {
    let desk = open(world);
    let (url, payer) = (desk.memo_url(), approved(world, "permit signed anew"));
    let signed = sign_once(&world.kit, &url, &payer, Version::Upto);
    world.facilitator.spoil_next(&world.web, "settle", "drop-after");
    let first = ask(world, &url, &signed);
    assert!(matches!(first.status, 200 | 503), "{}: {}", first.status, text(&first));
    let bodies = [Version::Permit2, Version::Upto, Version::V2].map(|version| {
        let anew = sign_once(&world.kit, &url, &payer, version);
        until_served(world, &url, &anew).body
    });
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    assert_charged_once(world, &url, &payer);
}

fn voided(world: &World) {
    let desk = open(world);
    for version in BOTH {
        let (url, payer) = (desk.memo_url(), approved(world, &format!("permit voided {version:?}")));
        let signed = sign_once(&world.kit, &url, &payer, version);
        world.facilitator.spoil_next(&world.web, "settle", "500");
        let first = ask(world, &url, &signed);
        assert_eq!(first.status, 503, "{}", text(&first));
        let nonce = permit_of(&signed).nonce;
        let bit = U256::ONE << (nonce.to_be_bytes::<32>()[31] as usize);
        let arguments = format!("{}{}", word(nonce >> 8), word(bit));
        let function = "invalidateUnorderedNonces(uint256,uint256)";
        world.devnet.send_as(&world.web, payer.address, PERMIT2, function, &arguments);
        let told = wait_for("the chain's word", FOUND_WITHIN, || {
            let answer = ask(world, &url, &signed);
            assert!(matches!(answer.status, 402 | 503), "{}: {}", answer.status, text(&answer));
            (answer.status == 402).then_some(answer)
        });
        assert!(told.header("payment-required").is_some());
        assert_eq!(world.moved(&payer), [], "a bit that is set is no payment");
        let anew = sign_once(&world.kit, &url, &payer, version);
        until_served(world, &url, &anew);
        assert_charged_once(world, &url, &payer);
    }
}

fn no_allowance(world: &World) {
    let desk = open(world);
    for version in BOTH {
        let (url, payer) = (desk.memo_url(), world.payer(&format!("permit without allowance {version:?}")));
        let signed = sign_once(&world.kit, &url, &payer, version);
        let first = ask(world, &url, &signed);
        assert_eq!(first.status, 412, "{}", text(&first));
        let error = first.json()["error"].as_str().expect("a reason").to_owned();
        assert!(
            error.starts_with("permit2_allowance_required: approve 0x000000000022D473030F116dDEE9F6B43aC78BA3"),
            "{error}"
        );
        assert_eq!(world.moved(&payer), []);
        approve(world, &payer);
        let anew = sign_once(&world.kit, &url, &payer, version);
        until_served(world, &url, &anew);
        assert_charged_once(world, &url, &payer);
        assert_eq!(ask(world, &url, &signed).status, 412, "what was signed before is never settled");
    }
}

fn jim_buys(world: &World) {
    let desk = open(world);
    for rail in ["exact-permit2", "upto"] {
        let (url, payer) = (desk.memo_url(), approved(world, &format!("jim buys {rail}")));
        let folder = tempfile::TempDir::new().expect("a folder");
        let key_file = folder.path().join("buyer.key");
        std::fs::write(&key_file, payer.key.trim_start_matches("0x")).expect("a key file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&key_file, mode).expect("permissions");
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_jim"))
            .args(["buy", &url, "--json", "--rail", rail, "--key-file"])
            .arg(&key_file)
            .arg("--data-dir")
            .arg(folder.path())
            .output()
            .expect("jim runs");
        let noise = String::from_utf8_lossy(&out.stderr);
        let report: Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {noise}"));
        assert_eq!((&report["outcome"], out.status.code()), (&json!("delivered"), Some(0)), "{report} {noise}");
        assert_charged_once(world, &url, &payer);
    }
}

/// A payer who has let Permit2 move his tokens.
fn approved(world: &World, name: &str) -> Payer {
    let payer = world.payer(name);
    approve(world, &payer);
    payer
}

fn approve(world: &World, payer: &Payer) {
    let token: Address = TOKEN.parse().expect("an address");
    let arguments = format!("{}{}", word(U256::from_be_bytes(PERMIT2.into_word().0)), word(U256::MAX));
    world.devnet.send_as(&world.web, payer.address, token, "approve(address,uint256)", &arguments);
}

fn word(value: U256) -> String {
    hex::encode(value.to_be_bytes::<32>())
}

fn permit_of(signed: &Signed) -> PermitTransfer {
    match decode(Wire::V2, &signed.value).expect("a payment").authorization {
        Authorization::Permit2(permit) => *permit,
        Authorization::Eip3009(_) => panic!("not a permit"),
    }
}

fn ask(world: &World, url: &str, signed: &Signed) -> Answer {
    world.web.get(url, &[(signed.header.as_str(), signed.value.as_str())])
}

/// Sends the same payment until it is served. It is told to come again, and never that it was refused.
fn until_served(world: &World, url: &str, signed: &Signed) -> Answer {
    wait_for("the answer", FOUND_WITHIN, || {
        let answer = ask(world, url, signed);
        if answer.status == 200 {
            return Some(answer);
        }
        assert!(matches!(answer.status, 409 | 503), "{}: {}", answer.status, text(&answer));
        std::thread::sleep(Duration::from_millis(200));
        None
    })
}

fn assert_charged_once(world: &World, url: &str, payer: &Payer) {
    let amount = world.price(url);
    assert_eq!(world.moved(payer), [Transfer { from: payer.address, to: pay_to(), amount }]);
}
