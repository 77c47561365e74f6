//! Plans to start from, compiled in from `experiments/`. A test loads each of them.

/// A plan file that teaches by its comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template {
    pub name: &'static str,
    /// A line for the list.
    pub about: &'static str,
    pub text: &'static str,
}

macro_rules! template {
    ($name:literal, $about:literal) => {
        Template {
            name: $name,
            about: $about,
            text: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/experiments/",
                $name,
                ".yaml"
            )),
        }
    };
}

/// Every template, the plainest first.
pub const TEMPLATES: [Template; 5] = [
    template!(
        "falsification",
        "3 scenarios, retrieval on against off, 20 blocks: 120 runs"
    ),
    template!(
        "density-sweep",
        "3 scenarios, 5, 15 and all past incidents against none, 20 blocks: 240 runs"
    ),
    template!(
        "density-sweep-published",
        "the sweep as published, which varies nothing: ends without a verdict"
    ),
    template!(
        "n40-rerun",
        "2 scenarios, retrieval on against off, 40 blocks: 160 runs"
    ),
    template!(
        "aa",
        "the same agent against itself: what the instrument finds where nothing is"
    ),
];

/// A template by name.
pub fn template(name: &str) -> Option<Template> {
    TEMPLATES.into_iter().find(|template| template.name == name)
}
