//! Small letters and digits of 5 x 9 pixels, for the labels of a contact sheet.

/// The pixels of a letter with the space after it.
pub(super) const ADVANCE: usize = 6;
/// Two rows above small letters, five of their height, two below.
pub(super) const HEIGHT: usize = 9;

/// Letters, and their rows side by side.
#[rustfmt::skip]
const LETTERS: [(&str, [&str; HEIGHT]); 3] = [
    (
        "abcdefghijklm",
        [
            "..... #.... ..... ....# ..... ..##. ..... #.... ..#.. ...#. #.... .##.. .....",
            "..... #.... ..... ....# ..... .#... ..... #.... ..... ..... #.... ..#.. .....",
            ".###. ####. .###. .#### .###. ###.. .#### ####. .##.. ..##. #..#. ..#.. ##.#.",
            "....# #...# #...# #...# #...# .#... #...# #...# ..#.. ...#. #.#.. ..#.. #.#.#",
            ".#### #...# #.... #...# ##### .#... #...# #...# ..#.. ...#. ##... ..#.. #.#.#",
            "#...# #...# #...# #...# #.... .#... #...# #...# ..#.. ...#. #.#.. ..#.. #.#.#",
            ".#### ####. .###. .#### .###. .#... .#### #...# .###. ...#. #..#. .###. #.#.#",
            "..... ..... ..... ..... ..... ..... ....# ..... ..... #..#. ..... ..... .....",
            "..... ..... ..... ..... ..... ..... .###. ..... ..... .##.. ..... ..... .....",
        ],
    ),
    (
        "nopqrstuvwxyz",
        [
            "..... ..... ..... ..... ..... ..... .#... ..... ..... ..... ..... ..... .....",
            "..... ..... ..... ..... ..... ..... .#... ..... ..... ..... ..... ..... .....",
            "####. .###. ####. .#### #.##. .#### ####. #...# #...# #...# #...# #...# #####",
            "#...# #...# #...# #...# ##..# #.... .#... #...# #...# #.#.# .#.#. #...# ...#.",
            "#...# #...# #...# #...# #.... .###. .#... #...# #...# #.#.# ..#.. #...# ..#..",
            "#...# #...# #...# #...# #.... ....# .#..# #...# .#.#. #.#.# .#.#. #...# .#...",
            "#...# .###. ####. .#### #.... ####. ..##. .#### ..#.. .#.#. #...# .#### #####",
            "..... ..... #.... ....# ..... ..... ..... ..... ..... ..... ..... ....# .....",
            "..... ..... #.... ....# ..... ..... ..... ..... ..... ..... ..... .###. .....",
        ],
    ),
    (
        "0123456789",
        [
            ".###. ..#.. .###. .###. ...#. ##### .###. ##### .###. .###.",
            "#...# .##.. #...# #...# ..##. #.... #.... ....# #...# #...#",
            "#..## ..#.. ....# ....# .#.#. ####. #.... ...#. #...# #...#",
            "#.#.# ..#.. ...#. ..##. #..#. ....# ####. ...#. .###. .####",
            "##..# ..#.. ..#.. ....# ##### ....# #...# ..#.. #...# ....#",
            "#...# ..#.. .#... #...# ...#. #...# #...# ..#.. #...# ....#",
            ".###. .###. ##### .###. ...#. .###. .###. ..#.. .###. .###.",
            "..... ..... ..... ..... ..... ..... ..... ..... ..... .....",
            "..... ..... ..... ..... ..... ..... ..... ..... ..... .....",
        ],
    ),
];

/// Calls `dot` with the column and row of every dark pixel of a text. Other characters are blank.
pub(super) fn draw(text: &str, mut dot: impl FnMut(usize, usize)) {
    for (place, letter) in text.chars().enumerate() {
        let found = LETTERS
            .iter()
            .find_map(|(letters, rows)| Some((letters.find(letter)?, rows)));
        let Some((index, rows)) = found else { continue };
        for (row, line) in rows.iter().enumerate() {
            let cell = &line.as_bytes()[index * ADVANCE..][..ADVANCE - 1];
            for (column, _) in cell.iter().enumerate().filter(|(_, x)| **x == b'#') {
                dot(place * ADVANCE + column, row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_drawn_in_their_cells() {
        let mut dots = Vec::new();
        draw("a1 z", |column, row| dots.push((column, row)));
        for (cell, is_blank) in [(0, false), (1, false), (2, true), (3, false)] {
            let inside = dots.iter().filter(|dot| dot.0 / ADVANCE == cell).count();
            assert_eq!(inside == 0, is_blank, "{cell}");
        }
        for (letters, rows) in LETTERS {
            assert!(
                rows.iter()
                    .all(|row| row.len() + 1 == letters.len() * ADVANCE)
            );
        }
    }
}
