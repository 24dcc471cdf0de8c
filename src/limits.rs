//! Every bound in the system, by name and with its reason. Nothing else in the crate may hold a magic bound.

use std::time::Duration;

/// A draft longer than this is refused unread: the longest honest memo is under 64 KiB, and the gate is linear.
pub const DRAFT_BYTES_MAX: usize = 256 * 1024;

/// Most facts in one snapshot. Fundamentals carry under 60; composition may triple that.
pub const FACTS_MAX: usize = 512;

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
