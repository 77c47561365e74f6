//! Reviews: who a client is and what it may do. Nothing here authenticates, so everybody is the administrator.

use serde_json::{Value, json};

/// A type that is only ever posted, and answered with its status filled in.
pub struct Review {
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub kind: &'static str,
    pub namespaced: bool,
}

const fn review(
    group: &'static str,
    plural: &'static str,
    singular: &'static str,
    kind: &'static str,
    namespaced: bool,
) -> Review {
    Review {
        group,
        version: "v1",
        plural,
        singular,
        kind,
        namespaced,
    }
}

const ACCESS: &str = "authorization.k8s.io";

pub const REVIEWS: &[Review] = &[
    review(
        "authentication.k8s.io",
        "selfsubjectreviews",
        "selfsubjectreview",
        "SelfSubjectReview",
        false,
    ),
    review(
        ACCESS,
        "localsubjectaccessreviews",
        "localsubjectaccessreview",
        "LocalSubjectAccessReview",
        true,
    ),
    review(
        ACCESS,
        "selfsubjectaccessreviews",
        "selfsubjectaccessreview",
        "SelfSubjectAccessReview",
        false,
    ),
    review(
        ACCESS,
        "selfsubjectrulesreviews",
        "selfsubjectrulesreview",
        "SelfSubjectRulesReview",
        false,
    ),
    review(
        ACCESS,
        "subjectaccessreviews",
        "subjectaccessreview",
        "SubjectAccessReview",
        false,
    ),
];

/// The review that a path of decoded segments is about.
pub fn of_path(path: &[&str]) -> Option<&'static Review> {
    let (group, version, namespaced, plural) = match path {
        ["apis", group, version, plural] => (*group, *version, false, *plural),
        ["apis", group, version, "namespaces", _, plural] => (*group, *version, true, *plural),
        _ => return None,
    };
    REVIEWS.iter().find(|review| {
        review.group == group
            && review.version == version
            && review.plural == plural
            && review.namespaced == namespaced
    })
}

impl Review {
    /// What was posted, with the answer.
    pub fn answer(&self, mut posted: Value) -> Value {
        if !posted.is_object() {
            posted = json!({});
        }
        posted["kind"] = self.kind.into();
        posted["apiVersion"] = format!("{}/{}", self.group, self.version).into();
        if !posted["metadata"].is_object() {
            posted["metadata"] = json!({});
        }
        posted["status"] = match self.kind {
            "SelfSubjectReview" => json!({
                "userInfo": {
                    "username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"],
                },
            }),
            "SelfSubjectRulesReview" => json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            }),
            _ => json!({ "allowed": true }),
        };
        posted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_is_found_by_its_path_and_allows() {
        let path = ["apis", ACCESS, "v1", "selfsubjectaccessreviews"];
        let review = of_path(&path).unwrap();
        let answer = review.answer(json!({"spec": {"resourceAttributes": {"verb": "create"}}}));
        assert_eq!(answer["status"]["allowed"], true);
        assert_eq!(answer["spec"]["resourceAttributes"]["verb"], "create");
        assert!(of_path(&["apis", ACCESS, "v1", "localsubjectaccessreviews"]).is_none());
    }
}
