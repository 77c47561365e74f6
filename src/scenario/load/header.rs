//! The head of a scenario file, its scorer and its truth.

use crate::ids::{CategoryId, FixtureId, MechanismId, MicroPoints, ScenarioId};
use crate::scenario::decode::{Fields, fraction, items, kebab, text, whole};
use crate::scenario::load::injector::namespace_text;
use crate::scenario::model::{
    Credits, FRAMEWORK_ERROR, GroundTruth, Plane, Scorer, Status, Tier, Vocabulary,
};
use crate::scenario::near::did_you_mean;
use crate::scenario::problem::Notes;
use crate::scenario::yaml::{Body, Node, excerpt};

/// Bounds of `time_budget_s`: shorter proves nothing, longer than two hours is not one incident.
pub const TIME_BUDGET_S: std::ops::RangeInclusive<u32> = 60..=7200;
/// Namespaces that stand in for a fixture of another name.
const FIXTURES_OF_NAMESPACES: [(&str, &str); 1] = [("prod-advocate", "advocate")];

pub(super) struct Header {
    pub id: ScenarioId,
    pub plane: Plane,
    pub symptom_class: String,
    pub origin: String,
    pub difficulty: String,
    pub tier: Tier,
    pub status: Status,
    pub source_tranche: Option<String>,
}

pub(super) fn header(fields: &Fields<'_>, notes: &mut Notes) -> Option<Header> {
    let id = fields
        .need("id", "a kebab-case id", notes)
        .and_then(|node| kebab(node, "id", notes));
    let plane = fields.need_word(
        "plane",
        &[
            ("infra", Plane::Infra),
            ("config", Plane::Config),
            ("app", Plane::App),
        ],
        notes,
    );
    let symptom_class = fields.need_text("symptom_class", "a word such as crashloop", notes);
    let origin = origin(fields, notes);
    let levels = [("easy", "easy"), ("medium", "medium"), ("hard", "hard")];
    let difficulty = fields.need_word("difficulty", &levels, notes);
    let tier = fields.need_word(
        "tier",
        &[
            ("anchor", Tier::Anchor),
            ("coverage", Tier::Coverage),
            ("retired", Tier::Retired),
        ],
        notes,
    );
    let status = fields.need_word(
        "status",
        &[
            ("active", Status::Active),
            ("regression-watch", Status::RegressionWatch),
            ("stable", Status::Stable),
            ("retired", Status::Retired),
        ],
        notes,
    );
    let source_tranche = fields.opt_text("source_tranche", notes);
    Some(Header {
        id: ScenarioId::new(id?),
        plane: plane?,
        symptom_class: symptom_class?,
        origin: origin?,
        difficulty: difficulty?.to_owned(),
        tier: tier?,
        status: status?,
        source_tranche,
    })
}

fn origin(fields: &Fields<'_>, notes: &mut Notes) -> Option<String> {
    let expected = "an incident's id or synthetic:<reason>";
    let origin = fields.need_text("origin", expected, notes)?;
    let empty = origin.trim().is_empty()
        || origin
            .strip_prefix("synthetic:")
            .is_some_and(|reason| reason.trim().is_empty());
    if empty && let Some(node) = fields.get("origin") {
        notes.problem(
            node.at,
            "origin",
            format!("says nothing, expected {expected}"),
        );
    }
    Some(origin)
}

pub(super) fn scorer(
    fields: &Fields<'_>,
    target: Option<&str>,
    notes: &mut Notes,
) -> Option<Scorer> {
    let node = fields.need("scorer", "time_budget_s, scope and credits", notes)?;
    let scorer = Fields::of(node, "scorer", notes)?;
    scorer.known(&["time_budget_s", "scope", "credits"], notes);
    let time_budget_s = scorer
        .need("time_budget_s", "seconds from 60 to 7200", notes)
        .and_then(|node| whole(node, "scorer.time_budget_s", TIME_BUDGET_S, notes));
    let scope = scorer
        .need("scope", "a list of namespaces", notes)
        .and_then(|node| scope(node, target, notes));
    let credits = scorer
        .need("credits", "the weights of the four axes", notes)
        .and_then(|node| credits(node, notes));
    Some(Scorer {
        time_budget_s: time_budget_s?,
        scope: scope?,
        credits: credits?,
    })
}

fn scope(node: &Node, target: Option<&str>, notes: &mut Notes) -> Option<Vec<String>> {
    let path = "scorer.scope";
    let list = items(node, path, notes);
    let mut scope: Vec<String> = Vec::new();
    for (index, item) in list.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let Some(namespace) = namespace_text(item, &path, notes) else {
            continue;
        };
        if scope.contains(&namespace) {
            notes.problem(item.at, &path, format!("`{namespace}` stands twice"));
        }
        scope.push(namespace);
    }
    if list.is_empty() && matches!(node.body, Body::List(_)) {
        notes.problem(
            node.at,
            path,
            "is empty, expected at least the target's namespace",
        );
    }
    if let Some(target) = target
        && scope.len() == list.len()
        && !scope.is_empty()
        && !scope.iter().any(|namespace| namespace == target)
    {
        notes.problem(
            node.at,
            path,
            format!("lacks the target's namespace `{target}`"),
        );
    }
    Some(scope)
}

fn credits(node: &Node, notes: &mut Notes) -> Option<Credits> {
    let path = "scorer.credits";
    let credits = Fields::of(node, path, notes)?;
    let axes = ["detected", "diagnosed", "fixed", "no_regressions"];
    credits.known(&axes, notes);
    let mut weights = axes.map(|axis| {
        credits
            .need(axis, "a weight from 0 to 1", notes)
            .and_then(|node| fraction(node, &credits.sub(axis), notes))
    });
    let [detected, diagnosed, fixed, no_regressions] = weights.each_mut().map(Option::take);
    let credits = Credits {
        detected: detected?,
        diagnosed: diagnosed?,
        fixed: fixed?,
        no_regressions: no_regressions?,
    };
    let sum = [
        credits.detected,
        credits.diagnosed,
        credits.fixed,
        credits.no_regressions,
    ]
    .iter()
    .map(|weight| weight.0)
    .sum::<u32>();
    if sum != MicroPoints::ONE.0 {
        let sum = f64::from(sum) / 1e6;
        notes.problem(
            node.at,
            path,
            format!("the weights sum to {sum}, expected exactly 1"),
        );
        return None;
    }
    Some(credits)
}

pub(super) fn ground_truth(
    fields: &Fields<'_>,
    vocabulary: &Vocabulary,
    notes: &mut Notes,
) -> Option<GroundTruth> {
    let node = fields.need(
        "ground_truth",
        "primary_category and secondary_categories",
        notes,
    )?;
    let truth = Fields::of(node, "ground_truth", notes)?;
    truth.known(&["primary_category", "secondary_categories"], notes);
    let primary = truth
        .need("primary_category", "a category of the vocabulary", notes)
        .and_then(|node| category(node, "ground_truth.primary_category", vocabulary, notes));
    let mut secondary: Vec<CategoryId> = Vec::new();
    let mut complete = true;
    if let Some(node) = truth.get("secondary_categories") {
        let path = "ground_truth.secondary_categories";
        for (index, item) in items(node, path, notes).iter().enumerate() {
            let path = format!("{path}[{index}]");
            let Some(id) = category(item, &path, vocabulary, notes) else {
                complete = false;
                continue;
            };
            if primary.as_ref() == Some(&id) {
                notes.problem(item.at, &path, format!("`{id}` is the primary already"));
            } else if secondary.contains(&id) {
                notes.problem(item.at, &path, format!("`{id}` stands twice"));
            }
            secondary.push(id);
        }
    }
    complete.then_some(())?;
    Some(GroundTruth {
        primary_category: primary?,
        secondary_categories: secondary,
    })
}

fn category(
    node: &Node,
    path: &str,
    vocabulary: &Vocabulary,
    notes: &mut Notes,
) -> Option<CategoryId> {
    let id = text(node, path, notes)?;
    if id == FRAMEWORK_ERROR {
        let message =
            format!("`{FRAMEWORK_ERROR}` is reserved for our own failures and is never a truth");
        notes.problem(node.at, path, message);
        return None;
    }
    let known = vocabulary
        .categories
        .iter()
        .map(|category| category.id.as_str());
    if known.clone().any(|known| known == id) {
        return Some(CategoryId::new(id));
    }
    let guess = did_you_mean(&id, known);
    let message = format!(
        "unknown category `{}`{guess}, expected one of the vocabulary (`breakage vocab list`)",
        excerpt(&id)
    );
    notes.problem(node.at, path, message);
    None
}

pub(super) fn mechanism(
    fields: &Fields<'_>,
    vocabulary: &Vocabulary,
    truth: Option<&GroundTruth>,
    notes: &mut Notes,
) -> Option<MechanismId> {
    let node = fields.get("mechanism")?;
    let id = text(node, "mechanism", notes)?;
    let Some(mechanism) = vocabulary
        .mechanisms
        .iter()
        .find(|mechanism| mechanism.id.as_str() == id)
    else {
        let guess = did_you_mean(
            &id,
            vocabulary
                .mechanisms
                .iter()
                .map(|mechanism| mechanism.id.as_str()),
        );
        let message = format!(
            "unknown mechanism `{}`{guess}, expected one of the closed list (`breakage vocab list --mechanisms`)",
            excerpt(&id)
        );
        notes.problem(node.at, "mechanism", message);
        return None;
    };
    if let Some(truth) = truth
        && !mechanism.categories.contains(&truth.primary_category)
    {
        let message = format!(
            "a fault of `{id}` cannot truthfully be `{}`",
            truth.primary_category
        );
        notes.problem(node.at, "mechanism", message);
    }
    Some(mechanism.id.clone())
}

pub(super) fn fixture(
    fields: &Fields<'_>,
    namespace: Option<&str>,
    notes: &mut Notes,
) -> Option<Vec<FixtureId>> {
    let Some(node) = fields.get("fixture") else {
        let namespace = namespace?;
        let named = FIXTURES_OF_NAMESPACES
            .iter()
            .find(|(of, _)| *of == namespace);
        return Some(vec![FixtureId::new(
            named.map_or(namespace, |(_, fixture)| fixture),
        )]);
    };
    if !matches!(node.body, Body::List(_)) {
        return Some(vec![FixtureId::new(kebab(node, "fixture", notes)?)]);
    }
    let list = items(node, "fixture", notes);
    if list.is_empty() {
        notes.problem(node.at, "fixture", "is empty, expected the id of a fixture");
    }
    let ids: Vec<Option<String>> = list
        .iter()
        .enumerate()
        .map(|(index, item)| kebab(item, &format!("fixture[{index}]"), notes))
        .collect();
    ids.into_iter().map(|id| id.map(FixtureId::new)).collect()
}
