use super::*;
use crate::clock::FixedClock;
use crate::evm::SecretKey;
use crate::x402::fixture::{self, NOW_S};
use crate::x402::{Challenge, Offer, PeerOffer, decode, facilitator_request, pay, read_body, read_required};
use serde_json::{Map, json};
use sqlx::postgres::PgPoolOptions;
use time::OffsetDateTime;

fn request_by(key: &SecretKey, version: Version, nonce: u8, change: impl Fn(&mut PeerOffer)) -> FacilitatorRequest {
    let offer = fixture::offer();
    let challenge = Challenge::render(&offer, "e", &Map::new()).expect("small enough");
    let read = match version {
        Version::V1 => read_body(&challenge.body),
        Version::V2 => read_required(&challenge.header),
    };
    let mut terms = read.expect("readable").offers.remove(0);
    change(&mut terms);
    let payment = decode(version, &pay(&terms, key, B256::repeat_byte(nonce), NOW_S).header_value).expect("a payment");
    let call = facilitator_request(&payment, &offer).expect("a call");
    FacilitatorRequest::from(call)
}

fn request(version: Version, nonce: u8) -> FacilitatorRequest {
    request_by(&fixture::buyer(), version, nonce, |_| {})
}

fn judged(request: &FacilitatorRequest) -> Result<Transfer, &'static str> {
    judge(request, &fixture::offer().domain(), NOW_S)
}

#[test]
fn a_good_payment_of_either_version_is_one_and_the_same_transfer() {
    let transfer = judged(&request(Version::V2, 1)).expect("a transfer");
    assert_eq!(judged(&request(Version::V1, 1)).as_ref(), Ok(&transfer));
    assert_eq!((transfer.value.as_str(), transfer.nonce), ("50000", [1; 32]));
    assert_ne!(judged(&request(Version::V2, 2)).expect("a transfer").tx_hash, transfer.tx_hash);
}

#[test]
fn what_a_chain_would_refuse_is_refused_by_its_name() {
    for version in [Version::V1, Version::V2] {
        let changed = |change: &dyn Fn(&mut PeerOffer)| judged(&request_by(&fixture::buyer(), version, 1, change));
        assert_eq!(changed(&|terms| terms.amount.0 += 1), Err(OTHER_VALUE));
        assert_eq!(changed(&|terms| terms.pay_to = Address::ZERO), Err(OTHER_PAYEE));
        assert_eq!(changed(&|terms| terms.token_name = "USD Coin".to_owned()), Err(BAD_SIGNATURE));
        assert_eq!(changed(&|terms| terms.asset = Address::ZERO), Err(BAD_SIGNATURE));
        assert!(changed(&|terms| terms.max_timeout_s = 6).is_ok());
        assert_eq!(changed(&|terms| terms.max_timeout_s = 5), Err(EXPIRED));
        let good = request(version, 1);
        let domain = fixture::offer().domain();
        assert_eq!(judge(&good, &domain, NOW_S - 601), Err(TOO_EARLY));
        assert_eq!(judge(&good, &TokenDomain { chain_id: 8_453, ..domain.clone() }, NOW_S), Err(OTHER_NETWORK));
        assert_eq!(judge(&good, &TokenDomain { contract: Address::ZERO, ..domain }, NOW_S), Err(OTHER_ASSET));
        let mut stolen = good.clone();
        stolen.payment_payload["payload"]["authorization"]["from"] = json!(fixture::offer().pay_to);
        assert_eq!(judged(&stolen), Err(BAD_SIGNATURE));
        assert_eq!(judged(&FacilitatorRequest { payment_payload: json!({}), ..good.clone() }), Err(BAD_PAYLOAD));
        assert_eq!(judged(&FacilitatorRequest { payment_requirements: json!({}), ..good }), Err(BAD_REQUIREMENTS));
    }
}

#[test]
fn every_reason_is_one_that_can_only_come_before_a_broadcast() {
    use crate::facilitator::reason::{is_nonce_used, is_pre_broadcast};
    for reason in [OTHER_NETWORK, OTHER_SCHEME, OTHER_PAYEE, OTHER_VALUE, EXPIRED, TOO_EARLY, BAD_SIGNATURE, NO_MONEY] {
        assert!(is_pre_broadcast(reason), "{reason}");
    }
    assert!(is_nonce_used(NONCE_USED));
}

/// A facilitator over the database that `JIM_TEST_DATABASE_URL` names, in a schema of its own.
async fn facilitator(schema: &'static str) -> Option<Simulated> {
    let Ok(url) = std::env::var("JIM_TEST_DATABASE_URL") else {
        #[expect(clippy::print_stderr, reason = "a skipped test says so")]
        {
            eprintln!("skipped: JIM_TEST_DATABASE_URL is not set");
        }
        return None;
    };
    let in_schema = PgPoolOptions::new().max_connections(8).after_connect(move |connection, _| {
        Box::pin(async move {
            sqlx::query(sqlx::AssertSqlSafe(format!("SET search_path TO {schema}")))
                .execute(connection)
                .await
                .map(|_| ())
        })
    });
    let pool = in_schema.connect(&url).await.expect("the test database");
    let migration = include_str!("../../../migrations/0003_simulated_chain.sql");
    let fresh = format!("DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}; {migration}");
    sqlx::raw_sql(sqlx::AssertSqlSafe(fresh)).execute(&pool).await.expect("the migration");
    let now = OffsetDateTime::from_unix_timestamp(i64::try_from(NOW_S).expect("a time")).expect("a time");
    Some(Simulated::new(pool, fixture::offer().domain(), Arc::new(FixedClock(now))))
}

async fn balances(facilitator: &Simulated) -> (u64, u64) {
    let of = async |holder: &Address| {
        u64::try_from(facilitator.load_balance(holder).await.expect("a balance")).expect("small")
    };
    (of(&fixture::buyer().address()).await, of(&fixture::offer().pay_to).await)
}

#[tokio::test]
async fn money_moves_once_per_nonce_and_a_cut_answer_is_found_again() {
    let Some(facilitator) = facilitator("sim_once").await else { return };
    let first = request(Version::V2, 1);
    let payer = Some(lower(&fixture::buyer().address()));
    assert_eq!(facilitator.verify(&first).await, Ok(Verdict::Valid { payer: payer.clone() }));
    let settled = facilitator.settle_request(&first).await;
    assert!(matches!(&settled, Settlement::Settled { payer: named, .. } if *named == payer), "{settled:?}");
    assert_eq!(balances(&facilitator).await, (GRANT - 50_000, 50_000));
    let used = Settlement::NonceUsed { reason: NONCE_USED.to_owned(), transaction: None };
    assert_eq!(facilitator.settle_request(&first).await, used);
    assert_eq!(facilitator.settle_request(&request(Version::V1, 1)).await, used, "the same in the other version");
    assert_eq!(facilitator.verify(&first).await, Ok(Verdict::Invalid { reason: NONCE_USED.to_owned() }));

    facilitator.cut_next_settle();
    let cut = facilitator.settle_request(&request(Version::V2, 2)).await;
    assert_eq!(cut, Settlement::Unknown { reason: "connection lost".to_owned(), transaction: None });
    assert_eq!(balances(&facilitator).await, (GRANT - 100_000, 100_000));
    assert_eq!(facilitator.settle_request(&request(Version::V2, 2)).await, used);
    assert_eq!(balances(&facilitator).await, (GRANT - 100_000, 100_000));
    assert_eq!(facilitator.calls(), Calls { verify: 2, settle: 5 });
}

#[tokio::test]
async fn nobody_spends_what_is_not_there() {
    let Some(facilitator) = facilitator("sim_poor").await else { return };
    let start = i64::try_from(GRANT).expect("small") - 30_000;
    sqlx::query("INSERT INTO sim_balances SELECT $1, $2, $3, $4::bigint - $5::bigint")
        .bind("eip155:84532")
        .bind(lower(&fixture::offer().asset))
        .bind(lower(&fixture::buyer().address()))
        .bind(start)
        .bind(start - 49_999)
        .execute(&facilitator.pool)
        .await
        .expect("a poor buyer");
    let poor = request(Version::V2, 1);
    assert_eq!(facilitator.verify(&poor).await, Ok(Verdict::Invalid { reason: NO_MONEY.to_owned() }));
    assert_eq!(facilitator.settle_request(&poor).await, Settlement::Denied { reason: NO_MONEY.to_owned() });
    assert_eq!(
        facilitator.settle_request(&poor).await,
        Settlement::Denied { reason: NO_MONEY.to_owned() },
        "nonce unused"
    );
    assert_eq!(balances(&facilitator).await.0, 49_999);
}

#[tokio::test]
async fn parallel_settles_of_one_payment_move_money_once() {
    let Some(facilitator) = facilitator("sim_race").await else { return };
    let facilitator = Arc::new(facilitator);
    let tasks: Vec<_> = (0..24u8)
        .map(|i| {
            let facilitator = Arc::clone(&facilitator);
            tokio::spawn(async move { facilitator.settle_request(&request(Version::V2, i / 4)).await })
        })
        .collect();
    let mut settled = 0;
    for task in tasks {
        match task.await.expect("no panic") {
            Settlement::Settled { .. } => settled += 1,
            Settlement::NonceUsed { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(settled, 6);
    assert_eq!(balances(&facilitator).await, (GRANT - 300_000, 300_000));
}

#[tokio::test]
async fn transfers_in_opposite_directions_do_not_block_each_other() {
    let Some(facilitator) = facilitator("sim_cross").await else { return };
    let (a, b) = ("0xaa".to_owned(), "0xbb".to_owned());
    let transfer = |from: &String, to: &String, n: u8| Transfer {
        network: "n".to_owned(),
        asset: "t".to_owned(),
        authorizer: from.clone(),
        payee: to.clone(),
        nonce: [n; 32],
        value: "1".to_owned(),
        tx_hash: [n; 32],
    };
    let tasks: Vec<_> = (0..40u8)
        .map(|n| {
            let one = if n % 2 == 0 { transfer(&a, &b, n) } else { transfer(&b, &a, n) };
            let pool = facilitator.pool.clone();
            tokio::spawn(async move { simulated::execute(&pool, &one, GRANT).await })
        })
        .collect();
    for task in tasks {
        // b may be made by a payment to it, with nothing to spend yet
        let done = task.await.expect("no panic").expect("no deadlock");
        assert!(matches!(done, Executed::Moved | Executed::Insufficient));
    }
    let to_itself = simulated::execute(&facilitator.pool, &transfer(&a, &a, 77), GRANT).await.expect("no error");
    assert_eq!(to_itself, Executed::Moved);
}

#[tokio::test]
async fn the_kinds_are_those_of_the_network() {
    let pool = PgPoolOptions::new().connect_lazy("postgres://nowhere.invalid/none").expect("lazy");
    let kinds = |chain_id| {
        let offer = Offer { network: Network::new(chain_id), ..fixture::offer() };
        let facilitator = Simulated::new(pool.clone(), offer.domain(), Arc::new(crate::clock::SystemClock));
        async move { facilitator.fetch_supported().await.expect("kinds").len() }
    };
    assert_eq!((kinds(84_532).await, kinds(31_337).await), (2, 1));
}
