//! The lists of kernels in `kernels/*.cuh`: read as the C preprocessor reads them, and written as Rust traits of the
//! argument structs, so that a launch names its kernel by a type.

use crate::args::{Args, Struct, Type, camel};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// What a kernel works on: the macro that lists it.
#[derive(Clone, Copy, PartialEq)]
enum Work {
    Sites,
    Sums,
    Teams,
}

/// One instance of a kernel.
struct Instance {
    name: String,
    args: String,
    work: Work,
}

/// The macros of all headers: parameters and body.
type Macros = BTreeMap<String, (Vec<String>, String)>;

fn macros() -> Macros {
    let files = fs::read_dir("kernels").expect("kernels/").filter_map(|entry| Some(entry.ok()?.path()));
    let headers = files.filter(|path| path.extension().is_some_and(|e| e == "cuh"));
    headers.flat_map(|path| of_file(&path)).collect()
}

fn of_file(path: &PathBuf) -> Vec<(String, (Vec<String>, String))> {
    let text = fs::read_to_string(path).expect("kernels/").replace("\\\n", " ");
    let defined = |line: &str| {
        let (head, body) = line.strip_prefix("#define ")?.split_once(')')?;
        let (name, parameters) = head.split_once('(')?;
        Some((name.to_owned(), (list(parameters), body.to_owned())))
    };
    text.lines().filter_map(defined).collect()
}

/// What commas outside of brackets part.
fn list(text: &str) -> Vec<String> {
    let (mut items, mut depth) = (vec![String::new()], 0);
    for c in text.chars() {
        match c {
            '(' | '<' => depth += 1,
            ')' | '>' => depth -= 1,
            ',' if depth == 0 => {
                items.push(String::new());
                continue;
            }
            _ => {}
        }
        items.last_mut().expect("one at least").push(c);
    }
    items.into_iter().map(|item| item.trim().to_owned()).collect()
}

/// The calls `NAME(arguments)` that a body consists of.
fn calls(mut body: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    while let Some((name, rest)) = body.split_once('(') {
        let mut depth = 1;
        let end = rest.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        let end = end.expect("a bracket that closes");
        found.push((name.trim().to_owned(), list(&rest[..end])));
        body = &rest[end + 1..];
    }
    found
}

/// The kernels of a list, in its order.
fn expand(macros: &Macros, name: &str, numbers: &BTreeMap<String, String>, out: &mut Vec<Instance>) {
    let (_, body) = macros.get(name).unwrap_or_else(|| panic!("kernels/ has no list {name}"));
    for (name, arguments) in calls(body) {
        let work = match name.as_str() {
            "SITE" => Work::Sites,
            "SUM" => Work::Sums,
            "TEAM" => Work::Teams,
            _ => {
                let parameters =
                    &macros.get(&name).unwrap_or_else(|| panic!("kernels/ has no list {name}")).0;
                let given = parameters.iter().cloned().zip(arguments).collect();
                expand(macros, &name, &given, out);
                continue;
            }
        };
        let kernel = match arguments[1].split_once("##") {
            Some((stem, parameter)) => format!("{stem}{}", numbers[parameter]),
            None => arguments[1].clone(),
        };
        out.push(Instance { name: kernel, args: arguments[2].clone(), work });
    }
}

/// A kernel for all its numbers.
struct Family<'a> {
    args: &'a Struct,
    work: Work,
    /// Double, single, half.
    precisions: [bool; 3],
    /// None, or those behind its name.
    numbers: Vec<i64>,
}

/// The lists of `kernels.cuh`, and in which precisions their kernels are there.
const LISTS: [(&str, [bool; 3]); 4] = [
    ("EVERY_PRECISION", [true, true, true]),
    ("FLOATING", [true, true, false]),
    ("DOUBLE_ONLY", [true, false, false]),
    ("HALF_ONLY", [false, false, true]),
];

fn families(args: &Args) -> Vec<Family<'_>> {
    let macros = macros();
    let mut families: Vec<Family> = Vec::new();
    for (list, precisions) in LISTS {
        let mut instances = Vec::new();
        expand(&macros, list, &BTreeMap::new(), &mut instances);
        for Instance { name, args: of, work } in instances {
            let own = args.find(&of).unwrap_or_else(|| panic!("args.h has no struct {of} of {name}"));
            let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
            // norm2 is a name of its own, axpy_24 one with a number.
            let (stem, number) = match stem.strip_suffix('_') {
                Some(short) => (short, name[stem.len()..].parse().ok()),
                None => (name.as_str(), None),
            };
            assert!(camel(stem) == of, "the kernel {name} takes {of}, whose name is another's");
            match families.iter_mut().find(|family| family.args.name == of) {
                Some(family) => family.numbers.extend(number),
                None => {
                    let numbers = number.into_iter().collect();
                    families.push(Family { args: own, work, precisions, numbers });
                }
            }
        }
    }
    families
}

/// Fields that a GPU's kernel may be compiled for, by name and as Rust expressions, and whether extents are.
fn constants(args: &Args, s: &Struct, at: &str) -> (Vec<(String, String)>, bool) {
    let (mut found, mut extents): (Vec<(String, String)>, bool) = (Vec::new(), false);
    for field in &s.fields {
        let place = format!("{at}.{}", field.name);
        let inner = match &field.of {
            Type::Named(name) => args.find(name),
            _ => None,
        };
        match inner {
            Some(inner) if inner.name == "Geometry" => extents |= field.is_constant(),
            Some(inner) => {
                let (more, too) = constants(args, inner, &place);
                extents |= too;
                found.extend(
                    more.into_iter()
                        .filter(|(name, _)| found.iter().all(|(n, _)| n != name))
                        .collect::<Vec<_>>(),
                );
            }
            None if field.is_constant() => {
                let cast = if field.of == Type::Int { "" } else { " as i32" };
                found.push((field.name.to_uppercase(), place + cast));
            }
            None => {}
        }
    }
    (found, extents)
}

/// The chunks that a kernel packs for its neighbours before its own sites, as a Rust expression.
fn packing(args: &Args, s: &Struct, at: &str) -> Option<String> {
    s.fields.iter().find_map(|field| {
        let place = format!("{at}.{}", field.name);
        let Type::Named(name) = &field.of else { return None };
        match args.find(name)? {
            inner if inner.name == "Places" => Some(format!("{place}.packing")),
            inner => packing(args, inner, &place),
        }
    })
}

/// The enum whose values are a kernel's numbers.
fn number_type<'a>(args: &'a Args, family: &Family) -> Option<&'a crate::args::Enum> {
    let sorted = |numbers: Vec<i64>| {
        let mut numbers = numbers;
        numbers.sort_unstable();
        numbers
    };
    let own = sorted(family.numbers.clone());
    let found = args.enums.iter().find(|e| sorted(e.values.iter().map(|(_, v)| *v).collect()) == own);
    assert!(
        own.is_empty() || found.is_some(),
        "no enum of args.h has the numbers {own:?} of {}",
        family.args.name
    );
    found.filter(|_| !own.is_empty())
}

/// `GaugeForce` as `gauge_force`.
fn snake(name: &str) -> String {
    let lower = |c: char| if c.is_uppercase() { format!("_{}", c.to_lowercase()) } else { c.to_string() };
    name.chars().map(lower).collect::<String>().trim_start_matches('_').to_owned()
}

/// How many kernels there are in double, single and half.
pub(crate) fn counts(args: &Args) -> [usize; 3] {
    let families = families(args);
    [0, 1, 2].map(|precision| {
        let there = families.iter().filter(|family| family.precisions[precision]);
        there.map(|family| family.numbers.len().max(1)).sum()
    })
}

/// `impl Kernel` of every struct that is one, and the list of all kernels.
pub(crate) fn rust(args: &Args) -> String {
    let (mut text, mut list, mut count) = (String::new(), String::new(), 0);
    for family in families(args) {
        let (number, name) = (number_type(args, &family), &family.args.name);
        let (constants, extents) = constants(args, family.args, "self");
        let packing = packing(args, family.args, "self").unwrap_or("0".into());
        let precision = match family.precisions {
            [true, false, false] => "Double",
            [false, false, true] => "Half",
            _ => "Precision",
        };
        let stored = if precision == "Precision" { "precision" } else { "precision.into()" };
        let (form, pattern) = match number {
            Some(number) => (format!("({precision}, {})", number.name), "(precision, number)"),
            None => (precision.to_owned(), "precision"),
        };
        let place = number.map_or(count.to_string(), |number| {
            let arms = number.values.iter().enumerate();
            let arm = |(n, (value, _)): (usize, &(String, i64))| {
                format!("{}::{} => {}", number.name, camel(value), count + n)
            };
            format!("match number {{ {} }}", arms.map(arm).collect::<Vec<_>>().join(", "))
        });
        let any = if args.borrows(family.args) { "<'_>" } else { "" };
        let values: Vec<&str> = constants.iter().map(|(_, value)| value.as_str()).collect();
        let work = match family.work {
            Work::Sites => "OnSites",
            Work::Sums => "Summing",
            Work::Teams => "OnTeams",
        };
        let _ = writeln!(
            text,
            "// SAFETY: the struct is this kernel's.\nunsafe impl Kernel for {name}{any} {{\n    type Form = {form};\n    fn number({pattern}: Self::Form) -> (KernelNumber, Precision) {{ (KernelNumber({place}), {stored}) }}\n    fn constants(&self) -> Constants {{ Constants::new(&[{}]) }}\n    fn packing(&self) -> i32 {{ {packing} }}\n}}\nimpl {work} for {name}{any} {{}}",
            values.join(", ")
        );
        let names: Vec<&str> = constants.iter().map(|(name, _)| name.as_str()).collect();
        let endings: Vec<String> = match number {
            Some(number) => number.values.iter().map(|(_, n)| format!("_{n}")).collect(),
            None => vec![String::new()],
        };
        for ending in endings {
            let _ = writeln!(
                list,
                "    Listed {{ name: \"{}{ending}\", args: \"{name}\", precisions: {:?}, constants: &{names:?}, extents_are_constant: {extents} }},",
                snake(name),
                family.precisions
            );
            count += 1;
        }
    }
    let _ = writeln!(
        text,
        "/// Every kernel, by its number.\npub(super) static KERNELS: [Listed; {count}] = [\n{list}];"
    );
    text
}
