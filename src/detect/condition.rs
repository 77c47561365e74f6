//! A condition of a scenario: an expression and how long it must hold.

use crate::detect::expression::Expression;

#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// As written in the file.
    pub text: String,
    pub expression: Expression,
    /// How long it must hold without a break, together with the others. 0 when not given.
    pub sustained_for_s: u32,
    pub skip_if_unevaluable: bool,
    /// `0 == 0` counts as true only with this (our field `allow_zero`).
    pub allow_zero: bool,
}

impl Condition {
    /// A condition with nothing but its expression.
    pub fn plain(expression: Expression) -> Condition {
        Condition {
            text: expression.text.clone(),
            expression,
            sustained_for_s: 0,
            skip_if_unevaluable: false,
            allow_zero: false,
        }
    }
}
