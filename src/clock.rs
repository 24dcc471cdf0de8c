//! Time as a value that is handed in, so that windows and deadlines can be tested.

use time::OffsetDateTime;

/// Where the wall-clock time comes from.
pub trait Clock: Send + Sync {
    /// The time now, in UTC.
    fn now(&self) -> OffsetDateTime;

    /// Seconds since the Unix epoch; 0 for a clock set before it.
    fn unix_s(&self) -> u64 {
        u64::try_from(self.now().unix_timestamp()).unwrap_or(0)
    }
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }
}

/// A clock that stands still.
#[derive(Clone, Copy, Debug)]
pub struct FixedClock(pub OffsetDateTime);

impl Clock for FixedClock {
    fn now(&self) -> OffsetDateTime {
        self.0
    }
}
