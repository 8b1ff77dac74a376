//! A page of PDF that plotters draws on: paths, and letters as their outlines, so that no font is asked for and none
//! has to be embedded.
//!
//! Written here and not by a library: the PDF around one stream of paths is a page of code, and the libraries that
//! turn SVG into PDF bring some forty others along, and rebuild what everything else stands on.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt::Write;
use std::rc::Rc;

use owned_ttf_parser::{Face, OutlineBuilder};
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontTransform,
};

use super::FONT;

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

/// Draws into `content`.
pub(super) struct Sheet {
    size: (u32, u32),
    content: Rc<RefCell<String>>,
    face: Face<'static>,
}

/// Points of a pixel.
const POINTS: f64 = 0.75;

impl Sheet {
    /// A page of `size`, whose drawing comes to stand in `content`.
    pub fn new(size: (u32, u32), content: Rc<RefCell<String>>) -> Self {
        let face = Face::parse(FONT, 0).expect("the font that comes along can be read");
        Self { size, content, face }
    }

    fn say(&self, text: std::fmt::Arguments<'_>) {
        self.content.borrow_mut().write_fmt(text).expect("memory takes what is written");
    }

    fn fill_colour(&self, colour: BackendColor) {
        let [red, green, blue] = shares(colour);
        self.say(format_args!("{red:.3} {green:.3} {blue:.3} rg\n"));
    }

    fn stroke_colour(&self, colour: BackendColor, width: u32) {
        let [red, green, blue] = shares(colour);
        self.say(format_args!("{red:.3} {green:.3} {blue:.3} RG {width} w 1 j\n"));
    }

    fn path(&self, path: impl IntoIterator<Item = BackendCoord>) {
        for (index, (x, y)) in path.into_iter().enumerate() {
            self.say(format_args!("{x} {y} {}\n", if index == 0 { "m" } else { "l" }));
        }
    }
}

fn shares(colour: BackendColor) -> [f64; 3] {
    let (red, green, blue) = colour.rgb;
    [red, green, blue].map(|part| f64::from(part) / 255.0)
}

/// What `content`, drawn on a [`Sheet`] of this size, is as a document.
pub(super) fn document(size: (u32, u32), fine: f64, content: &str) -> Vec<u8> {
    let scale = POINTS / fine;
    let (wide, high) = (f64::from(size.0) * scale, f64::from(size.1) * scale);
    // Pixels count from the top, points from the bottom.
    let stream = format!("{scale} 0 0 -{scale} 0 {high} cm\n{content}");
    let page = format!(
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {wide} {high}] /Resources << >> /Contents 4 0 R >>"
    );
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_string(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_string(),
        page,
        format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len() + 1),
    ];
    let mut text = String::from("%PDF-1.4\n");
    let mut table = String::from("0000000000 65535 f \n");
    for (index, object) in objects.iter().enumerate() {
        let _ = writeln!(table, "{:010} 00000 n ", text.len());
        let _ = write!(text, "{} 0 obj\n{object}\nendobj\n", index + 1);
    }
    let (start, count) = (text.len(), objects.len() + 1);
    let _ = write!(text, "xref\n0 {count}\n{table}trailer\n<< /Size {count} /Root 1 0 R >>\n");
    let _ = write!(text, "startxref\n{start}\n%%EOF\n");
    text.into_bytes()
}

impl DrawingBackend for Sheet {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, at: BackendCoord, colour: BackendColor) -> Drawn {
        self.draw_rect(at, (at.0 + 1, at.1 + 1), &colour, true)
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        is_filled: bool,
    ) -> Drawn {
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom)];
        if is_filled {
            return self.fill_polygon(corners, style);
        }
        self.draw_path(corners.into_iter().chain([(left, top)]), style)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        if style.color().alpha > 0.0 && style.stroke_width() > 0 {
            self.stroke_colour(style.color(), style.stroke_width());
            self.path(path);
            self.say(format_args!("S\n"));
        }
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        is_filled: bool,
    ) -> Drawn {
        if style.color().alpha <= 0.0 {
            return Ok(());
        }
        if is_filled {
            self.fill_colour(style.color());
        } else {
            self.stroke_colour(style.color(), style.stroke_width());
        }
        // Four Bézier curves with the usual ratio of handle to radius: off by less than a thousandth.
        let (x, y, r) = (f64::from(x), f64::from(y), f64::from(radius));
        let h = r * 0.552_284_75;
        self.say(format_args!("{:.2} {y:.2} m\n", x + r));
        for (a, b, c) in [
            ((x + r, y + h), (x + h, y + r), (x, y + r)),
            ((x - h, y + r), (x - r, y + h), (x - r, y)),
            ((x - r, y - h), (x - h, y - r), (x, y - r)),
            ((x + h, y - r), (x + r, y - h), (x + r, y)),
        ] {
            self.say(format_args!(
                "{:.2} {:.2} {:.2} {:.2} {:.2} {:.2} c\n",
                a.0, a.1, b.0, b.1, c.0, c.1
            ));
        }
        self.say(format_args!("{}\n", if is_filled { "f" } else { "s" }));
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        if style.color().alpha > 0.0 {
            self.fill_colour(style.color());
            self.path(corners);
            self.say(format_args!("f\n"));
        }
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        // As plotters' SVG has it: the size is that of a line, of which letters take so much; and so far
        // from the place to the line on which they stand.
        let em = style.size() / 1.24;
        let down = match style.anchor().v_pos {
            VPos::Top => 0.76,
            VPos::Center => 0.26,
            VPos::Bottom => -0.26,
        };
        let long = width(&self.face, text) * em;
        let left = match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => -long / 2.0,
            HPos::Right => -long,
        };
        let (sine, cosine) = match style.transform() {
            FontTransform::None => (0.0, 1.0),
            FontTransform::Rotate90 => (1.0, 0.0),
            FontTransform::Rotate180 => (0.0, -1.0),
            FontTransform::Rotate270 => (-1.0, 0.0),
        };
        let (x, y) = (f64::from(at.0), f64::from(at.1));
        self.fill_colour(style.color());
        // Letters stand upright in a frame whose vertical axis goes up.
        self.say(format_args!(
            "q {cosine} {sine} {sine} {} {x} {y} cm 1 0 0 1 {left:.2} {:.2} cm\n",
            -cosine,
            -down * em
        ));
        let mut letters = Letters {
            unit: em / f64::from(self.face.units_per_em()),
            pen: 0.0,
            path: String::new(),
        };
        for letter in text.chars() {
            let glyph = self.face.glyph_index(letter).unwrap_or_default();
            self.face.outline_glyph(glyph, &mut letters);
            letters.pen += f64::from(self.face.glyph_hor_advance(glyph).unwrap_or(0));
        }
        self.say(format_args!("{}f Q\n", letters.path));
        Ok(())
    }
}

/// How wide `text` is, in ems.
fn width(face: &Face<'_>, text: &str) -> f64 {
    let advance = |letter: char| {
        let glyph = face.glyph_index(letter).unwrap_or_default();
        f64::from(face.glyph_hor_advance(glyph).unwrap_or(0))
    };
    text.chars().map(advance).sum::<f64>() / f64::from(face.units_per_em())
}

/// The same with the font that comes along.
pub(super) fn text_width(text: &str) -> f64 {
    let face = Face::parse(FONT, 0).expect("the font that comes along can be read");
    width(&face, text)
}

/// Outlines of letters, one behind the other, as operators of PDF.
struct Letters {
    /// One of the font's units.
    unit: f64,
    /// Where the letter begins, in the font's units.
    pen: f64,
    path: String,
}

impl Letters {
    fn at(&self, x: f32, y: f32) -> (f64, f64) {
        ((f64::from(x) + self.pen) * self.unit, f64::from(y) * self.unit)
    }

    fn push(&mut self, points: &[(f64, f64)], operator: &str) {
        for (x, y) in points {
            let _ = write!(self.path, "{x:.2} {y:.2} ");
        }
        let _ = writeln!(self.path, "{operator}");
    }
}

impl OutlineBuilder for Letters {
    fn move_to(&mut self, x: f32, y: f32) {
        let to = self.at(x, y);
        self.push(&[to], "m");
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let to = self.at(x, y);
        self.push(&[to], "l");
    }

    /// PDF knows cubic curves alone. The quadratic one's start is the end of the path so far: its handles lie
    /// two thirds of the way towards the control point.
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let from = self.last();
        let (control, to) = (self.at(x1, y1), self.at(x, y));
        let toward = |end: (f64, f64)| {
            let part = |end: f64, control: f64| end + (control - end) * 2.0 / 3.0;
            (part(end.0, control.0), part(end.1, control.1))
        };
        self.push(&[toward(from), toward(to), to], "c");
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let points = [self.at(x1, y1), self.at(x2, y2), self.at(x, y)];
        self.push(&points, "c");
    }

    fn close(&mut self) {
        self.push(&[], "h");
    }
}

impl Letters {
    /// The end of the path so far.
    fn last(&self) -> (f64, f64) {
        let line = self.path.trim_end().rsplit('\n').next().unwrap_or_default();
        let mut words = line.rsplit(' ').skip(1).map(|word| word.parse().unwrap_or(0.0));
        let (y, x) = (words.next().unwrap_or(0.0), words.next().unwrap_or(0.0));
        (x, y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of a PDF names the byte at which each of its objects stands.
    #[test]
    fn the_document_finds_its_own_parts() {
        let text = String::from_utf8(document((400, 200), 20.0, "0 0 m 1 1 l S")).unwrap();
        assert!(text.starts_with("%PDF-1.4\n") && text.ends_with("%%EOF\n"));
        let start: usize = text.rsplit('\n').nth(2).unwrap().parse().unwrap();
        assert!(text[start..].starts_with("xref\n0 5\n"));
        for (index, line) in text[start..].lines().skip(3).take(4).enumerate() {
            let at: usize = line[..10].parse().unwrap();
            assert!(text[at..].starts_with(&format!("{} 0 obj\n", index + 1)), "{line}");
        }
        let stream = &text[text.find("stream\n").unwrap() + 7..text.find("endstream").unwrap()];
        assert!(text.contains(&format!("/Length {} ", stream.len())));
        // 20 pixels by 10, at 3/4 of a point each.
        assert!(text.contains("/MediaBox [0 0 15 7.5]"), "{text}");
    }

    #[test]
    fn letters_are_as_wide_as_those_of_arial() {
        // Of 2048 units an em, A has 1366, i has 455 and a digit 1139: Arial's widths, which Liberation's are.
        assert_eq!(text_width("A") * 2048.0, 1366.0);
        assert_eq!(text_width("i0") * 2048.0, 455.0 + 1139.0);
        for sign in ["≥", "µ", "–", "…", "′"] {
            assert!(text_width(sign) > 0.15, "{sign}");
        }
    }
}
