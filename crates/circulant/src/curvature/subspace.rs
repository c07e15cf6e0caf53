//! Which parameters the curvature is taken over: a block of the Hessian or of the Gauss-Newton matrix.
//!
//! A pattern is a path in which `*` stands for one name. It selects a parameter if it matches the path or the beginning
//! of it: `blocks.*.attention` and `blocks.*.attention.*` select all that is in the attention layers, `head.bias` one
//! parameter.

use std::fmt;
use std::sync::Arc;

use super::CurvatureError;

/// A choice among the trainable parameters of a module.
///
/// ```
/// use circulant::curvature::Subspace;
///
/// let everything = Subspace::all();
/// let first_block = Subspace::named(["blocks.0"]);
/// let weights = Subspace::matching(|path| path.ends_with(".weight"));
/// # let _ = (everything, first_block, weights);
/// ```
#[derive(Clone)]
pub struct Subspace(Choice);

#[derive(Clone)]
enum Choice {
    All,
    Named(Vec<String>),
    Matching(Arc<dyn Fn(&str) -> bool + Send + Sync>),
}

impl Subspace {
    /// All parameters.
    pub fn all() -> Self {
        Self(Choice::All)
    }

    /// The parameters that match one of the patterns. A pattern that matches none is an error.
    pub fn named<S: Into<String>>(patterns: impl IntoIterator<Item = S>) -> Self {
        Self(Choice::Named(
            patterns.into_iter().map(Into::into).collect(),
        ))
    }

    /// The parameters whose paths the predicate accepts.
    pub fn matching(predicate: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Choice::Matching(Arc::new(predicate)))
    }

    /// The projections to queries, keys, values and output of every block of a
    /// [`VisionTransformer`](crate::models::VisionTransformer), with their biases.
    pub fn attention() -> Self {
        let names = ["query", "key", "value", "output"];
        Self::named(names.map(|name| format!("blocks.*.attention.{name}")))
    }

    /// Whether each of the paths belongs to the subspace.
    pub(super) fn select(&self, paths: &[String]) -> Result<Vec<bool>, CurvatureError> {
        let selected: Vec<bool> = match &self.0 {
            Choice::All => vec![true; paths.len()],
            Choice::Matching(predicate) => paths.iter().map(|path| predicate(path)).collect(),
            Choice::Named(patterns) => {
                let unknown = patterns
                    .iter()
                    .find(|pattern| !paths.iter().any(|path| matches(pattern, path)));
                if let Some(pattern) = unknown {
                    return Err(CurvatureError::UnknownParameter {
                        pattern: pattern.clone(),
                        known: paths.to_vec(),
                    });
                }
                let any = |path: &String| patterns.iter().any(|pattern| matches(pattern, path));
                paths.iter().map(any).collect()
            }
        };
        if selected.contains(&true) {
            Ok(selected)
        } else {
            Err(CurvatureError::EmptySubspace {
                known: paths.to_vec(),
            })
        }
    }
}

impl fmt::Debug for Subspace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Choice::All => write!(formatter, "Subspace::all()"),
            Choice::Named(patterns) => write!(formatter, "Subspace::named({patterns:?})"),
            Choice::Matching(_) => write!(formatter, "Subspace::matching(..)"),
        }
    }
}

/// Whether the pattern is the path, or its beginning up to a dot.
fn matches(pattern: &str, path: &str) -> bool {
    let mut names = path.split('.');
    pattern.split('.').all(|wanted| {
        names
            .next()
            .is_some_and(|name| wanted == "*" || wanted == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Vec<String> {
        let paths = [
            "blocks.0.attention.query.weight",
            "blocks.0.attention_norm.gamma",
            "blocks.1.attention.output.bias",
            "head.weight",
        ];
        paths.map(str::to_owned).to_vec()
    }

    #[test]
    fn patterns_match_whole_names_and_beginnings() {
        for pattern in ["blocks.*.attention", "blocks.*.attention.*"] {
            let selected = Subspace::named([pattern]).select(&paths());
            assert_eq!(selected, Ok(vec![true, false, true, false]), "{pattern}");
        }
        let selected = Subspace::named(["blocks.1", "head.weight"]).select(&paths());
        assert_eq!(selected, Ok(vec![false, false, true, true]));
        let selected = Subspace::matching(|path| path.ends_with("weight")).select(&paths());
        assert_eq!(selected, Ok(vec![true, false, false, true]));
        assert_eq!(Subspace::all().select(&paths()), Ok(vec![true; 4]));
    }

    #[test]
    fn a_pattern_without_a_parameter_is_an_error_with_the_known_names() {
        // One of the two matches: the other one is still a mistake.
        let error = Subspace::named(["head", "blocks.*.atention"])
            .select(&paths())
            .unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("atention") && message.contains("head.weight"),
            "{message}"
        );
        let error = Subspace::matching(|_| false).select(&paths()).unwrap_err();
        assert!(matches!(error, CurvatureError::EmptySubspace { .. }));
        assert!(Subspace::all().select(&[]).is_err());
    }
}
