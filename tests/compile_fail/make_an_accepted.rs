//! An accepted memo is made by the gate alone.
use jim::memo::gate::{Accepted, Report};
use jim::memo::{Draft, Snapshot};

fn forge(snapshot: Snapshot, draft: Draft, report: Report) -> Accepted {
    Accepted { snapshot, draft, report }
}

fn main() {}
