//! The grammar of condition expressions.

/// A parsed condition expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// As written.
    pub text: String,
}
