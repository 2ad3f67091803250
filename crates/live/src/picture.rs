//! A grid of characters, which a terminal shows as a whole.

use loadline_report::clean;
use unicode_width::UnicodeWidthChar as _;

/// How characters look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Ink {
    #[default]
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

impl Ink {
    /// Parameter of the escape sequence (SGR).
    fn code(self) -> u8 {
        match self {
            Ink::Plain => 0,
            Ink::Bold => 1,
            Ink::Dim => 2,
            Ink::Red => 31,
            Ink::Green => 32,
            Ink::Yellow => 33,
            Ink::Blue => 34,
            Ink::Magenta => 35,
            Ink::Cyan => 36,
        }
    }
}

/// A part of a picture, in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

impl Area {
    /// The upper part of this height, and the rest.
    pub(crate) fn rows(self, height: usize) -> (Area, Area) {
        let height = height.min(self.height);
        (Area { height, ..self }, Area { y: self.y + height, height: self.height - height, ..self })
    }

    /// The left part of this width, and the rest.
    pub(crate) fn columns(self, width: usize) -> (Area, Area) {
        let width = width.min(self.width);
        (Area { width, ..self }, Area { x: self.x + width, width: self.width - width, ..self })
    }
}

/// A grid of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    width: usize,
    /// Row by row. Behind a wide character there is [`BEHIND`].
    cells: Vec<(char, Ink)>,
}

/// The second cell of a wide character.
const BEHIND: char = '\0';

impl Picture {
    /// An empty one.
    #[must_use]
    pub fn new(width: usize, height: usize) -> Picture {
        Picture { width, cells: vec![(' ', Ink::Plain); width * height] }
    }

    pub(crate) fn area(&self) -> Area {
        Area { width: self.width, height: self.cells.len().checked_div(self.width).unwrap_or(0), ..Area::default() }
    }

    /// Writes `text` on row `row` of `area`, from `from` cells on. What does not fit is cut off; control characters become blanks.
    /// Returns where the text ends.
    pub(crate) fn put(&mut self, area: Area, row: usize, from: usize, text: &str, ink: Ink) -> usize {
        let mut at = from;
        for c in clean(text).chars() {
            let width = c.width().unwrap_or(0);
            if row >= area.height || at + width > area.width {
                break;
            }
            let first = (area.y + row) * self.width + area.x + at;
            for (cell, c) in self.cells.iter_mut().skip(first).take(width).zip([c, BEHIND]) {
                *cell = (c, ink);
            }
            at += width;
        }
        at
    }

    /// Frames `area` with a title, and returns what is inside.
    pub(crate) fn frame(&mut self, area: Area, title: &str) -> Area {
        let Some((across, inside)) = area.width.checked_sub(2).zip(area.height.checked_sub(2)) else {
            return Area::default();
        };
        let line = "─".repeat(across);
        self.put(area, 0, 0, &format!("┌{line}┐"), Ink::Plain);
        self.put(Area { x: area.x + 1, width: across, ..area }, 0, 0, title, Ink::Plain);
        for row in 1..=inside {
            self.put(area, row, 0, "│", Ink::Plain);
            self.put(area, row, across + 1, "│", Ink::Plain);
        }
        self.put(area, area.height - 1, 0, &format!("└{line}┘"), Ink::Plain);
        Area { x: area.x + 1, y: area.y + 1, width: across, height: inside }
    }

    /// Draws lines through points from 0 to 1, from the lower left corner of `area` (others are left out), in dots of a quarter of a character's height and
    /// half of its width.
    pub(crate) fn lines(&mut self, area: Area, lines: &[Vec<(f64, f64)>], ink: Ink) {
        let Some((right, top)) = (area.width * 2).checked_sub(1).zip((area.height * 4).checked_sub(1)) else { return };
        let dot = |(x, y): &(f64, f64)| ((x * right as f64).round(), ((1.0 - y) * top as f64).round());
        let mut dots = vec![0u8; area.width * area.height];
        for line in lines {
            let inside = line.iter().filter(|(x, y)| (0.0..=1.0).contains(x) && (0.0..=1.0).contains(y));
            let points: Vec<(f64, f64)> = inside.map(dot).collect();
            for (from, to) in points.iter().zip(points.iter().skip(1).chain(points.last())) {
                let (across, down) = (to.0 - from.0, to.1 - from.1);
                let steps = across.abs().max(down.abs()).max(1.0);
                for step in 0..=steps as usize {
                    let share = step as f64 / steps;
                    let (x, y) = ((from.0 + across * share).round() as usize, (from.1 + down * share).round() as usize);
                    if x <= right
                        && y <= top
                        && let Some(cell) = dots.get_mut(y / 4 * area.width + x / 2)
                    {
                        *cell |= BRAILLE[y % 4][x % 2];
                    }
                }
            }
        }
        for (at, dots) in dots.iter().enumerate().filter(|(_, dots)| **dots != 0) {
            let c = char::from_u32(0x2800 + u32::from(*dots)).unwrap_or(' ');
            self.put(area, at / area.width, at % area.width, &c.to_string(), ink);
        }
    }

    /// The rows as text.
    pub fn rows(&self) -> impl Iterator<Item = String> {
        self.cells.chunks(self.width.max(1)).map(|row| row.iter().map(|c| c.0).filter(|c| *c != BEHIND).collect())
    }

    /// What makes a terminal show it, from its upper left corner on.
    #[must_use]
    pub fn escaped(&self, colours: bool) -> String {
        let mut out = "\x1b[H".to_owned();
        let mut before = Ink::Plain;
        for (at, row) in self.cells.chunks(self.width.max(1)).enumerate() {
            out.push_str(if at == 0 { "" } else { "\r\n" });
            for (c, ink) in row.iter().copied().filter(|(c, _)| *c != BEHIND) {
                let ink = if colours || matches!(ink, Ink::Bold | Ink::Dim) { ink } else { Ink::Plain };
                if ink != before {
                    out.push_str(&format!("\x1b[0;{}m", ink.code()));
                    before = ink;
                }
                out.push(c);
            }
        }
        out + "\x1b[0m"
    }
}

/// Bits of the dots of a Braille character (U+2800), by row and column.
const BRAILLE: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_cells_and_nothing_leaves_its_area() {
        let mut picture = Picture::new(8, 3);
        let inside = picture.frame(picture.area(), " 時間 and more");
        let end = picture.put(inside, 0, 1, "時間x\u{1b}", Ink::Red);
        assert_eq!(end, 6, "the rest does not fit");
        picture.put(inside, 1, 0, "below", Ink::Plain);
        assert_eq!(picture.rows().collect::<Vec<_>>(), ["┌ 時間 ┐", "│ 時間x│", "└──────┘"]);
        assert!(picture.escaped(true).starts_with("\x1b[H┌ 時間 ┐\r\n│ \x1b[0;31m時間x"));
    }

    #[test]
    fn a_line_is_drawn_from_corner_to_corner() {
        let mut picture = Picture::new(2, 1);
        picture.lines(picture.area(), &[vec![(0.0, 0.0), (1.0, 1.0)]], Ink::Plain);
        assert_eq!(picture.rows().collect::<Vec<_>>(), ["⡠⠊"]);
    }
}
