//! What is compiled in loads, and a workspace overrides it.

use super::*;
use crate::scenario::model::{FRAMEWORK_ERROR, Status, Tier};

fn library() -> Library {
    Library::open(None).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn everything_compiled_in_loads_without_a_warning() {
    let library = library();
    let broken: Vec<String> = library.broken().map(ToString::to_string).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert_eq!(library.scenarios().count(), 23);
    assert_eq!(
        library.warnings().count(),
        0,
        "{:?}",
        library.warnings().next()
    );
    let rubrics: Vec<&str> = library.rubrics().map(|rubric| rubric.id.as_str()).collect();
    assert_eq!(rubrics, ["article", "observed", "v0.1"]);
    assert_eq!(library.vocabulary().categories.len(), 24);
    assert!(library.overrides().is_empty());
}

#[test]
fn the_library_has_ten_anchors_of_which_one_is_on_watch() {
    let library = library();
    let anchors: Vec<&Scenario> = library
        .scenarios()
        .filter(|scenario| scenario.tier == Tier::Anchor)
        .collect();
    let active = anchors
        .iter()
        .filter(|scenario| scenario.status == Status::Active)
        .count();
    assert_eq!((anchors.len(), active), (10, 9));
}

#[test]
fn an_unknown_id_is_answered_with_near_ones() {
    let library = library();
    let error = library
        .scenario("secret-mising-key-advocate")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("did you mean secret-missing-key-advocate"),
        "{error}"
    );
    assert!(
        library
            .rubric("v0.2")
            .unwrap_err()
            .to_string()
            .contains("v0.1")
    );
}

#[test]
fn a_workspace_overrides_by_id_and_an_unedited_copy_is_no_override() {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in builtin::files() {
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    assert!(
        Library::open(Some(folder.path()))
            .unwrap()
            .overrides()
            .is_empty()
    );

    let file = folder
        .path()
        .join("scenarios/anchor/replicas-zero-advocate.yaml");
    let edited = fs::read_to_string(&file)
        .unwrap()
        .replace("time_budget_s: 600", "time_budget_s: 300");
    fs::write(&file, edited).unwrap();
    let library = Library::open(Some(folder.path())).unwrap();
    let scenario = library.scenario("replicas-zero-advocate").unwrap();
    assert!(scenario.is_override);
    assert_eq!(scenario.scorer.time_budget_s, 300);
    assert_eq!(library.overrides(), std::slice::from_ref(&file));

    fs::write(&file, "id: replicas-zero-advocate\n").unwrap();
    let library = Library::open(Some(folder.path())).unwrap();
    let error = library
        .scenario("replicas-zero-advocate")
        .unwrap_err()
        .to_string();
    assert!(error.contains("missing"), "{error}");
    assert_eq!(library.scenarios().count(), 22);
}

#[test]
fn a_path_loads_a_file_and_a_missing_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.yaml");
    let (_, text) = builtin::SCENARIOS[0];
    fs::write(&file, text).unwrap();
    let library = library();
    let loaded = library.loaded(file.to_str().unwrap()).unwrap();
    assert!(loaded.scenario.is_override);
    assert_eq!(
        loaded.warnings.len(),
        1,
        "the id differs from the file's name"
    );
    assert!(
        library
            .scenario("no/such.yaml")
            .unwrap_err()
            .to_string()
            .contains("cannot read no/such.yaml")
    );
}

#[test]
fn every_scenario_has_what_qualification_needs() {
    let library = library();
    for scenario in library.scenarios() {
        let id = scenario.id.as_str();
        assert!(scenario.mechanism.is_some(), "{id}");
        assert_ne!(
            scenario.ground_truth.primary_category.as_str(),
            FRAMEWORK_ERROR
        );
        if !id.ends_with("-advocate") && !id.starts_with("oom-") {
            assert!(
                scenario.needs.iter().any(|need| need == "flagd"),
                "{id}: {:?}",
                scenario.needs
            );
            continue;
        }
        assert!(scenario.needs.is_empty(), "{id}: {:?}", scenario.needs);
        assert!(!scenario.reference_repair.is_empty(), "{id}");
        assert!(!scenario.protected.is_empty(), "{id}");
        assert_eq!(scenario.scorer.scope, ["prod-advocate"], "{id}");
        assert_eq!(scenario.scorer.time_budget_s, 600, "{id}");
    }
}

#[test]
fn an_id_that_stands_in_two_files_of_a_workspace_is_refused_with_both() {
    let workspace = tempfile::tempdir().unwrap();
    let folder = workspace.path().join("scenarios");
    fs::create_dir(&folder).unwrap();
    let (_, text) = builtin::SCENARIOS[0];
    for name in ["a.yaml", "b.yaml"] {
        fs::write(
            folder.join(name),
            text.replace("difficulty: ", "difficulty:  "),
        )
        .unwrap();
    }
    let error = Library::open(Some(workspace.path()))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a.yaml") && error.contains("b.yaml"),
        "{error}"
    );
}

#[test]
fn the_published_faults_are_found_by_id_but_are_no_part_of_the_library() {
    let library = library();
    assert_eq!(library.published().count(), 14);
    for scenario in library.published() {
        assert!(scenario.id.as_str().starts_with("published-"));
        assert_eq!(scenario.fixture, [crate::ids::FixtureId::new("published")]);
        assert!(!scenario.reference_repair.is_empty(), "{}", scenario.id);
        assert!(library.scenario(scenario.id.as_str()).is_ok());
        assert!(library.scenarios().all(|other| other.id != scenario.id));
    }
}
