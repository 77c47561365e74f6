//! Newtypes for identifiers and units. No behaviour beyond parsing and printing.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
            schemars::JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a text that the caller has checked or that only serves as a label.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    };
}

text_id! {
    /// A scenario's id: kebab-case, equal to its file name by convention.
    ScenarioId
}
text_id! {
    /// A root-cause category of the vocabulary, such as `probe-misconfigured`.
    CategoryId
}
text_id! {
    /// A mechanism of the closed list in `vocab/`, such as `credential-absent`. Never shown to an agent.
    MechanismId
}
text_id! {
    /// A rubric's id, such as `v0.1`.
    RubricId
}
text_id! {
    /// A fixture's id, such as `advocate`.
    FixtureId
}
text_id! {
    /// A run's id, derived from scenario, seed and repetition, so that equal runs have equal ids.
    RunId
}
text_id! {
    /// A postmortem's id in the experience base.
    PostmortemId
}
text_id! {
    /// The identity of an embedder: what must be equal for two vectors to be comparable.
    EmbedderId
}

text_id! {
    /// An experiment's id in its plan, kebab-case. Two registrations may not share one unless the later amends the former.
    ExperimentId
}
text_id! {
    /// An arm's id within its experiment, such as `treatment`.
    ArmId
}
text_id! {
    /// The SHA-256 of a registration's canonical JSON, 64 hex digits.
    RegistrationHash
}
text_id! {
    /// A cell of a block: `<scenario>/<arm>` or `<scenario>/<arm>/<tier>`.
    CellId
}

/// Whether a text is kebab-case: lower-case letters, digits and single hyphens, starting with a letter.
pub fn is_kebab_case(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && !text.ends_with('-')
        && !text.contains("--")
        && text
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// The seed from which everything random in a run derives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// A child seed for one purpose (and index), independent of every other: the first eight bytes of
    /// SHA-256 over the parent, the purpose and the index.
    pub fn child(self, purpose: &str, index: u64) -> Seed {
        use sha2::Digest;
        let mut hash = sha2::Sha256::new();
        hash.update(self.0.to_be_bytes());
        hash.update(purpose.as_bytes());
        hash.update([0]);
        hash.update(index.to_be_bytes());
        let digest = hash.finalize();
        let mut bytes = [0u8; 8];
        bytes.copy_from_slice(&digest[..8]);
        Seed(u64::from_be_bytes(bytes))
    }
}

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A score or weight in millionths: 0.91 is 910000. Integers, so that sums are exact.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MicroPoints(pub u32);

impl MicroPoints {
    pub const ONE: MicroPoints = MicroPoints(1_000_000);

    /// As a decimal for JSON and arithmetic outside: 910000 is 0.91.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// `self` times a fraction given in millionths, rounded down.
    pub fn scaled(self, fraction: MicroPoints) -> MicroPoints {
        let product = u64::from(self.0) * u64::from(fraction.0) / 1_000_000;
        MicroPoints(u32::try_from(product).unwrap_or(u32::MAX))
    }
}

impl fmt::Display for MicroPoints {
    /// Three decimals, as every table prints scores.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.3}", self.as_f64()))
    }
}
