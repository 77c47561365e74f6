//! The seed postmortems that are compiled in: incidents of services that no fixture of ours resembles.

use crate::experience::entry::Entry;
use crate::experience::transfer::read_lines;

/// The file as it is kept in the repository; the same form as an export.
pub const SEED_LINES: &str = include_str!("../../data/seed-postmortems.jsonl");

/// Every seed postmortem, by id.
pub fn entries() -> Vec<Entry> {
    let mut entries = read_lines("data/seed-postmortems.jsonl", SEED_LINES)
        .expect("the compiled-in seed postmortems are checked by a test");
    entries.sort_by(|a, b| a.id.cmp(&b.id));
    entries
}
