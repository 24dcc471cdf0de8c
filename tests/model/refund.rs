//! Paying money back: two workers, a mempool that forgets, crashes, and a restore of the rows from before the refund.
//!
//! The refund is a transfer that the treasury signs with a nonce made from the payment's id; the token
//! applies a nonce once. No lease stands between the workers here: both may act on a row at any time and on what they read
//! long ago, so the safety doesn't rest on the lease.

/// The refund's row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Row {
    /// No refund is owed.
    #[default]
    None,
    /// Nothing is signed yet.
    Owed,
    /// The signed transfer is stored.
    Signed,
    /// It was sent; its hash is stored.
    Sent,
    /// Seen on chain.
    Confirmed,
}

/// Where one worker stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Worker {
    /// Looks for work.
    #[default]
    Idle,
    /// The chain had no payout when it looked; will sign.
    Sign,
    /// The signed transfer is stored; will send it.
    Send,
    /// Sent; will store the hash.
    Record,
    /// Saw the payout; will store that.
    Confirm,
}

/// One refund: row, workers, and what the chain knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Refund {
    /// The row in the database.
    pub(crate) row: Row,
    /// Both workers.
    pub(crate) workers: [Worker; 2],
    /// Transfers in the mempool. With a fixed nonce one, however often it was sent.
    pub(crate) pending: u8,
    /// Payouts on chain.
    pub(crate) paid: u8,
}

/// The mistakes that can be built in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flaws {
    /// Each signature gets a fresh nonce, so the token can't tell two payouts from one.
    pub(crate) random_nonce: bool,
    /// A hash is taken for a payout.
    pub(crate) hash_is_proof: bool,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// A worker goes on.
    Work(usize),
    /// A worker dies.
    Die(usize),
    /// A transfer is mined.
    Mine,
    /// The mempool forgets a transfer (or its validBefore passes: signed again with the same nonce).
    Drop,
    /// The rows of a backup from before the refund come back.
    Restore,
}

/// What the step did to the row, for the payment's own cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Nothing that the payment's cell shows.
    Plain,
    /// The refund is done: RefundOwed -> Refunded.
    Done,
    /// A worker found it done already.
    Again,
    /// The database went back to before.
    Back,
}

impl Refund {
    /// The row is written.
    pub(crate) fn owe(&mut self) {
        self.row = Row::Owed;
    }

    /// All steps as one, where they aren't what a variant is about.
    pub(crate) fn pay_at_once(&mut self) {
        (self.row, self.paid) = (Row::Confirmed, self.paid + 1);
    }

    /// True when nothing is running and nothing is left to do.
    pub(crate) fn quiet(&self) -> bool {
        self.pending == 0 && self.workers == [Worker::Idle; 2] && matches!(self.row, Row::None | Row::Confirmed)
    }

    /// Offers every step that can be taken; `deaths` and `restores` are what the budget leaves.
    pub(crate) fn acts(&self, deaths: u8, restores: u8, mut offer: impl FnMut(Act)) {
        for (at, worker) in self.workers.iter().enumerate() {
            if *worker != Worker::Idle || !matches!(self.row, Row::None | Row::Confirmed) {
                offer(Act::Work(at));
            }
            if *worker != Worker::Idle && deaths > 0 {
                offer(Act::Die(at));
            }
        }
        if self.pending > 0 {
            offer(Act::Mine);
            offer(Act::Drop);
        }
        if restores > 0 && matches!(self.row, Row::Signed | Row::Sent | Row::Confirmed) {
            offer(Act::Restore);
        }
    }

    /// Takes one step.
    pub(crate) fn step(&mut self, act: Act, flaws: Flaws) -> Outcome {
        match act {
            Act::Work(at) => return self.work(at, flaws),
            Act::Die(at) => self.workers[at] = Worker::Idle,
            Act::Mine => {
                self.pending -= 1;
                self.paid += 1;
            }
            Act::Drop => self.pending -= 1,
            Act::Restore => {
                self.row = Row::Owed;
                // a restore stops the service
                self.workers = [Worker::Idle; 2];
                return Outcome::Back;
            }
        }
        Outcome::Plain
    }

    fn work(&mut self, at: usize, flaws: Flaws) -> Outcome {
        let (next, outcome) = match self.workers[at] {
            Worker::Idle => (if self.sees_payout(flaws) { Worker::Confirm } else { Worker::Sign }, Outcome::Plain),
            Worker::Sign => {
                self.write(Row::Signed);
                (Worker::Send, Outcome::Plain)
            }
            Worker::Send => {
                self.send(flaws);
                (Worker::Record, Outcome::Plain)
            }
            Worker::Record if flaws.hash_is_proof => (Worker::Idle, self.confirm()),
            Worker::Record => {
                self.write(Row::Sent);
                (Worker::Idle, Outcome::Plain)
            }
            Worker::Confirm => (Worker::Idle, self.confirm()),
        };
        self.workers[at] = next;
        outcome
    }

    /// The look before every send. A payout under a nonce that is known is seen on chain whatever the rows say; one under a
    /// random nonce only by the hash in the row.
    fn sees_payout(&self, flaws: Flaws) -> bool {
        self.paid > 0 && (!flaws.random_nonce || self.row == Row::Sent)
    }

    /// A confirmed row is never written again.
    fn write(&mut self, row: Row) {
        if self.row != Row::Confirmed {
            self.row = row;
        }
    }

    fn send(&mut self, flaws: Flaws) {
        if flaws.random_nonce {
            // two are enough to pay twice
            self.pending = (self.pending + 1).min(2);
        } else if self.paid == 0 {
            self.pending = 1;
        }
    }

    fn confirm(&mut self) -> Outcome {
        let first = self.row != Row::Confirmed;
        self.row = Row::Confirmed;
        if first { Outcome::Done } else { Outcome::Again }
    }
}
