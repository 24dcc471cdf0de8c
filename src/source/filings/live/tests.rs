mod server;

use std::collections::HashSet;

use self::server::{AGENT, Answer, DAY, FACTS, HandClock, Memory, NO_SUCH_KEY, Sec, TICKERS, facts, quick, tickers};
use super::*;
use crate::source::cache::Cached;

const FORBIDDEN: Answer =
    Answer::Status(403, "<!DOCTYPE html><html><title>Your Request Originates from ...</title></html>");

struct Stage {
    sec: Sec,
    cache: Arc<Memory>,
    clock: Arc<HandClock>,
    live: Live,
}

async fn stage() -> Stage {
    let (sec, cache, clock) = (Sec::start().await, Arc::new(Memory::default()), HandClock::start());
    let live = sec.client(&cache, &clock).await;
    Stage { sec, cache, clock, live }
}

async fn ask_all(live: &Live, tickers: &[String]) -> Vec<Result<Snapshot, SourceError>> {
    futures_util::future::join_all(tickers.iter().map(|ticker| live.fetch_snapshot(ticker))).await
}

/// A stage whose ticker list has been fetched, so that faults of the facts alone are seen.
async fn stage_with(answers: impl IntoIterator<Item = Answer>) -> Stage {
    let stage = stage().await;
    stage.live.tickers().await.expect("the ticker list");
    stage.sec.answers(FACTS, answers);
    stage
}

fn is_unavailable(result: &Result<Snapshot, SourceError>) -> bool {
    matches!(result, Err(SourceError::Unavailable { .. }))
}

fn cause_of(result: Result<Snapshot, SourceError>) -> String {
    match result {
        Err(SourceError::Unavailable { cause, public }) => {
            assert!(
                !public.contains("127.0.0.1") && !public.contains("status"),
                "buyers are told no innards: {public}"
            );
            cause
        }
        other => panic!("not unavailable: {other:?}"),
    }
}

#[tokio::test]
async fn facts_are_fetched_once_and_kept() {
    let Stage { sec, cache, clock, live } = stage().await;
    assert_eq!(live.get_subject("ONE"), Lookup::NotLoaded);
    let fetched_at = clock.now();
    let first = live.fetch_snapshot("ONE").await.expect("facts");
    assert_eq!(first.as_of(), fetched_at);
    assert_eq!(first.facts()[0].label, "Net income");
    assert!(first.limits().iter().all(|limit| !limit.contains("Recorded")));
    assert!(matches!(live.get_subject("ONE"), Lookup::Known(subject) if subject.cik == 7));
    assert_eq!(live.get_subject("NOPE"), Lookup::Unknown);

    clock.pass(DAY);
    let second = live.fetch_snapshot("ONE").await.expect("facts");
    assert_eq!(second.as_of(), fetched_at, "the moment of retrieval, not of the answer");
    assert_eq!(sec.hits().len(), 2);
    assert_eq!(cache.keys(), ["company_tickers", "companyfacts/CIK0000000007"]);
    for hit in sec.hits() {
        assert_eq!(hit.user_agent, AGENT);
        assert_eq!(hit.accept_encoding, None);
    }
}

#[tokio::test]
async fn what_another_process_kept_is_used_without_asking() {
    let Stage { sec, cache, clock, live } = stage().await;
    live.fetch_snapshot("ONE").await.expect("facts");
    sec.answers(TICKERS, [FORBIDDEN]);
    sec.answers(FACTS, [FORBIDDEN]);
    let other = sec.client(&cache, &clock).await;
    assert!(matches!(other.get_subject("ONE"), Lookup::Known(_)), "the list comes from the cache at the start");
    other.fetch_snapshot("ONE").await.expect("kept facts");
    assert_eq!(sec.hits().len(), 2);
}

#[tokio::test]
async fn stale_data_is_no_data() {
    let Stage { sec, cache, clock, live } = stage().await;
    live.fetch_snapshot("ONE").await.expect("facts");
    clock.pass(DAY + Duration::from_secs(1));
    assert_eq!(live.get_subject("ONE"), Lookup::NotLoaded);
    sec.answers(FACTS, [Answer::Status(503, "down")]);
    assert!(is_unavailable(&live.fetch_snapshot("ONE").await));
    assert_eq!(sec.count(TICKERS), 2, "the list was too old as well");
    assert_eq!(cache.keys(), ["company_tickers"], "what is too old is dropped");

    tokio::time::sleep(Duration::from_millis(100)).await;
    sec.answers(FACTS, [Answer::Ok(facts(7))]);
    assert_eq!(live.fetch_snapshot("ONE").await.expect("fresh facts").as_of(), clock.now());
}

#[tokio::test]
async fn a_document_from_the_future_or_that_cannot_be_read_is_fetched_again() {
    let Stage { sec, cache, clock, live } = stage_with([Answer::Ok(facts(7))]).await;
    let keep = |body: String, fetched_at| {
        let kept = Cached { body: Bytes::from(body), fetched_at };
        cache.kept.lock().expect("a lock").insert("companyfacts/CIK0000000007".to_owned(), kept);
    };
    keep(facts(7), clock.now() + Duration::from_secs(3600));
    live.fetch_snapshot("ONE").await.expect("facts");
    assert_eq!(sec.count(FACTS), 1);
    keep("{\"cik\":".to_owned(), clock.now());
    live.fetch_snapshot("ONE").await.expect("facts that are put together already");
    assert_eq!(sec.count(FACTS), 1);
    let other = sec.client(&cache, &clock).await;
    other.fetch_snapshot("ONE").await.expect("facts");
    assert_eq!(sec.count(FACTS), 2);
}

#[tokio::test]
async fn a_403_page_is_unavailable_and_followed_by_silence() {
    let Stage { sec, cache, live, .. } = stage_with([FORBIDDEN, Answer::Ok(facts(7))]).await;
    assert!(cause_of(live.fetch_snapshot("ONE").await).contains("403"));
    for _ in 0..3 {
        assert!(cause_of(live.fetch_snapshot("ONE").await).contains("silent"));
    }
    assert_eq!(sec.count(FACTS), 1, "a refusal is not asked again");
    assert_eq!(cache.keys(), ["company_tickers"]);
}

#[tokio::test]
async fn a_429_is_obeyed_for_as_long_as_it_says() {
    let Stage { sec, live, .. } = stage_with([Answer::RetryAfter(429, 1), Answer::Ok(facts(7))]).await;
    assert!(cause_of(live.fetch_snapshot("ONE").await).contains("429"));
    assert!(is_unavailable(&live.fetch_snapshot("ONE").await));
    assert_eq!(sec.count(FACTS), 1);
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    live.fetch_snapshot("ONE").await.expect("facts after the pause");
    assert_eq!(sec.count(FACTS), 2);
}

#[tokio::test]
async fn a_pause_asked_for_is_bounded() {
    let Stage { sec, cache, clock, .. } = stage().await;
    let live = sec.client_at(&cache, &clock, Pace { backoff_max: Duration::from_millis(50), ..quick() }).await;
    live.tickers().await.expect("the ticker list");
    sec.answers(FACTS, [Answer::RetryAfter(429, u64::MAX), Answer::Ok(facts(7))]);
    assert!(is_unavailable(&live.fetch_snapshot("ONE").await));
    tokio::time::sleep(Duration::from_millis(80)).await;
    live.fetch_snapshot("ONE").await.expect("facts");
}

#[tokio::test]
async fn a_filer_without_a_document_is_insufficient_and_another_404_is_not() {
    let Stage { sec, live, .. } = stage_with([Answer::Status(404, NO_SUCH_KEY)]).await;
    let refused = live.fetch_snapshot("ONE").await;
    assert!(matches!(refused, Err(SourceError::Insufficient(_))), "{refused:?}");
    sec.answers(FACTS, [Answer::Status(404, "<html>Page not found</html>")]);
    assert!(cause_of(live.fetch_snapshot("ONE").await).contains("404"));
    assert_eq!(sec.count(FACTS), 2);
}

#[tokio::test]
async fn a_missing_ticker_list_says_nothing_about_a_ticker() {
    let Stage { sec, live, .. } = stage().await;
    sec.answers(TICKERS, [Answer::Status(404, NO_SUCH_KEY)]);
    assert!(is_unavailable(&live.fetch_snapshot("ONE").await));
    assert_eq!(sec.count(FACTS), 0);
}

#[tokio::test]
async fn an_unknown_ticker_costs_no_request_for_facts() {
    let Stage { sec, live, .. } = stage().await;
    let refused = live.fetch_snapshot("NOPE").await;
    assert!(matches!(refused, Err(SourceError::Insufficient(_))), "{refused:?}");
    assert_eq!(sec.hits().len(), 1);
}

#[tokio::test]
async fn a_server_that_hangs_is_left_in_time() {
    let Stage { sec, live, .. } = stage_with([Answer::Hang]).await;
    let begun = std::time::Instant::now();
    assert_eq!(cause_of(live.fetch_snapshot("ONE").await).rsplit(": ").next().expect("a cause"), "no answer in time");
    assert!(begun.elapsed() < Duration::from_secs(3));
    assert_eq!(sec.count(FACTS), 1, "waiting twice would eat the buyer's time");
}

#[tokio::test]
async fn a_server_error_is_tried_again_once() {
    let Stage { sec, live, .. } = stage_with([Answer::Status(502, "bad gateway"), Answer::Ok(facts(7))]).await;
    live.fetch_snapshot("ONE").await.expect("facts at the second attempt");
    assert_eq!(sec.count(FACTS), 2);

    let Stage { sec, live, .. } = stage_with([Answer::Status(500, "oops")]).await;
    assert!(cause_of(live.fetch_snapshot("ONE").await).contains("500"));
    assert_eq!(sec.count(FACTS), 2);
}

#[tokio::test]
async fn a_server_that_is_gone_is_unavailable() {
    let Stage { cache, clock, .. } = stage().await;
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let bases = [format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{port}")];
    let live = Live::with_pace(AGENT, bases, DAY, cache, clock, quick()).await.expect("opens while the SEC is away");
    assert!(is_unavailable(&live.fetch_snapshot("ONE").await));
}

#[tokio::test]
async fn what_is_no_document_is_unavailable_and_not_kept() {
    let bodies = ["", "{}", "{\"cik\":7,\"entityName\":\"One", "<html>maintenance</html>", "[]", "\u{0}"];
    for body in bodies {
        let Stage { cache, live, .. } = stage_with([Answer::Ok(body.to_owned())]).await;
        assert!(is_unavailable(&live.fetch_snapshot("ONE").await), "{body}");
        assert_eq!(cache.keys(), ["company_tickers"], "{body}");
    }
    let Stage { cache, live, .. } = stage_with([Answer::Ok(facts(8))]).await;
    assert!(cause_of(live.fetch_snapshot("ONE").await).contains("filer 8"), "another filer's document");
    assert_eq!(cache.keys(), ["company_tickers"]);
}

#[tokio::test]
async fn a_body_beyond_the_bound_is_not_read() {
    let max = quick().body_bytes_max;
    for announced in [true, false] {
        let Stage { live, .. } = stage_with([Answer::Bytes { count: max + 4096, announced }]).await;
        assert!(cause_of(live.fetch_snapshot("ONE").await).contains("larger than"), "announced: {announced}");
    }
    let body = format!("{}{}", facts(7), " ".repeat(max - facts(7).len()));
    let Stage { live, .. } = stage_with([Answer::Ok(body)]).await;
    live.fetch_snapshot("ONE").await.expect("a body at the bound");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let Stage { sec, live, .. } = stage_with([Answer::Redirect("/elsewhere")]).await;
    assert!(cause_of(live.fetch_snapshot("ONE").await).contains("302"));
    assert_eq!(sec.count("/elsewhere"), 0);
}

#[tokio::test]
async fn many_askers_of_one_filer_cost_one_request() {
    let Stage { sec, live, .. } = stage().await;
    let asked = futures_util::future::join_all((0..20).map(|_| live.fetch_snapshot("ONE"))).await;
    assert!(asked.iter().all(Result::is_ok));
    assert_eq!(sec.hits().len(), 2);
}

#[tokio::test]
async fn no_second_sees_more_than_ten_requests() {
    let Stage { sec, cache, clock, live } = stage().await;
    // Two clients of one process share the pace.
    let other = sec.client(&cache, &clock).await;
    for cik in 100..120 {
        sec.answers(&format!("/api/xbrl/companyfacts/CIK{cik:010}.json"), [Answer::Ok(facts(cik))]);
    }
    let names: Vec<String> = (100..120).map(|cik| format!("T{cik}")).collect();
    let (one, two) = tokio::join!(ask_all(&live, &names[..10]), ask_all(&other, &names[10..]));
    assert!(one.iter().chain(&two).all(Result::is_ok));
    let times: Vec<_> = sec.hits().iter().map(|hit| hit.at).collect();
    assert!(times.len() >= 21);
    for (i, from) in times.iter().enumerate() {
        let within = times[i..].iter().filter(|at| at.duration_since(*from) < Duration::from_secs(1)).count();
        assert!(within <= 10, "{within} requests in a second");
    }
    let paths: HashSet<String> = sec.hits().into_iter().map(|hit| hit.path).collect();
    assert_eq!(paths.len(), 21);
}

#[tokio::test]
async fn a_broken_cache_does_not_stop_the_source() {
    let (sec, clock) = (Sec::start().await, HandClock::start());
    let cache = Arc::new(Memory { broken: true, ..Memory::default() });
    let live = sec.client(&cache, &clock).await;
    live.fetch_snapshot("ONE").await.expect("facts");
    live.fetch_snapshot("ONE").await.expect("facts");
    assert_eq!((sec.count(TICKERS), sec.count(FACTS)), (1, 1), "both stay in memory while they are fresh");
    clock.pass(DAY + Duration::from_secs(1));
    live.fetch_snapshot("ONE").await.expect("facts");
    assert_eq!((sec.count(TICKERS), sec.count(FACTS)), (2, 2), "and no longer");
}

#[tokio::test]
async fn who_calls_and_whom_is_checked_at_the_start() {
    let open = |agent: &str, base: &str| {
        let (cache, clock) = (Arc::new(Memory::default()), HandClock::start());
        let (agent, base) = (agent.to_owned(), base.to_owned());
        async move { Live::open(&agent, base.clone(), base, DAY, cache, clock).await.map(|_| ()) }
    };
    let sec = "https://data.sec.gov";
    for agent in ["", " ", "jim", "ops@example.com", "Example Research", "Example @", "Example ops@", "A\nB o@e.com"] {
        assert!(matches!(open(agent, sec).await, Err(Error::UserAgent)), "{agent:?}");
    }
    for agent in [AGENT, "Example Research (ops@example.com)"] {
        open(agent, sec).await.expect(agent);
    }
    for base in [
        "http://data.sec.gov",
        "",
        "data.sec.gov",
        "ftp://127.0.0.1",
        "https://a:b@data.sec.gov",
        "http://127.0.0.1.evil.example",
    ] {
        assert!(matches!(open(AGENT, base).await, Err(Error::Base(_))), "{base:?}");
    }
}

#[test]
fn the_list_of_the_stage_reads() {
    assert_eq!(Tickers::parse(tickers().as_bytes()).expect("reads").len(), 21);
}
