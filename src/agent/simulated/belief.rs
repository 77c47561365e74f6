//! What the simulated agent believes: its own evidence, an error, or somebody else's incident.
//!
//! Pure. A past incident fits when it tells of what the own evidence shows; the truth is not known here.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::agent::finding::{Finding, Repair, category};
use crate::agent::simulated::chance::Chance;
use crate::agent::simulated::model::Model;
use crate::record::{Exemplar, Outcome};

/// Percent below which an explanation of its own is not considered.
const WORTH_TRYING: u8 = 35;
/// Percent that it puts on what it took from a past incident or from thin air.
const GUESSED: u8 = 60;

/// What is taken for what, by people who look at symptoms first. Plausible errors, not measured ones.
const CONFUSED: &[(&str, &[&str])] = &[
    (
        category::RESOURCE_LIMIT,
        &[category::APPLICATION_ERROR, category::PROBE],
    ),
    (
        category::PROBE,
        &[category::APPLICATION_ERROR, category::RESOURCE_LIMIT],
    ),
    (
        category::SECRET_CONTENT,
        &[category::APPLICATION_ERROR, category::DEPENDENCY],
    ),
    (
        category::APPLICATION_ERROR,
        &[category::ROLLOUT, category::DEPENDENCY],
    ),
    (
        category::ROLLOUT,
        &[category::APPLICATION_ERROR, category::RESOURCE_LIMIT],
    ),
    (
        category::NETWORK_POLICY,
        &[category::DNS, category::DEPENDENCY],
    ),
];
/// Whatever else it is taken for.
const OTHERWISE: &[&str] = &[category::APPLICATION_ERROR, category::ROLLOUT];

/// How much of the past incidents that ended well tells of what is seen here. Both are shares; 0 and 0 with none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Leaning {
    pub fitting: f64,
    pub strange: f64,
}

impl Leaning {
    /// Probability of believing the own best explanation.
    pub fn competence(self, model: &Model) -> f64 {
        model.competence + (1.0 - model.competence) * self.help(model)
    }

    /// Probability of following a past incident that does not fit.
    pub fn anchoring(self, model: &Model) -> f64 {
        model.reliance * model.anchoring * self.strange
    }

    /// A probability of carelessness, with what fitting incidents take from it.
    pub fn careless(self, model: &Model, probability: f64) -> f64 {
        probability * (1.0 - self.help(model))
    }

    fn help(self, model: &Model) -> f64 {
        model.reliance * model.gain * self.fitting
    }
}

/// What is known when a belief is formed.
pub(super) struct Ground<'a> {
    /// Surest first.
    pub found: &'a [Finding],
    pub past: &'a [Exemplar],
    /// Keys of beliefs that were given up.
    pub given_up: &'a BTreeSet<String>,
}

impl Ground<'_> {
    /// Explanations of its own that are still open, surest first.
    fn open(&self) -> impl Iterator<Item = &Finding> {
        self.found
            .iter()
            .filter(|f| f.confidence >= WORTH_TRYING && !self.given_up.contains(&f.key))
    }

    /// The explanation that the own evidence supports best.
    pub fn best(&self) -> Option<&Finding> {
        self.open().next()
    }

    /// Past incidents that ended well and have not led astray already: what was not resolved is no guide.
    fn guides(&self) -> impl Iterator<Item = &Exemplar> {
        self.past.iter().filter(|exemplar| {
            exemplar.outcome == Outcome::Resolved && !self.given_up.contains(&key_of(exemplar))
        })
    }

    pub fn leaning(&self) -> Leaning {
        let Some(best) = self.best() else {
            return Leaning::default();
        };
        let all = self.guides().count();
        if all == 0 {
            return Leaning::default();
        }
        let fitting = self.guides().filter(|guide| fits(guide, best)).count() as f64 / all as f64;
        Leaning {
            fitting,
            strange: 1.0 - fitting,
        }
    }

    /// What is believed at the given attempt; nothing when nothing is left to explain.
    pub fn belief(&self, model: &Model, chance: Chance, attempt: u64) -> Option<Finding> {
        let best = self.best()?;
        let leaning = self.leaning();
        if chance.happens("anchored", attempt, leaning.anchoring(model))
            && let Some(guide) = self.guides().find(|guide| !fits(guide, best))
        {
            return Some(self.adopted(guide, best));
        }
        if chance.happens("competent", attempt, leaning.competence(model)) {
            return Some(best.clone());
        }
        Some(self.error(best, chance, attempt))
    }

    /// A past incident's cause as one's own: with the own repair where the own evidence has one of that category. One
    /// that asks for what the best explanation asks for anyhow would not go against the evidence, and is not taken.
    fn adopted(&self, guide: &Exemplar, best: &Finding) -> Finding {
        let own = self.open().find(|finding| {
            finding.category == guide.primary_category.as_str() && !shares_a_repair(finding, best)
        });
        if let Some(own) = own {
            return own.clone();
        }
        Finding {
            key: key_of(guide),
            category: Cow::Owned(guide.primary_category.as_str().to_owned()),
            statement: format!(
                "{} shows what was seen before: {}",
                best.subject, guide.final_diagnosis
            ),
            ..guessed(best)
        }
    }

    /// A plausible wrong explanation: another one of the own, else what the best one is easily taken for. One that asks
    /// for the very same repair is no error in deed, and is not taken.
    fn error(&self, best: &Finding, chance: Chance, attempt: u64) -> Finding {
        let other = self
            .open()
            .find(|f| f.category != best.category && !shares_a_repair(f, best));
        if let Some(other) = other {
            return other.clone();
        }
        let alike = CONFUSED
            .iter()
            .find(|(category, _)| best.category == *category)
            .map_or(OTHERWISE, |(_, alike)| alike);
        let open: Vec<&str> = alike
            .iter()
            .copied()
            .filter(|category| !self.given_up.contains(&guess_key(category)))
            .collect();
        let taken = chance.pick("confused", attempt, &open).copied();
        let category = taken.unwrap_or(OTHERWISE[0]);
        Finding {
            key: guess_key(category),
            category: Cow::Owned(category.to_owned()),
            statement: format!("{} is unwell, as with {category}", best.subject),
            ..guessed(best)
        }
    }
}

fn shares_a_repair(one: &Finding, other: &Finding) -> bool {
    let of_other: BTreeSet<String> = other.repairs.iter().map(Repair::signature).collect();
    let mut of_one = one.repairs.iter().map(Repair::signature);
    of_one.any(|signature| of_other.contains(&signature))
}

/// A belief without evidence. The only deed that needs none is a restart.
fn guessed(best: &Finding) -> Finding {
    Finding {
        secondary: Vec::new(),
        confidence: GUESSED,
        quotes: Vec::new(),
        repairs: vec![restart_of(best)],
        ..best.clone()
    }
}

/// A restart of what an explanation is about.
pub(super) fn restart_of(finding: &Finding) -> Repair {
    Repair {
        target: finding.subject.clone(),
        fields: Vec::new(),
        restart: Some(finding.subject.clone()),
        why: "a restart often helps".to_owned(),
    }
}

fn key_of(exemplar: &Exemplar) -> String {
    format!("past/{}", exemplar.id)
}

fn guess_key(category: &str) -> String {
    format!("guess/{category}")
}

/// Telling words that an incident and an explanation must share beyond the category.
const SHARED_WORDS: usize = 2;
/// Shorter words are in every text.
const TELLING_LETTERS: usize = 5;

/// Whether a past incident tells of what an explanation says: the same category, and words in common.
pub(super) fn fits(exemplar: &Exemplar, finding: &Finding) -> bool {
    if finding.category != exemplar.primary_category.as_str() {
        return false;
    }
    let told = words(&format!(
        "{} {}",
        exemplar.final_diagnosis, exemplar.fix_applied
    ));
    let mut own = words(&finding.statement);
    for quote in &finding.quotes {
        own.extend(words(quote));
    }
    own.extend(words(&finding.key));
    own.intersection(&told).count() >= SHARED_WORDS
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() >= TELLING_LETTERS)
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::evidence::Subject;
    use crate::ids::{CategoryId, PostmortemId, Seed};
    use crate::record::Source;

    fn finding(key: &str, category: &'static str, statement: &str) -> Finding {
        Finding {
            key: key.to_owned(),
            category: Cow::Borrowed(category),
            secondary: Vec::new(),
            confidence: 90,
            subject: Subject {
                kind: "Deployment",
                namespace: "a".to_owned(),
                name: "d".to_owned(),
            },
            statement: statement.to_owned(),
            quotes: Vec::new(),
            repairs: Vec::new(),
        }
    }

    fn exemplar(id: &str, category: &str, text: &str, outcome: Outcome) -> Exemplar {
        Exemplar {
            id: PostmortemId::new(id),
            distance: 0.2,
            outcome,
            source: Source::Production,
            primary_category: CategoryId::new(category),
            final_diagnosis: text.to_owned(),
            fix_applied: String::new(),
            what_did_not_work: Vec::new(),
        }
    }

    fn memory() -> Finding {
        finding(
            "memory/api",
            category::RESOURCE_LIMIT,
            "killed at its memory limit",
        )
    }

    fn share(found: &[Finding], past: &[Exemplar], model: &Model) -> [f64; 3] {
        let given_up = BTreeSet::new();
        let ground = Ground {
            found,
            past,
            given_up: &given_up,
        };
        let mut counts = [0.0; 3];
        for seed in 0..4000 {
            let belief = ground.belief(model, Chance(Seed(seed)), 0).unwrap();
            let place = match belief.key.as_str() {
                "memory/api" => 0,
                key if key.starts_with("past/") => 1,
                _ => 2,
            };
            counts[place] += 1.0 / 4000.0;
        }
        counts
    }

    fn near(found: [f64; 3], expected: [f64; 3]) {
        for (one, other) in found.iter().zip(expected) {
            assert!(
                (one - other).abs() < 0.03,
                "{found:?}, expected {expected:?}"
            );
        }
    }

    #[test]
    fn beliefs_are_as_frequent_as_the_model_says() {
        let model = Model::default();
        let found = [memory()];
        near(share(&found, &[], &model), [0.6, 0.0, 0.4]);
        let same = exemplar(
            "p",
            category::RESOURCE_LIMIT,
            "the memory limit killed it",
            Outcome::Resolved,
        );
        // 0.6 + 0.4 * 0.5 * 0.6.
        near(
            share(&found, std::slice::from_ref(&same), &model),
            [0.72, 0.0, 0.28],
        );
        let strange = exemplar(
            "q",
            category::DNS,
            "the memory limit killed it",
            Outcome::Resolved,
        );
        // 0.5 * 0.6 anchored; the rest as without.
        near(
            share(&found, std::slice::from_ref(&strange), &model),
            [0.42, 0.3, 0.28],
        );
        // Half of each: 0.15 anchored, the rest competent with 0.66.
        near(
            share(&found, &[same, strange], &model),
            [0.561, 0.15, 0.289],
        );
    }

    #[test]
    fn without_reliance_past_incidents_change_nothing() {
        let model = Model {
            reliance: 0.0,
            ..Model::default()
        };
        let strange = exemplar("q", category::DNS, "name not resolved", Outcome::Resolved);
        let found = [memory()];
        assert_eq!(
            share(&found, &[], &model),
            share(&found, &[strange], &model)
        );
    }

    #[test]
    fn a_past_incident_fits_by_category_and_words_and_guides_only_when_it_ended_well() {
        let table = [
            (category::RESOURCE_LIMIT, "killed at the memory limit", true),
            (
                category::RESOURCE_LIMIT,
                "the processor was throttled",
                false,
            ),
            (category::PROBE, "killed at the memory limit", false),
        ];
        for (category, text, expected) in table {
            let past = exemplar("p", category, text, Outcome::Resolved);
            assert_eq!(fits(&past, &memory()), expected, "{category}: {text}");
        }
        let given_up = BTreeSet::new();
        let past = [exemplar("p", category::DNS, "x", Outcome::Regressed)];
        let ground = Ground {
            found: &[memory()],
            past: &past,
            given_up: &given_up,
        };
        assert_eq!(ground.leaning(), Leaning::default());
    }

    #[test]
    fn who_is_anchored_does_not_make_the_repair_that_the_own_evidence_asks_for() {
        let model = Model {
            reliance: 1.0,
            anchoring: 1.0,
            ..Model::default()
        };
        let given_up = BTreeSet::new();
        let rollout = finding("rollout", category::ROLLOUT, "the last rollout");
        let found = [memory(), rollout].map(|finding| Finding {
            repairs: vec![restart_of(&memory())],
            ..finding
        });
        let past = [exemplar("p", category::ROLLOUT, "x", Outcome::Resolved)];
        let ground = Ground {
            found: &found,
            past: &past,
            given_up: &given_up,
        };
        let belief = ground.belief(&model, Chance(Seed(1)), 0).unwrap();
        assert_eq!(
            (belief.key.as_str(), &*belief.category),
            ("past/p", category::ROLLOUT)
        );
    }

    #[test]
    fn an_error_takes_another_own_explanation_before_it_makes_one_up() {
        let model = Model {
            competence: 0.0,
            ..Model::default()
        };
        let given_up = BTreeSet::new();
        let found = [
            memory(),
            finding("probe/api", category::PROBE, "the probe fails"),
        ];
        let ground = Ground {
            found: &found,
            past: &[],
            given_up: &given_up,
        };
        let belief = ground.belief(&model, Chance(Seed(1)), 0).unwrap();
        assert_eq!(belief.key, "probe/api");
        let same_deed = [memory(), found[1].clone()].map(|finding| Finding {
            repairs: vec![restart_of(&finding)],
            ..finding
        });
        let ground = Ground {
            found: &same_deed,
            ..ground
        };
        let belief = ground.belief(&model, Chance(Seed(1)), 0).unwrap();
        assert!(belief.key.starts_with("guess/"), "{}", belief.key);
        let alone = Ground {
            found: &found[..1],
            ..ground
        };
        let belief = alone.belief(&model, Chance(Seed(1)), 0).unwrap();
        assert!(belief.key.starts_with("guess/"), "{}", belief.key);
        assert_ne!(belief.category, category::RESOURCE_LIMIT);
        assert_eq!(belief.repairs, [restart_of(&memory())]);
    }
}
