//! The tables of the file and how vectors are written in them. `docs/format.md` says the same in words.

use redb::TableDefinition;

/// A table of texts by text.
pub(super) type TextTable = TableDefinition<'static, &'static str, &'static str>;

/// `format`, `kind`, `created_by`.
pub(super) const META: TextTable = TableDefinition::new("meta");
/// Records' JSON by the order in which they were kept.
pub(super) const RECORDS: TableDefinition<'static, u64, &'static str> =
    TableDefinition::new("records");
/// Run id to the order of its newest record.
pub(super) const RUNS: TableDefinition<'static, &'static str, u64> = TableDefinition::new("runs");
/// Postmortem entries' JSON by postmortem id.
pub(super) const POSTMORTEMS: TextTable = TableDefinition::new("postmortems");
/// Vectors by embedder identity and postmortem id: little-endian f32, one after the other.
pub(super) const VECTORS: TableDefinition<'static, (&'static str, &'static str), &'static [u8]> =
    TableDefinition::new("vectors");
/// Undo entries' JSON by id.
pub(super) const JOURNAL: TextTable = TableDefinition::new("journal");
/// Owner by object uid.
pub(super) const OWNERSHIP: TextTable = TableDefinition::new("ownership");
/// Reason by cluster name.
pub(super) const QUARANTINE: TextTable = TableDefinition::new("quarantine");
/// Qualifications' JSON by key.
pub(super) const QUALIFICATIONS: TextTable = TableDefinition::new("qualifications");

/// Plans' JSON by the id of the plan.
pub(super) const PLANNED: TextTable = TableDefinition::new("planned");
/// Namespaces about to be created: what they can be told by, by cluster uid and name.
pub(super) const CREATING: TextTable = TableDefinition::new("creating");
/// What a cluster must look like with a fixture, JSON by cluster uid and the fixture's digest.
pub(super) const REFERENCES: TextTable = TableDefinition::new("references");
/// Which fixture stands, or is being made to stand, JSON by cluster uid.
pub(super) const STANDING: TextTable = TableDefinition::new("standing");

/// Clusters that a person agreed to use, JSON by cluster uid.
pub(super) const CLUSTERS: TextTable = TableDefinition::new("clusters");

/// Registrations' canonical JSON by their hash.
pub(super) const REGISTRATIONS: TextTable = TableDefinition::new("registrations");
/// Frozen corpora of experiments, JSON by the hash of their contents.
pub(super) const EXPERIMENT_CORPORA: TextTable = TableDefinition::new("experiment_corpora");
/// Ledger entries' JSON by registration and place in the ledger.
pub(super) const LEDGER: TableDefinition<'static, (&'static str, u64), &'static str> =
    TableDefinition::new("ledger");

/// Tables of texts that every file has.
pub(super) const FIRST_TEXT_TABLES: &[TextTable] =
    &[POSTMORTEMS, JOURNAL, OWNERSHIP, QUARANTINE, QUALIFICATIONS];
/// Tables of texts that came with format 2.
pub(super) const SECOND_TEXT_TABLES: &[TextTable] = &[PLANNED, CREATING, REFERENCES, STANDING];
/// Tables of texts that came with format 3.
pub(super) const THIRD_TEXT_TABLES: &[TextTable] = &[CLUSTERS];
/// Tables of texts that came with format 4; `ledger` came with them.
pub(super) const FOURTH_TEXT_TABLES: &[TextTable] = &[REGISTRATIONS, EXPERIMENT_CORPORA];

/// What `meta` says under `kind`, so that another program's file of the same library is told apart.
pub(super) const KIND: &str = "agent-breakage workspace";

/// A vector's bytes; nothing when they are not whole numbers of four.
pub(super) fn floats(bytes: &[u8]) -> Option<Vec<f32>> {
    let (chunks, rest) = bytes.as_chunks::<4>();
    rest.is_empty().then(|| {
        chunks
            .iter()
            .map(|chunk| f32::from_le_bytes(*chunk))
            .collect()
    })
}

pub(super) fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|x| x.to_le_bytes()).collect()
}
