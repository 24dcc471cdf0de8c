//! Bounds of what is asked of a language model, and of what it answers.

use std::time::Duration;

/// Calls of a language model before it counts as unavailable: the first and its repeats after 429 and 5xx.
pub const MODEL_TRIES: u32 = 3;

/// First pause before a repeat, doubled each time, where the API names none.
pub const MODEL_PAUSE: Duration = Duration::from_millis(500);

/// Longest pause that an API may ask for; a longer one is not waited for.
pub const MODEL_PAUSE_MAX: Duration = Duration::from_secs(10);

/// Bytes of a model's answer that are read. A memo is at most [`super::DRAFT_BYTES_MAX`]; escaping and the frame come on top.
pub const MODEL_BODY_BYTES_MAX: usize = 1 << 20;

/// Tokens that a model may write in one call.
pub const MODEL_TOKENS_MAX: u32 = 8_192;

/// Nesting of a model's answer, and of the memo in it.
pub const MODEL_JSON_DEPTH_MAX: usize = 32;

/// Sections of a memo that are read from a model.
pub const SECTIONS_MAX: usize = 24;

/// Characters of a title or heading.
pub const HEADING_CHARS_MAX: usize = 200;
