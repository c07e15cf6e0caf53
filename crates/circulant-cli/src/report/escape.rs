//! Text from data into HTML and SVG.

/// The text with everything replaced that means something to a parser, in content and in quoted
/// attributes alike. Control characters, which XML forbids even when escaped, become `U+FFFD`.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            _ if character.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    escaped
}

/// A name that is safe as an `id` and in a link: lower-case ASCII letters, digits and single dashes.
pub fn slug(text: &str) -> String {
    let mut slug = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        "part".to_owned()
    } else {
        slug.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_control_characters_lose_their_meaning() {
        assert_eq!(
            escape("<a href=\"x\" title='y'>&\u{0}\u{1b}\n"),
            "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;\u{fffd}\u{fffd}\n"
        );
        assert_eq!(escape("größer → ∞"), "größer → ∞");
    }

    #[test]
    fn slugs_are_safe_and_never_empty() {
        assert_eq!(slug("Entropy: ID & OOD"), "entropy-id-ood");
        assert_eq!(slug("\"><script>"), "script");
        assert_eq!(slug("∞"), "part");
    }
}
