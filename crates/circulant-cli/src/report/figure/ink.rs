//! The colours of all figures, by role. A shape carries a class, not a colour: the style sheet gives
//! the class one colour on white and another on black, so one drawing serves both.
//!
//! The series colours are those of Okabe and Ito (safe for the three kinds of colour blindness), made
//! lighter for the dark scheme. Numbers of series beyond the palette repeat it with other dashes.

/// What a shape stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ink {
    /// Titles and labels that must be read.
    Text,
    /// Tick labels, axis names, notes.
    Muted,
    /// The axis line and its ticks.
    Axis,
    /// Lines behind the data.
    Grid,
    /// The background, to cut gaps between shapes.
    Ground,
    /// The n-th series.
    Series(usize),
}

/// (light, dark), in the order of `Ink::code`.
const COLOURS: [(&str, &str); 5 + SERIES.len()] = [
    ("#1b1f24", "#e6e9ee"),
    ("#57606a", "#a3adb9"),
    ("#8c959f", "#6b7683"),
    ("#e1e5ea", "#2b323b"),
    ("#ffffff", "#14181d"),
    SERIES[0],
    SERIES[1],
    SERIES[2],
    SERIES[3],
    SERIES[4],
    SERIES[5],
    SERIES[6],
];
/// Blue, vermillion, green, purple, amber, sky, grey.
pub const SERIES: [(&str, &str); 7] = [
    ("#0072b2", "#4fa8e0"),
    ("#d55e00", "#f28a46"),
    ("#009e73", "#35c49b"),
    ("#b8589a", "#dd92c2"),
    ("#c98a00", "#ecb93f"),
    ("#3a9fdc", "#9bd3f7"),
    ("#6b7280", "#b3bac4"),
];
const DASHES: [&str; 3] = ["none", "6 4", "2 3"];

impl Ink {
    /// The number in its classes.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Text => 0,
            Self::Muted => 1,
            Self::Axis => 2,
            Self::Grid => 3,
            Self::Ground => 4,
            Self::Series(index) => 5 + (index % SERIES.len()) as u8,
        }
    }

    /// The dash pattern that tells series of the same colour apart.
    pub(super) fn dash(self) -> u8 {
        match self {
            Self::Series(index) => ((index / SERIES.len()) % DASHES.len()) as u8,
            _ => 0,
        }
    }
}

/// The style sheet of the figures: everything under `svg.plot`.
pub fn figure_css() -> String {
    let mut css = String::from(
        "svg.plot{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,sans-serif;\
         font-variant-numeric:tabular-nums}\n\
         svg.plot path{stroke-linejoin:round;stroke-linecap:round}\n\
         svg.plot .b{font-weight:600}\n\
         svg.plot .o{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}\n\
         svg.plot .e{shape-rendering:crispEdges}\n",
    );
    for (index, dash) in DASHES.iter().enumerate().skip(1) {
        css.push_str(&format!(
            "svg.plot .d{index}{{stroke-dasharray:{dash};stroke-linecap:butt}}\n"
        ));
    }
    css.push_str(&scheme(|(light, _)| light));
    // Only on a screen: paper is white.
    css.push_str("@media screen and (prefers-color-scheme:dark){\n");
    css.push_str(&scheme(|(_, dark)| dark));
    css.push_str("}\n");
    css
}

fn scheme(pick: impl Fn((&'static str, &'static str)) -> &'static str) -> String {
    let mut css = String::new();
    for (code, pair) in COLOURS.iter().enumerate() {
        let colour = pick(*pair);
        css.push_str(&format!(
            "svg.plot .f{code}{{fill:{colour}}}svg.plot .k{code}{{stroke:{colour}}}\n"
        ));
    }
    let ground = pick(COLOURS[4]);
    css.push_str(&format!("svg.plot .o{{stroke:{ground}}}\n"));
    css
}
