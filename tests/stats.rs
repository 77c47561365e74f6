//! The statistics core against numbers that were computed by other means, against a second implementation of each special
//! function, and against properties that every test must have.

#[path = "stats/commands.rs"]
mod commands;
#[path = "stats/edge_cases.rs"]
mod edge_cases;
#[path = "stats/golden.rs"]
mod golden;
#[path = "stats/properties.rs"]
mod properties;
#[path = "stats/published.rs"]
mod published;
#[path = "stats/special_functions.rs"]
mod special_functions;
