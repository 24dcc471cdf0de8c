//! A manifest's record of publication, as far as it can be judged without the log: shapes, ranges and bounds.

use crate::canonical::View;
use crate::proof::address::Digest;

/// The first rule that the record breaks.
pub(super) fn first_flaw(record: View<'_>) -> Option<&'static str> {
    if !record.is_object() {
        return Some("not-object");
    }
    let is_empty = |view: View<'_>, name| view.get_text(name).is_none_or(|text| text.is(""));
    if is_empty(record, "logId") {
        return Some("logId");
    }
    let Some(sequence) = record.get("sequence").and_then(View::count) else { return Some("sequence") };
    if !is_digest(record.get("leafHash")) {
        return Some("leafHash");
    }
    let Some(head) = record.get("publishedHead").filter(|head| head.is_object()) else { return Some("publishedHead") };
    if is_empty(head, "logId") {
        return Some("publishedHead.logId");
    }
    let Some(size) = head.get("treeSize").and_then(View::count).filter(|size| *size >= 1) else {
        return Some("publishedHead.treeSize");
    };
    if sequence >= size {
        return Some("sequence-outside-tree");
    }
    let log_id = |view: View<'_>| view.get_text("logId").map(|id| id.bytes().into_owned());
    if log_id(record) != log_id(head) {
        return Some("logId-disagrees");
    }
    if !is_digest(head.get("root")) {
        return Some("publishedHead.root");
    }
    for (name, rule) in [("at", "publishedHead.at"), ("sig", "publishedHead.sig")] {
        if is_empty(head, name) {
            return Some(rule);
        }
    }
    let Some(proof) = record.get("inclusionProof").and_then(View::items) else { return Some("inclusionProof") };
    let mut hashes = 0;
    for hash in proof {
        if !is_digest(Some(hash)) {
            return Some("inclusionProof");
        }
        hashes += 1;
    }
    (hashes > height(size) + 1).then_some("inclusionProof-too-long")
}

fn is_digest(view: Option<View<'_>>) -> bool {
    view.and_then(View::text).is_some_and(|text| Digest::parse(&text.to_str()).is_some())
}

/// The height of a tree of that many leaves: the logarithm to base 2, rounded up.
fn height(size: u64) -> u32 {
    size.next_power_of_two().trailing_zeros()
}
