//! Loading the vocabulary (categories and mechanisms) and rubrics.

use crate::ids::{CategoryId, MechanismId, MicroPoints, RubricId, is_kebab_case};
use crate::scenario::decode::{Fields, fraction, items, text, whole};
use crate::scenario::model::{Basis, Category, FRAMEWORK_ERROR, Mechanism, Rubric, Vocabulary};
use crate::scenario::near::did_you_mean;
use crate::scenario::problem::{Notes, Problems};
use crate::scenario::yaml::{self, Node, excerpt};

/// A longer list of secondaries is never a diagnosis.
const MAX_SECONDARIES: u32 = 24;

/// Loads both files of the vocabulary, each given as text and name.
///
/// # Errors
/// Every problem of the first file that has any.
pub fn vocabulary(
    categories_file: (&str, &str),
    mechanisms_file: (&str, &str),
) -> Result<Vocabulary, Problems> {
    let (version, categories) = categories(categories_file.0, categories_file.1)?;
    let mechanisms = mechanisms(mechanisms_file.0, mechanisms_file.1, &categories)?;
    Ok(Vocabulary {
        version,
        categories,
        mechanisms,
    })
}

/// Loads the file of root-cause categories: its version and its entries.
///
/// # Errors
/// Every problem of the file.
pub fn categories(text: &str, file: &str) -> Result<(String, Vec<Category>), Problems> {
    let mut notes = Notes::default();
    let decoded = yaml::parse(text, &mut notes).and_then(|root| {
        let fields = Fields::of(&root, "", &mut notes)?;
        fields.known(&["version", "categories"], &mut notes);
        let version = fields.need_text("version", "a version such as \"1\"", &mut notes);
        let list = fields.need("categories", "a list of categories", &mut notes)?;
        let entries = entries(list, "categories", &mut notes, category);
        check_ids(
            &fields,
            "categories",
            entries.iter().map(|entry| entry.id.as_str()),
            &mut notes,
        );
        if !entries
            .iter()
            .any(|entry| entry.id.as_str() == FRAMEWORK_ERROR)
        {
            notes.problem(
                list.at,
                "categories",
                format!("lacks `{FRAMEWORK_ERROR}`, which is reserved"),
            );
        }
        Some((version?, entries))
    });
    notes.finish(file, decoded).map(|(decoded, _)| decoded)
}

fn category(fields: &Fields<'_>, notes: &mut Notes) -> Option<Category> {
    fields.known(
        &["id", "description", "example_incidents", "example_symptoms"],
        notes,
    );
    let id = id(fields, notes);
    let description = fields.need_text("description", "what it is and what it is not", notes);
    let example_incidents = texts(fields, "example_incidents", notes);
    let example_symptoms = texts(fields, "example_symptoms", notes);
    Some(Category {
        id: CategoryId::new(id?),
        description: description?.trim().to_owned(),
        example_incidents,
        example_symptoms,
    })
}

/// Loads the closed list of mechanisms.
///
/// # Errors
/// Every problem of the file.
pub fn mechanisms(
    text: &str,
    file: &str,
    categories: &[Category],
) -> Result<Vec<Mechanism>, Problems> {
    let mut notes = Notes::default();
    let decoded = yaml::parse(text, &mut notes).and_then(|root| {
        let fields = Fields::of(&root, "", &mut notes)?;
        fields.known(&["version", "mechanisms"], &mut notes);
        fields.need_text("version", "a version such as \"1\"", &mut notes);
        let list = fields.need("mechanisms", "a list of mechanisms", &mut notes)?;
        let entries = entries(list, "mechanisms", &mut notes, |fields, notes| {
            mechanism(fields, categories, notes)
        });
        check_ids(
            &fields,
            "mechanisms",
            entries.iter().map(|entry| entry.id.as_str()),
            &mut notes,
        );
        Some(entries)
    });
    notes.finish(file, decoded).map(|(decoded, _)| decoded)
}

fn mechanism(fields: &Fields<'_>, known: &[Category], notes: &mut Notes) -> Option<Mechanism> {
    fields.known(&["id", "description", "categories"], notes);
    let id = id(fields, notes);
    let description = fields.need_text("description", "what goes on", notes);
    let node = fields.need(
        "categories",
        "the categories that such a fault may carry",
        notes,
    )?;
    let mut categories = Vec::new();
    for (index, item) in items(node, &fields.sub("categories"), notes)
        .iter()
        .enumerate()
    {
        let path = format!("{}[{index}]", fields.sub("categories"));
        let Some(word) = text(item, &path, notes) else {
            continue;
        };
        let ids = known.iter().map(|category| category.id.as_str());
        if ids.clone().any(|id| id == word) && word != FRAMEWORK_ERROR {
            categories.push(CategoryId::new(word));
        } else {
            let guess = did_you_mean(&word, ids);
            notes.problem(
                item.at,
                &path,
                format!("unknown category `{}`{guess}", excerpt(&word)),
            );
        }
    }
    Some(Mechanism {
        id: MechanismId::new(id?),
        description: description?.trim().to_owned(),
        categories,
    })
}

fn entries<T>(
    node: &Node,
    path: &str,
    notes: &mut Notes,
    decode: impl Fn(&Fields<'_>, &mut Notes) -> Option<T>,
) -> Vec<T> {
    let list = items(node, path, notes);
    let decoded = list.iter().enumerate().filter_map(|(index, item)| {
        let fields = Fields::of(item, &format!("{path}[{index}]"), notes)?;
        decode(&fields, notes)
    });
    decoded.collect()
}

fn check_ids<'a>(
    fields: &Fields<'_>,
    key: &str,
    ids: impl Iterator<Item = &'a str>,
    notes: &mut Notes,
) {
    let at = fields.get(key).map_or(fields.at, |node| node.at);
    let mut seen: Vec<&str> = Vec::new();
    for id in ids {
        if seen.contains(&id) {
            notes.problem(at, key, format!("the id `{id}` stands twice"));
        }
        seen.push(id);
    }
    if seen.is_empty() && !notes.has_problems() {
        notes.problem(at, key, "is empty");
    }
}

fn id(fields: &Fields<'_>, notes: &mut Notes) -> Option<String> {
    let id = fields.need_text("id", "a kebab-case id", notes)?;
    if !is_kebab_case(&id) {
        let at = fields.get("id").map_or(fields.at, |node| node.at);
        notes.problem(
            at,
            &fields.sub("id"),
            format!("`{}` is not kebab-case", excerpt(&id)),
        );
    }
    Some(id)
}

fn texts(fields: &Fields<'_>, key: &str, notes: &mut Notes) -> Vec<String> {
    let Some(node) = fields.get(key) else {
        return Vec::new();
    };
    let path = fields.sub(key);
    let list = items(node, &path, notes);
    let texts = list
        .iter()
        .enumerate()
        .filter_map(|(index, item)| text(item, &format!("{path}[{index}]"), notes));
    texts.collect()
}

/// Loads a rubric.
///
/// # Errors
/// Every problem of the file.
pub fn rubric(text: &str, file: &str) -> Result<Rubric, Problems> {
    let mut notes = Notes::default();
    let decoded = yaml::parse(text, &mut notes).and_then(|root| {
        let fields = Fields::of(&root, "", &mut notes)?;
        decode_rubric(&fields, &mut notes)
    });
    notes.finish(file, decoded).map(|(rubric, _)| rubric)
}

fn decode_rubric(fields: &Fields<'_>, notes: &mut Notes) -> Option<Rubric> {
    const FRACTIONS: [&str; 4] = [
        "exact_primary",
        "near_miss",
        "secondary_bonus",
        "secondary_bonus_max",
    ];
    let others = [
        "id",
        "description",
        "max_secondaries",
        "default_regressions",
        "basis",
    ];
    let known: Vec<&str> = FRACTIONS.into_iter().chain(others).collect();
    fields.known(&known, notes);
    let id = fields.need_text("id", "the rubric's id, such as v0.1", notes);
    let description = fields.need_text("description", "what it rewards", notes);
    let mut fractions = FRACTIONS.map(|key| {
        let node = fields.need(key, "a fraction of the axis' weight from 0 to 1", notes)?;
        fraction(node, key, notes)
    });
    let max_secondaries = fields
        .need("max_secondaries", "a whole number", notes)
        .and_then(|node| whole(node, "max_secondaries", 0..=MAX_SECONDARIES, notes));
    fields.need("default_regressions", "true or false", notes);
    let default_regressions = fields.flag("default_regressions", notes);
    let basis = basis(fields, notes);
    let [
        exact_primary,
        near_miss,
        secondary_bonus,
        secondary_bonus_max,
    ]: [Option<MicroPoints>; 4] = fractions.each_mut().map(Option::take);
    Some(Rubric {
        id: RubricId::new(id?),
        description: description?.trim().to_owned(),
        exact_primary: exact_primary?,
        near_miss: near_miss?,
        secondary_bonus: secondary_bonus?,
        secondary_bonus_max: secondary_bonus_max?,
        max_secondaries: usize::try_from(max_secondaries?).ok()?,
        default_regressions,
        basis,
    })
}

/// `published` where a rubric says nothing: rubrics written before there was a choice mean that.
fn basis(fields: &Fields<'_>, notes: &mut Notes) -> Basis {
    const WORDS: &[(&str, Basis)] = &[
        ("published", Basis::Published),
        ("observed", Basis::Observed),
    ];
    match fields.get("basis") {
        Some(_) => fields.need_word("basis", WORDS, notes).unwrap_or_default(),
        None => Basis::Published,
    }
}
