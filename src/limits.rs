//! Every bound in the system, by name and with its reason. Nothing else in the crate may hold a magic bound.

mod models;

use std::time::Duration;

pub use models::*;

/// A draft longer than this is refused unread: the longest honest memo is under 64 KiB, and the gate is linear.
pub const DRAFT_BYTES_MAX: usize = 256 * 1024;

/// Most facts in one snapshot. Fundamentals carry under 60; composition may triple that.
pub const FACTS_MAX: usize = 512;

/// Snapshots that a source keeps put together. One is some 30 KB; a filer's documents are megabytes to read.
pub const SNAPSHOTS_KEPT_MAX: usize = 512;

/// Accepted memos that are kept, as far as is known beforehand.
pub const MEMO_CACHE_ENTRIES: usize = 1_024;

/// Bytes of accepted memos that are kept: some thousands.
pub const MEMO_CACHE_BYTES: u64 = 32 << 20;

/// Violations listed in a rejection or in feedback; the count is always exact, the list is cut.
pub const VIOLATIONS_LISTED_MAX: usize = 20;

/// Bytes of one payment header before it is decoded. Honest headers are under 2 KiB.
pub const PAYMENT_HEADER_BYTES_MAX: usize = 8 * 1024;

/// Nesting of a decoded payment header. The deepest honest one has five levels.
pub const PAYMENT_HEADER_DEPTH_MAX: usize = 16;

/// Hops of a call chain that are read before it is ruled too deep, whatever the configured depth is.
pub const CALL_CHAIN_BYTES_MAX: usize = 4 * 1024;

/// Seconds a buyer's clock and ours may differ.
pub const CLOCK_SKEW_S: u64 = 30;

/// The longest authorization accepted: buyers sign up to an hour whatever `maxTimeoutSeconds` says.
pub const AUTHORIZATION_LIFE_S_MAX: u64 = 3_600;

/// Time that a run (facts, draft, gate) may take before it is refused.
pub const WORK_BUDGET: Duration = Duration::from_secs(45);

/// Time that one settle call may take; longer than the receipt wait of the facilitators seen (10 to 28 s).
pub const SETTLE_BUDGET: Duration = Duration::from_secs(40);

/// Time that one verify call may take.
pub const VERIFY_BUDGET: Duration = Duration::from_secs(10);

/// Bytes of a facilitator's answer that are read.
pub const FACILITATOR_BODY_BYTES_MAX: usize = 64 * 1024;

/// How long a claim may be worked on before another request may take it over: verify, work and some slack.
pub const CLAIM_LEASE: Duration = Duration::from_secs(75);

/// How long a settle call may stay unanswered before the payment counts as unknown and may be presented again.
pub const SETTLE_LEASE: Duration = Duration::from_secs(50);

/// Pause between two heartbeats of a process; claims of a process silent for ten seconds are free.
pub const HEARTBEAT: Duration = Duration::from_secs(2);

/// How long a repeat of a payment waits for the settle call that runs before it is told to come back.
pub const REPEAT_WAIT: Duration = Duration::from_secs(3);

/// Pause between two looks while waiting for that.
pub const REPEAT_POLL: Duration = Duration::from_millis(50);

/// Connections to Postgres of one process.
pub const DATABASE_CONNECTIONS: u32 = 16;

/// Longest wait for a connection.
pub const DATABASE_WAIT: Duration = Duration::from_secs(5);

/// Prepared statements kept per connection; the service has about twenty.
pub const STATEMENT_CACHE: usize = 64;

/// Rows of one page of the ledger.
pub const LEDGER_PAGE_MAX: i64 = 500;

/// Seconds of an authorization kept free for the settle call: work that runs longer is refused before it can be charged.
pub const SETTLE_RESERVE_S: u64 = 15;

/// Seconds that an authorization must still be valid when it is presented: the settle reserve, and as long again for work.
pub const AUTHORIZATION_LEFT_S_MIN: u64 = 2 * SETTLE_RESERVE_S;

/// `maxTimeoutSeconds` of our offers: work and settle budgets, twice.
pub const OFFER_TIMEOUT_S: u32 = 180;
// x402 and facilitators

/// Bytes of our own `PAYMENT-REQUIRED` header: clients and proxies read 8 KiB of headers in all.
pub const CHALLENGE_HEADER_BYTES_MAX: usize = 6 * 1024;

/// Bytes of a seller's terms that are read when buying; extensions with schemas make them longer than ours.
pub const PEER_CHALLENGE_BYTES_MAX: usize = 64 * 1024;

/// Nesting of a seller's terms: extensions carry JSON Schemas.
pub const PEER_CHALLENGE_DEPTH_MAX: usize = 32;

/// Offers of one 402 that are read when buying.
pub const PEER_OFFERS_MAX: usize = 64;

/// Seconds that a payment of ours is valid, whatever timeout the seller asks for.
pub const BUY_WINDOW_S_MAX: u64 = 300;

/// Characters kept of a text that somebody else wrote, such as a facilitator's reason.
pub const FOREIGN_TEXT_CHARS_MAX: usize = 160;

// the HTTP face

/// Bytes of a request's header block. Payment headers are at most 8 KiB; what else a client sends fits the rest.
pub const HEADER_BYTES_MAX: usize = 16 * 1024;

/// Bytes that a connection buffers: above the header bound, so that we answer and not the library, which has no body.
pub const CONNECTION_BUFFER_BYTES: usize = 64 * 1024;

/// Time for a request's headers to arrive, the idle time of a kept connection included.
pub const HEADER_WAIT: Duration = Duration::from_secs(15);

/// Bytes of a request body. The input of every product fits a few hundred.
pub const REQUEST_BODY_BYTES_MAX: usize = 16 * 1024;

/// Nesting of a request body; inputs are flat.
pub const REQUEST_BODY_DEPTH_MAX: usize = 4;

/// Time for a request body to arrive.
pub const REQUEST_BODY_WAIT: Duration = Duration::from_secs(10);

/// Open connections of one listener.
pub const CONNECTIONS_MAX: usize = 4_096;

/// Pause after a connection that could not be accepted: file descriptors come back.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a stop waits for open requests: a settle call that has begun is always waited for.
pub const DRAIN_BUDGET: Duration = Duration::from_secs(60);

/// How long a client may keep a public document.
pub const DOCUMENT_AGE_S: u32 = 300;

/// Pause between two sweeps of the tables that count requests by address and payer.
pub const RATE_TABLE_SWEEP: Duration = Duration::from_secs(60);
// The private PostgreSQL cluster.

/// Time that a cluster may take from the start of its process to its first accepted connection.
pub const POSTGRES_START_WAIT: Duration = Duration::from_secs(30);

/// Time in which "lock file exists" is retried: after a kill of the postmaster its children need about 2 s to go.
pub const POSTGRES_LOCK_RETRY: Duration = Duration::from_secs(10);

/// Time for a fast shutdown with its checkpoint; measured at 1.5 s. After it an immediate shutdown is ordered.
pub const POSTGRES_STOP_WAIT: Duration = Duration::from_secs(30);

/// Time for an immediate shutdown, which writes nothing.
pub const POSTGRES_QUIT_WAIT: Duration = Duration::from_secs(10);

/// Time for `initdb`; measured at 0.5 s on a quiet machine and 5.5 s on a busy one.
pub const POSTGRES_INIT_WAIT: Duration = Duration::from_secs(120);

/// Time for `postgres --version`, which only prints.
pub const POSTGRES_VERSION_WAIT: Duration = Duration::from_secs(10);

/// Time for the download of the server archive: 14 MB at 50 kB/s.
pub const POSTGRES_FETCH_WAIT: Duration = Duration::from_secs(300);

/// Time that a second process waits for the first one on the same folder: as long as a first start may take.
pub const POSTGRES_JOIN_WAIT: Duration = Duration::from_secs(180);

/// Time for one connection attempt to a local socket.
pub const POSTGRES_CONNECT_WAIT: Duration = Duration::from_secs(5);

/// Pause between two looks at a cluster that is starting or stopping.
pub const POSTGRES_POLL: Duration = Duration::from_millis(20);

/// Pause between two tries to start while another process holds the cluster's lock file.
pub const POSTGRES_RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Bytes of the fetched server archive; the pinned one has 13.6 MB.
pub const POSTGRES_ARCHIVE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Bytes of the unpacked server archive; the pinned one has 42 MB.
pub const POSTGRES_UNPACKED_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Lines of the server's log that an error shows.
pub const POSTGRES_LOG_LINES_SHOWN: usize = 20;

/// Bytes at the end of the server's log that are read for an error or for the reason of an exit.
pub const POSTGRES_LOG_BYTES_READ: u64 = 64 * 1024;

/// Connections of the private cluster: the pool, a second process and a person with psql fit many times over.
pub const POSTGRES_CONNECTIONS_MAX: u32 = 100;

/// Bytes of a Unix socket's path: 108 in the kernel's structure less the closing zero.
pub const UNIX_SOCKET_PATH_BYTES_MAX: usize = 107;
/// Characters of a company name that are kept. The longest honest ones are under 100.
pub const NAME_CHARS_MAX: usize = 120;

/// Characters of a ticker. The longest in the SEC's list, preferred shares included, have under ten.
pub const TICKER_CHARS_MAX: usize = 12;

/// Bytes of one filings document. The facts of the biggest filers reach about 10 MB.
pub const FILINGS_BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Requests a second to the SEC in the whole process. The SEC allows ten to one user; the rest is margin for clocks.
pub const FILINGS_REQUESTS_PER_S: u32 = 8;

/// Time for one request to the SEC, body included. Two of them fit into the work budget.
pub const FILINGS_REQUEST_BUDGET: Duration = Duration::from_secs(15);

/// Attempts at one document when the server errs. A refusal (403, 429) is never tried again at once.
pub const FILINGS_ATTEMPTS_MAX: u32 = 2;

/// First silence after a failed fetch; it doubles with each failure that follows.
pub const FILINGS_BACKOFF_MIN: Duration = Duration::from_secs(1);

/// Longest silence after failures, and after a 429 whatever its Retry-After says.
pub const FILINGS_BACKOFF_MAX: Duration = Duration::from_secs(600);

/// Silence after a 403: the SEC lifts a block after ten minutes below its rate.
pub const FILINGS_BLOCKED: Duration = Duration::from_secs(600);

/// Documents of one filer in a folder; real folders have one or two.
pub const FILINGS_FILES_PER_FILER_MAX: usize = 16;
/// Nesting of a facilitator's answer: extensions may carry schemas.
pub const FACILITATOR_JSON_DEPTH_MAX: usize = 32;

/// Entries of `/supported` that are read.
pub const FACILITATOR_KINDS_MAX: usize = 1_024;

/// Seconds that an authorization must still be valid for the simulated facilitator, as the real ones demand.
pub const SIMULATED_MARGIN_S: u64 = 6;

// jim as a buyer

/// Bytes of an answer that is bought.
pub const BUY_BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Time for one request of a purchase: longer than any seller's work and settle together.
pub const BUY_REQUEST_WAIT: Duration = Duration::from_secs(120);

/// How long the same payment is sent again while its outcome is unknown.
pub const BUY_RETRY_BUDGET: Duration = Duration::from_secs(60);

/// Pause before it is sent again, when the seller names none.
pub const BUY_RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Longest pause that a seller may ask for.
pub const BUY_RETRY_PAUSE_MAX: Duration = Duration::from_secs(15);
/// How long an idle connection to a facilitator is kept: less than the 5 s after which Node closes its own, since a call
/// on a connection that is just being closed ends as unknown.
pub const FACILITATOR_IDLE: Duration = Duration::from_secs(4);
/// Bytes of a sentence that a violation quotes: enough to find it, bounded against a memo without a full stop.
pub const SEGMENT_SHOWN_BYTES_MAX: usize = 400;

/// Characters of a figure that a violation quotes; a hostile one may be a page of digits.
pub const FIGURE_SHOWN_CHARS_MAX: usize = 80;

/// Facts that one line of feedback tells about; a figure that cites more is wrong for another reason than their values.
pub const CITED_SHOWN_MAX: usize = 4;

/// Violations of one memo that quote their sentence and facts; the ones after it keep their place and reason.
pub const VIOLATIONS_QUOTED_MAX: usize = 100;

/// Citations that one figure may take its fact from when it is not bound in order. Honest groups have under eight.
pub const CITED_PER_FIGURE_MAX: usize = 16;
// the journal's writers

/// Transitions of payments that are committed together. Thirty-two connections make groups of up to that many; a bigger one
/// would keep its first caller waiting.
pub const JOURNAL_GROUP_MAX: usize = 64;

/// Transitions that wait for a writer; a caller beyond that waits to be let in. More paid requests are never in flight by
/// default.
pub const JOURNAL_QUEUE: usize = 256;

/// How long a session that has just answered is believed to live; an older one is asked first.
pub const JOURNAL_SESSION_TRUST: Duration = Duration::from_secs(1);

/// Facts of one sentence or row that its times are compared with: a hostile line of citations must not cost its square.
pub const SEGMENT_CITED_MAX: usize = 64;

/// Times of one sentence or row that its figures are compared with; honest ones name under ten.
pub const SEGMENT_TIMES_MAX: usize = 64;

/// Violations after which the rest of a memo is not read: it is refused whatever follows, and a hostile one must not cost memory
/// by its length.
pub const VIOLATIONS_MAX: usize = 1000;

/// Figures of one sentence or row. The last one counts as unreadable, so that a longer sentence is refused; honest ones have under
/// forty.
pub const SEGMENT_FIGURES_MAX: usize = 1000;

/// A second authorization of the same purchase is answered from one that was charged no longer ago than this, and not charged
/// itself: clients that sign anew on every retry pay once.
pub const PURCHASE_WINDOW: Duration = Duration::from_secs(120);

/// A refund is on chain no later than this after it is owed, or an operator has been told.
pub const REFUND_DUE: Duration = Duration::from_secs(24 * 3_600);

/// An authorization that is unused this long after its window, in the chain's own time, stays unused.
pub const FINALITY_MARGIN_S: u64 = 60;

/// After an unclear settle answer the chain is asked, with these pauses before each look.
pub const CHAIN_LOOKS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
// several facilitators

/// First rest of a facilitator after a failed call; it doubles with each failure that follows.
pub const FACILITATOR_REST_MIN: Duration = Duration::from_secs(1);

/// Longest rest: one that comes back is used again within half a minute.
pub const FACILITATOR_REST_MAX: Duration = Duration::from_secs(30);

/// Pause before a facilitator that has not listed our kind is asked again.
pub const FACILITATOR_ASK_PAUSE: Duration = Duration::from_secs(1);

/// Age of a facilitator's list at which it is asked anew.
pub const FACILITATOR_REFRESH: Duration = Duration::from_secs(60);

// the client-broadcast rail

/// Life of an offer by client broadcast: seconds in which the paid request must begin. Signing, a transfer on a slow chain and
/// the request fit many times over; it is `maxTimeoutSeconds` of the offer.
pub const OFFER_BROADCAST_LIFE_S: u32 = 600;

/// Seconds after that life until money without a request counts as stranded: clocks of replicas, and a request that began in the
/// last second and still waits for the chain.
pub const OFFER_BROADCAST_GRACE_S: u64 = 120;

/// Blocks that an operator may ask for: with more, on a chain of two seconds a block, an offer is over before its transfer counts.
pub const CONFIRMATIONS_MAX: u32 = 256;
// reading a chain, and paying refunds on it

/// Time for one JSON-RPC call, answer included. Public nodes answer log queries within three seconds; a caller in a paid request
/// waits longer than this for a settlement anyway.
pub const CHAIN_CALL_BUDGET: Duration = Duration::from_secs(10);

/// Bytes of one answer of a node. One transaction may burn its 2^24 gas on empty logs of 375 gas each, about 17 MB as JSON: a
/// smaller bound would let a stranger make a receipt unreadable.
pub const CHAIN_ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Nesting of a node's answer. The topics of a receipt's log are at five.
pub const CHAIN_JSON_DEPTH_MAX: usize = 16;

/// How long an idle connection to a node is kept: less than the shortest idle time of the proxies before public nodes.
pub const CHAIN_IDLE: Duration = Duration::from_secs(4);

/// Blocks of one log query. Public nodes allow 2,000 to 10,000.
pub const CHAIN_LOG_BLOCKS: u64 = 2_000;

/// Log queries of one look-up: two million blocks in whole chunks, 46 days of a chain with a block every two seconds.
pub const CHAIN_LOG_CALLS_MAX: u32 = 1_000;

/// Seconds that a search begins before the time asked for: clocks of sequencers and ours differ.
pub const CHAIN_TIME_MARGIN_S: u64 = 300;

/// Times of blocks that are remembered as hints where to begin a search.
pub const CHAIN_TIMES_KEPT: usize = 1_024;

/// Blocks that are remembered by their hash; a page of payments lies in fewer.
pub const CHAIN_BLOCKS_KEPT: usize = 256;

/// Gas of one refund. An EIP-3009 transfer takes about 90,000; an estimate above this is not a token transfer.
pub const CHAIN_GAS_MAX: u64 = 1_000_000;

/// Wei per gas that a refund may cost: 1,000 gwei, above what the dearest chains have asked. A node must not name any fee it likes.
pub const CHAIN_FEE_PER_GAS_WEI_MAX: u128 = 1_000_000_000_000;

/// Attempts at one broadcast: one more when the node says that the account's nonce was taken meanwhile.
pub const CHAIN_SEND_ATTEMPTS_MAX: u32 = 2;
// refunds

/// Pause of the refund worker when nothing is due.
pub const REFUND_PAUSE: Duration = Duration::from_secs(3);

/// How long one worker may hold one refund; longer than [`REFUND_WORK`], so that it has let go before another one begins.
pub const REFUND_LEASE: Duration = Duration::from_secs(150);

/// Time for one try at one refund: looks at the chain and one broadcast, some twenty calls of a second.
pub const REFUND_WORK: Duration = Duration::from_secs(120);

/// Life of an authorization that the treasury signs. It is signed anew, under the same nonce, as often as needed.
pub const REFUND_LIFE_S: u64 = 3_600;

/// What must be left of that life for another broadcast: less, and the transaction may be mined too late.
pub const REFUND_LIFE_LEFT_S: u64 = 120;

/// First pause after a broadcast until the chain is asked for it; it doubles with each broadcast.
pub const REFUND_MINED_WAIT: Duration = Duration::from_secs(15);

/// First pause after a failed try; it doubles with each.
pub const REFUND_RETRY_MIN: Duration = Duration::from_secs(5);

/// Longest pause between two tries.
pub const REFUND_RETRY_MAX: Duration = Duration::from_secs(3_600);

/// Failed tries after which an operator is told and the pace is [`REFUND_PARKED`].
pub const REFUND_FAILURES_MAX: u32 = 8;

/// Pace of what is parked.
pub const REFUND_PARKED: Duration = Duration::from_secs(24 * 3_600);

/// Pause before a refund is looked at again that may not be sent now: by order of the operator, or while the node is away.
pub const REFUND_REST: Duration = Duration::from_secs(30);
// recovery

/// Pause between two rounds of recovery: an outcome that the chain knows is found within a few seconds.
pub const RECOVERY_PAUSE: Duration = Duration::from_secs(5);

/// Longest pause of recovery while the database or the node does not answer.
pub const RECOVERY_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Payments of one list in one round. With eight asked at a time a round ends within seconds on a public node.
pub const RECOVERY_PAGE: i64 = 100;

/// Payments that are asked about at one time: public nodes allow some tens of calls a second.
pub const RECOVERY_PARALLEL: usize = 8;

/// Time for one list in one round; what is left over comes in the next one. A node that hangs must not keep the other lists waiting.
pub const RECOVERY_STAGE: Duration = Duration::from_secs(15);

/// Least and longest time between two looks at one payment. It grows with the payment's age, by the next divisor.
pub const RECOVERY_LOOK: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(60));

/// The share of a payment's age that passes before it is looked at again.
pub const RECOVERY_LOOK_SHARE: u32 = 10;

/// Payments whose last look is remembered; at that many the memory is cleared, which costs only some looks too early.
pub const RECOVERY_LOOKS_KEPT: usize = 100_000;

/// After a whole pass over a list the next one begins this long ago: the longest authorization, its margin, and slack. Once in
/// [`RECOVERY_FULL`] it begins at the first payment ever.
pub const RECOVERY_BACK: Duration = Duration::from_secs(2 * 3_600);

/// How often a list is walked from its first payment.
pub const RECOVERY_FULL: Duration = Duration::from_secs(3_600);

/// A charge that the facilitator named is proven by the chain no later than this, or somebody asks why.
pub const EVIDENCE_DUE: Duration = Duration::from_secs(15 * 60);

/// A transfer that was seen no longer ago than this is looked at again for a reorganisation: three hundred blocks of two seconds.
pub const REORG_WATCH: Duration = Duration::from_secs(10 * 60);

/// Seconds after which no lease is open that was given before: the longest lease, and a slow commit.
pub const LEASE_S_MAX: i32 = 150;

/// Moves that one statement writes for dead owners.
pub const LAPSES_MAX: i32 = 100;

/// Statements of that kind on a start, before the listener opens; what is left over is written by the rounds.
pub const LAPSE_CALLS_MAX: u32 = 100;

/// Time after which the server ends the session of a holder of recovery that says nothing: another process takes over. Longer
/// than a list of a round may take.
pub const RECOVERY_SILENCE: Duration = Duration::from_secs(120);

/// Log queries of the sweep in one round.
pub const SWEEP_CHUNKS_MAX: u32 = 10;

/// Rows of one page of payments for the operator.
pub const PAYMENTS_PAGE_MAX: i64 = 500;

/// Rows of one invariant that `jim doctor` shows.
pub const BREACHES_SHOWN_MAX: usize = 20;
// coming back after a failure

/// Pause before a private server that could not be started again is tried once more.
pub const POSTGRES_RESTART_PAUSE: Duration = Duration::from_secs(1);

/// How long the rows of a payment are asked for after the journal has failed on it, before its outcome is called open.
pub const JOURNAL_SECOND_LOOK: Duration = Duration::from_secs(1);

/// How long a decision or the outcome of a settle call is handed in again while the database is away. A killed server is back in five
/// seconds; a buyer whose outcome is lost instead waits for the lease of the settle call.
pub const JOURNAL_INSIST: Duration = Duration::from_secs(15);

/// Pause before it is handed in again.
pub const JOURNAL_INSIST_PAUSE: Duration = Duration::from_millis(250);

// proofs

/// Objects and arrays within each other in a line of evidence. The protocol needs five.
pub const PROOF_DEPTH_MAX: usize = 64;

/// The largest whole number that a double holds exactly together with its neighbours: 2^53 - 1.
pub const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// Bytes of one line of an evidence log. A record with a full excerpt has about 6,000.
pub const PROOF_LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of a bundle's manifest, of its baseline and of its anchor, each: they are held in memory, the log is not.
pub const PROOF_DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Problems of one kind that a verification names. A log in which every line is bad says so a thousand times, then is silent.
pub const PROBLEMS_NAMED_MAX: usize = 1000;

/// Bytes of an order's bundle, and of an answer, that `jim verify --answer` holds in memory. An order has about 40,000.
pub const PROOF_ORDER_BYTES_MAX: u64 = 64 * 1024 * 1024;
