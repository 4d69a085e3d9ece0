//! XML as it is written here: elements with a text or with others inside, in order.

use std::fmt::{Display, Formatter, Result};

/// An element.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    name: &'static str,
    /// The namespace of this element and of those inside.
    space: Option<&'static str>,
    content: Content,
}

#[derive(Clone, Debug, PartialEq)]
enum Content {
    Text(String),
    Elements(Vec<Element>),
}

impl Element {
    /// An element with a text; numbers are the shortest that read back to the same bits.
    pub fn text(name: &'static str, text: impl Display) -> Self {
        Self { name, space: None, content: Content::Text(text.to_string()) }
    }

    /// An element with others inside.
    pub fn of(name: &'static str, elements: impl IntoIterator<Item = Self>) -> Self {
        Self { name, space: None, content: Content::Elements(elements.into_iter().collect()) }
    }

    /// A document whose elements are of this namespace.
    pub fn document(self, space: &'static str) -> String {
        let root = Self { space: Some(space), ..self };
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{root}")
    }

    fn write(&self, f: &mut Formatter<'_>, depth: usize) -> Result {
        let (name, indent) = (self.name, "  ".repeat(depth));
        let space = self.space.map_or_else(String::new, |space| format!(" xmlns=\"{}\"", escaped(space)));
        match &self.content {
            Content::Text(text) => writeln!(f, "{indent}<{name}{space}>{}</{name}>", escaped(text)),
            Content::Elements(all) if all.is_empty() => writeln!(f, "{indent}<{name}{space}/>"),
            Content::Elements(all) => {
                writeln!(f, "{indent}<{name}{space}>")?;
                all.iter().try_for_each(|element| element.write(f, depth + 1))?;
                writeln!(f, "{indent}</{name}>")
            }
        }
    }
}

impl Display for Element {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.write(f, 0)
    }
}

/// A text as it may stand in XML 1.0, which has no control characters but tab and line ends.
fn escaped(text: &str) -> String {
    let of = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\t' | '\n' | '\r' => c.to_string(),
        c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => '\u{fffd}'.to_string(),
        c => c.to_string(),
    };
    text.chars().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_elements_indented() {
        let inside =
            [Element::text("b", "a < b & \"c\"\u{1}"), Element::of("c", []), Element::text("d", 0.1)];
        let document = Element::of("a", inside).document("http://x/y");
        assert_eq!(
            document,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a xmlns=\"http://x/y\">\n  \
             <b>a &lt; b &amp; &quot;c&quot;\u{fffd}</b>\n  <c/>\n  <d>0.1</d>\n</a>\n"
        );
    }
}
