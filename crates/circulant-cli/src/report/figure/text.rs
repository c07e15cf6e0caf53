//! How wide text will be. The browser's font is unknown here, so this is a guess from the widths of the
//! usual sans-serif fonts, on the generous side.

/// The width of the text in the units of `size`.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(character_width).sum::<f64>() * size
}

fn character_width(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '\'' | '.' | ',' | ':' | ';' | '|' | '!' | ' ' => 0.31,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' | 'I' => 0.41,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.93,
        '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.38,
        'A'..='Z' => 0.71,
        '\u{2e80}'.. => 1.05,
        _ => 0.61,
    }
}

/// The text, or as much of its beginning as fits, with an ellipsis.
pub(super) fn fit(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = text_width("…", size);
    for character in text.chars() {
        used += character_width(character) * size;
        if used > width {
            break;
        }
        short.push(character);
    }
    format!("{}…", short.trim_end())
}

/// The text broken into lines at spaces.
pub(super) fn wrap(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = if line.is_empty() {
            word.to_owned()
        } else {
            format!("{line} {word}")
        };
        if line.is_empty() || text_width(&longer, size) <= width {
            line = longer;
        } else {
            lines.push(fit(&line, size, width));
            line = word.to_owned();
        }
    }
    if !line.is_empty() {
        lines.push(fit(&line, size, width));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_and_broken_to_the_width() {
        assert_eq!(fit("short", 10.0, 100.0), "short");
        let cut = fit("a very long name of a model", 10.0, 60.0);
        assert!(
            cut.ends_with('…') && text_width(&cut, 10.0) <= 60.0,
            "{cut}"
        );
        let lines = wrap("one two three four five six seven", 10.0, 60.0);
        assert!(lines.len() > 2);
        assert!(lines.iter().all(|line| text_width(line, 10.0) <= 60.0));
    }
}
