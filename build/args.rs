//! `kernels/args.h` and what it includes: parsed, and written as Rust and as checks of C++.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

/// What a field is of.
#[derive(Clone, PartialEq)]
pub(crate) enum Type {
    Int,
    Float,
    Double,
    /// An enum or a struct of this name.
    Named(String),
    /// A pointer to a kind of device memory, which the kernel only reads, or also writes.
    In(String),
    Out(String),
}

/// A field of a struct: its type, its name, how many there are in an array, what is said of it.
pub(crate) struct Field {
    pub of: Type,
    pub name: String,
    pub count: Option<usize>,
    pub comment: String,
}

impl Field {
    fn is_optional(&self) -> bool {
        self.comment.starts_with("optional")
    }

    /// Whether a GPU's kernel may be compiled for its value.
    pub(crate) fn is_constant(&self) -> bool {
        self.comment.starts_with("constant")
    }
}

pub(crate) struct Struct {
    pub name: String,
    comment: String,
    pub fields: Vec<Field>,
}

pub(crate) struct Enum {
    pub name: String,
    comment: String,
    /// Names as in C, and their values.
    pub values: Vec<(String, i64)>,
}

/// All of it, in the order of the files.
#[derive(Default)]
pub(crate) struct Args {
    /// Kinds of device memory, and what is said of them.
    kinds: Vec<(String, String)>,
    constants: Vec<(String, usize, String)>,
    pub enums: Vec<Enum>,
    pub structs: Vec<Struct>,
}

impl Args {
    /// Reads `kernels/<file>`.
    pub(crate) fn read(file: &str) -> Self {
        let mut args = Self::default();
        args.parse(file);
        args
    }

    fn parse(&mut self, file: &str) {
        let text = fs::read_to_string(format!("kernels/{file}")).unwrap_or_else(|e| panic!("{file}: {e}"));
        let (mut inside, mut comments) = (false, Vec::new());
        for line in text.lines() {
            let (code, comment) = line.split_once("//").map_or((line, ""), |(a, b)| (a, b.trim()));
            let code = code.trim();
            if let Some(name) = code.strip_prefix("struct ").and_then(|c| c.strip_suffix(" {")) {
                self.structs.push(Struct {
                    name: name.into(),
                    comment: comments.join(" "),
                    fields: Vec::new(),
                });
                inside = true;
            } else if code == "};" {
                inside = false;
            } else if inside {
                let field = self.field(code, comment);
                self.structs.last_mut().expect("inside a struct").fields.push(field);
            } else if !code.is_empty() && !code.starts_with("#pragma") {
                self.item(code, comment, &comments);
            }
            if code.is_empty() && !comment.is_empty() {
                comments.push(comment.to_owned());
            } else {
                comments.clear();
            }
        }
    }

    /// What stands outside of structs.
    fn item(&mut self, code: &str, comment: &str, above: &[String]) {
        if let Some(file) = code.strip_prefix("#include \"") {
            return self.parse(file.trim_end_matches('"'));
        }
        let code = code.strip_suffix(';').unwrap_or_else(|| panic!("args.h: {code}"));
        if let Some(kind) = code.strip_prefix("struct ") {
            self.kinds.push((kind.into(), comment.into()));
        } else if let Some(constant) = code.strip_prefix("constexpr int ") {
            let (name, value) = constant.split_once(" = ").expect("NAME = PRODUCT in args.h");
            let value = value.split(" * ").map(|factor| self.number(factor)).product();
            self.constants.push((name.into(), value, comment.into()));
        } else if let Some((name, values)) =
            code.strip_prefix("enum ").and_then(|c| c.split_once(" : int { "))
        {
            let mut next = 0;
            let mut value = |item: &str| {
                let (name, own) = item.split_once(" = ").map_or((item, None), |(n, v)| (n, Some(v)));
                let value = own.map_or(next, |own| own.parse().expect("a literal value of an enum"));
                next = value + 1;
                (name.to_owned(), value)
            };
            let values = values.trim_end_matches(" }").split(", ").map(&mut value).collect();
            self.enums.push(Enum { name: name.into(), comment: above.join(" "), values });
        } else {
            panic!("args.h: {code}");
        }
    }

    /// A literal, or a constant.
    fn number(&self, text: &str) -> usize {
        let known = || self.constants.iter().find(|(name, ..)| name == text).map(|(_, value, _)| *value);
        text.parse().ok().or_else(known).unwrap_or_else(|| panic!("args.h: {text} is not known"))
    }

    fn field(&self, code: &str, comment: &str) -> Field {
        let code = code.trim_end_matches(';');
        let (of, rest) = code.rsplit_once(' ').unwrap_or_else(|| panic!("TYPE NAME in args.h: {code}"));
        let (name, count) = match rest.split_once('[') {
            Some((name, n)) => (name, Some(self.number(n.trim_end_matches(']')))),
            None => (rest, None),
        };
        let kind = |kind: &str| {
            assert!(self.kinds.iter().any(|(known, _)| known == kind), "args.h: {kind} is no kind");
            kind.to_owned()
        };
        let of = match (of, of.strip_suffix('*')) {
            ("int", _) => Type::Int,
            ("float", _) => Type::Float,
            ("double", _) => Type::Double,
            (_, Some(to)) => match to.strip_prefix("const ") {
                Some(to) => Type::In(kind(to)),
                None => Type::Out(kind(to)),
            },
            (name, None) => Type::Named(name.into()),
        };
        Field { of, name: name.into(), count, comment: comment.into() }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Struct> {
        self.structs.iter().find(|s| s.name == name)
    }

    /// Whether it holds pointers, and so borrows.
    pub(crate) fn borrows(&self, s: &Struct) -> bool {
        s.fields.iter().any(|field| match &field.of {
            Type::In(_) | Type::Out(_) => true,
            Type::Named(name) => self.find(name).is_some_and(|s| self.borrows(s)),
            _ => false,
        })
    }

    /// Whether it holds what is written, and so may not be copied.
    fn writes(&self, s: &Struct) -> bool {
        s.fields.iter().any(|field| match &field.of {
            Type::Out(_) => true,
            Type::Named(name) => self.find(name).is_some_and(|s| self.writes(s)),
            _ => false,
        })
    }

    /// Size, alignment and offsets in C of every struct.
    fn layouts(&self) -> BTreeMap<&str, (usize, usize, Vec<usize>)> {
        let mut known: BTreeMap<&str, (usize, usize, Vec<usize>)> = BTreeMap::new();
        for s in &self.structs {
            let (mut at, mut align, mut offsets) = (0usize, 1, vec![]);
            for field in &s.fields {
                let (size, alignment) = match &field.of {
                    Type::Int | Type::Float => (4, 4),
                    Type::Double | Type::In(_) | Type::Out(_) => (8, 8),
                    Type::Named(name) => {
                        known.get(name.as_str()).map_or((4, 4), |(size, align, _)| (*size, *align))
                    }
                };
                at = at.next_multiple_of(alignment);
                offsets.push(at);
                at += size * field.count.unwrap_or(1);
                align = align.max(alignment);
            }
            known.insert(&s.name, (at.next_multiple_of(align), align, offsets));
        }
        known
    }

    /// Static assertions for C++.
    pub(crate) fn checks(&self) -> String {
        let layouts = self.layouts();
        let mut text = String::new();
        for Struct { name, fields, .. } in &self.structs {
            let (size, _, offsets) = &layouts[name.as_str()];
            let _ = writeln!(text, "static_assert(sizeof({name}) == {size}, \"{name}\");");
            for (Field { name: field, .. }, offset) in fields.iter().zip(offsets) {
                let _ = writeln!(text, "static_assert(offsetof({name}, {field}) == {offset}, \"{field}\");");
            }
        }
        text
    }

    /// The Rust side: constants, enums, kinds and structs.
    pub(crate) fn rust(&self) -> String {
        let mut text = String::new();
        for (name, value, comment) in &self.constants {
            let _ =
                writeln!(text, "#[doc = {:?}]\npub(crate) const {name}: usize = {value};", sentence(comment));
        }
        for (name, comment) in &self.kinds {
            let _ = writeln!(text, "#[doc = {:?}]\npub enum {name} {{}}", sentence(comment));
        }
        self.enums.iter().for_each(|e| text.push_str(&rust_enum(e)));
        let layouts = self.layouts();
        self.structs.iter().for_each(|s| text.push_str(&self.rust_struct(s, &layouts[s.name.as_str()])));
        text
    }

    fn rust_type(&self, field: &Field) -> String {
        let one = match &field.of {
            Type::Int => "i32".into(),
            Type::Float => "f32".into(),
            Type::Double => "f64".into(),
            Type::In(kind) => format!("In<'a, {kind}>"),
            Type::Out(kind) => format!("Out<'a, {kind}>"),
            Type::Named(name) if self.find(name).is_some_and(|s| self.borrows(s)) => format!("{name}<'a>"),
            Type::Named(name) => name.clone(),
        };
        let one = if field.is_optional() { format!("Option<{one}>") } else { one };
        field.count.map_or(one.clone(), |n| format!("[{one}; {n}]"))
    }

    fn rust_struct(&self, s: &Struct, (size, _, offsets): &(usize, usize, Vec<usize>)) -> String {
        let Struct { name, comment, fields } = s;
        let (lifetime, any) = if self.borrows(s) { ("<'a>", "<'_>") } else { ("", "") };
        let copies = if self.writes(s) { "" } else { "#[derive(Clone, Copy)]\n" };
        let mut text =
            format!("#[doc = {:?}]\n#[repr(C)]\n{copies}pub struct {name}{lifetime} {{\n", sentence(comment));
        for field in fields {
            let doc = if field.comment.is_empty() { &field.name } else { &field.comment };
            let own = self.rust_type(field);
            let _ = writeln!(text, "    #[doc = {:?}]\n    pub {}: {own},", sentence(doc), field.name);
        }
        let _ = writeln!(text, "}}\nconst _: () = assert!(size_of::<{name}{any}>() == {size});");
        for (Field { name: field, .. }, offset) in fields.iter().zip(offsets) {
            let _ = writeln!(
                text,
                "const _: () = assert!(std::mem::offset_of!({name}{any}, {field}) == {offset});"
            );
        }
        text
    }
}

/// `CLOVER_MINUS` and `clover_minus` as `CloverMinus`.
pub(crate) fn camel(name: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..].to_lowercase();
    name.split('_').filter(|w| !w.is_empty()).map(word).collect()
}

/// Brackets are links in Rust's documentation.
fn sentence(comment: &str) -> String {
    let comment = comment.replace('[', "\\[").replace(']', "\\]");
    let mut letters = comment.chars();
    letters.next().map_or(comment.clone(), |first| first.to_uppercase().to_string() + letters.as_str())
}

fn rust_enum(Enum { name, comment, values }: &Enum) -> String {
    let mut text = format!(
        "#[doc = {:?}]\n#[repr(i32)]\n#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]\npub enum {name} {{\n",
        sentence(comment)
    );
    for (value, number) in values {
        let _ = writeln!(text, "    #[doc = {value:?}]\n    {} = {number},", camel(value));
    }
    let all: Vec<String> = values.iter().map(|(value, _)| format!("Self::{}", camel(value))).collect();
    let _ = writeln!(
        text,
        "}}\nimpl Enumerated for {name} {{\n    const ALL: &'static [Self] = &[{}];\n    fn value(self) -> i32 {{ self as i32 }}\n}}",
        all.join(", ")
    );
    text
}
