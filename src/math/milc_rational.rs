//! Rational functions in the files of MILC's RHMC (`su3_rhmc_hisq`, `su3_omelyan_rhmc`), as its `poly4` writes them.
//!
//! ```text
//! n_pseudo 1                pseudofermions
//! naik_term_epsilon 0       of each, may be left out
//! y_MD -2 -1 3              f(x) = prod_i (x + 4 m_i^2)^(y_i/z_i), x = -D^2: the force's function
//! z_MD 4 4 4
//! m_MD 0.01 0.05 0.2
//! order_MD 9
//! res_MD 1.0                the constant, then the residues: one a line
//! pole_MD 99.9              a dummy, then the poles: r(x) = res_0 + sum_i res_i / (x + pole_i)
//! ```
//!
//! and the same with `GR` (the heat bath's function, `f_MD^(-1/2)`) and `FA` (the action's, `f_MD^(1/2)`). What follows
//! a `#` is a comment.

use super::rational::Rational;
use super::rational_error::RationalError;
use super::target::Factor;
use std::iter::Peekable;
use std::vec::IntoIter;
use thiserror::Error;

/// The largest order, and number of pseudofermions, that is read.
const MAX_COUNT: usize = 1000;

/// A mistake in a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct MilcRationalError {
    /// From 1; one past the last where the file ends too soon.
    pub line: usize,
    /// What was found and what was expected.
    pub message: String,
}

/// The functions of one pseudofermion.
#[derive(Clone, Debug, PartialEq)]
pub struct MilcPseudofermion {
    /// Correction to the Naik term; 0 where the file says nothing.
    pub naik_epsilon: f64,
    /// `MD`: the inverse of the weight.
    pub md: MilcRational,
    /// `GR`: the weight's square root.
    pub heat_bath: MilcRational,
    /// `FA`: the inverse of the weight's square root.
    pub action: MilcRational,
}

/// r(x) = constant + sum residue / (x + pole), close to f(x) = prod (x + 4 mass^2)^(p/q), where x = -D^2.
#[derive(Clone, Debug, PartialEq)]
pub struct MilcRational {
    /// mass and (p, q); factors of power 0 are left out.
    pub factors: Vec<(f64, (i32, u32))>,
    /// r at infinity.
    pub constant: f64,
    /// residue and pole.
    pub terms: Vec<(f64, f64)>,
}

impl MilcRational {
    /// The same with its error, measured on a `range` of x.
    ///
    /// # Errors
    /// As of [`Rational::given`].
    pub fn measured(&self, range: [f64; 2]) -> Result<Rational, RationalError> {
        let factor = |&(mass, power): &(f64, (i32, u32))| Factor { shift: 4.0 * mass * mass, power };
        let factors: Vec<Factor> = self.factors.iter().map(factor).collect();
        let (residues, poles) = self.terms.iter().copied().unzip();
        Rational::given(self.constant, residues, poles, &factors, range)
    }

    /// Whether f is the power `sign`/2 of the other function's.
    fn is_root(&self, other: &Self, sign: i64) -> bool {
        let wide = |(p, q): (i32, u32)| (i64::from(p), i64::from(q));
        self.factors.len() == other.factors.len()
            && self.factors.iter().zip(&other.factors).all(|(a, b)| {
                let ((p, q), (other_p, other_q)) = (wide(a.1), wide(b.1));
                a.0 == b.0 && 2 * p * other_q == sign * other_p * q
            })
    }
}

/// The pseudofermions of the `text` of a file, in its order.
///
/// # Errors
/// The first line that is not in its place or not as it must be; a pseudofermion whose functions are not powers -1,
/// 1/2 and -1/2 of one weight.
pub fn milc_rationals(text: &str) -> Result<Vec<MilcPseudofermion>, MilcRationalError> {
    let mut reader = Reader::new(text);
    let count = reader.count("n_pseudo")?;
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(reader.pseudofermion()?);
    }
    match reader.lines.next() {
        Some(line) => Err(line.error(format!("{} after all {count} pseudofermions", shown(line.words[0])))),
        None => Ok(all),
    }
}

/// The words of a line that has any.
struct Line<'a> {
    number: usize,
    words: Vec<&'a str>,
}

/// A word for a message. An input of a stranger's may name any file: what no file of this kind has is not shown.
fn shown(word: &str) -> String {
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
    if word.len() <= 24 && word.chars().all(is_usual) {
        format!("'{word}'")
    } else {
        "something else".to_owned()
    }
}

impl Line<'_> {
    fn error(&self, message: String) -> MilcRationalError {
        MilcRationalError { line: self.number, message }
    }

    /// The words after the key.
    fn numbers<T: std::str::FromStr>(&self) -> Result<Vec<T>, MilcRationalError> {
        let parse = |word: &&str| {
            word.parse().map_err(|_| self.error(format!("numbers alone may follow '{}'", self.words[0])))
        };
        self.words[1..].iter().map(parse).collect()
    }

    /// The one number after the key.
    fn number(&self) -> Result<f64, MilcRationalError> {
        match self.numbers()?[..] {
            [number] if f64::is_finite(number) => Ok(number),
            _ => Err(self.error(format!("one finite number must follow '{}'", self.words[0]))),
        }
    }
}

/// The lines not yet read.
struct Reader<'a> {
    lines: Peekable<IntoIter<Line<'a>>>,
    end: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        let words = |line: &'a str| line.split('#').next().unwrap_or("").split_whitespace().collect();
        let lines = (1..).zip(text.lines()).map(|(number, line)| Line { number, words: words(line) });
        let lines: Vec<_> = lines.filter(|line| !line.words.is_empty()).collect();
        Self { lines: lines.into_iter().peekable(), end: text.lines().count() + 1 }
    }

    /// The next line, which begins with `key`.
    fn line(&mut self, key: &str) -> Result<Line<'a>, MilcRationalError> {
        match self.lines.next() {
            Some(line) if line.words[0] == key => Ok(line),
            Some(line) => Err(line.error(format!("expected '{key}', found {}", shown(line.words[0])))),
            None => Err(MilcRationalError {
                line: self.end,
                message: format!("the file ends where '{key}' is expected"),
            }),
        }
    }

    /// A small count after `key`.
    fn count(&mut self, key: &str) -> Result<usize, MilcRationalError> {
        let line = self.line(key)?;
        match line.numbers()?[..] {
            [count] if (1..=MAX_COUNT).contains(&count) => Ok(count),
            _ => Err(line.error(format!("an integer from 1 to {MAX_COUNT} must follow '{key}'"))),
        }
    }

    fn pseudofermion(&mut self) -> Result<MilcPseudofermion, MilcRationalError> {
        let epsilon = "naik_term_epsilon";
        let naik_epsilon = match self.lines.next_if(|line| line.words[0] == epsilon) {
            Some(line) => line.number()?,
            None => 0.0,
        };
        let (md, _) = self.function("MD")?;
        let (heat_bath, heat_bath_line) = self.function("GR")?;
        let (action, action_line) = self.function("FA")?;
        for (name, root, sign, line) in
            [("GR", &heat_bath, -1, heat_bath_line), ("FA", &action, 1, action_line)]
        {
            if !root.is_root(&md, sign) {
                let message = format!("y_{name}, z_{name} and m_{name} are not MD's power {sign}/2");
                return Err(MilcRationalError { line, message });
            }
        }
        Ok(MilcPseudofermion { naik_epsilon, md, heat_bath, action })
    }

    /// The function `name`, and the line on which it begins.
    fn function(&mut self, name: &str) -> Result<(MilcRational, usize), MilcRationalError> {
        let line = self.line(&format!("y_{name}"))?;
        let (start, numerators) = (line.number, line.numbers::<i32>()?);
        let line = self.line(&format!("z_{name}"))?;
        let denominators = line.numbers::<u32>()?;
        if denominators.len() != numerators.len() || denominators.contains(&0) {
            return Err(line.error(format!("one positive denominator for each number of y_{name}")));
        }
        let line = self.line(&format!("m_{name}"))?;
        let masses = line.numbers::<f64>()?;
        if masses.len() != numerators.len() || !masses.iter().all(|mass| mass.is_finite()) {
            return Err(line.error(format!("one finite mass for each number of y_{name}")));
        }
        let powers = numerators.into_iter().zip(denominators);
        let factors: Vec<_> = masses.into_iter().zip(powers).filter(|(_, power)| power.0 != 0).collect();
        if factors.is_empty() {
            return Err(MilcRationalError { line: start, message: format!("y_{name} has no power but 0") });
        }
        let order = self.count(&format!("order_{name}"))?;
        let [residue, pole] = ["res", "pole"].map(|key| format!("{key}_{name}"));
        let residues: Vec<f64> =
            (0..=order).map(|_| self.line(&residue)?.number()).collect::<Result<_, _>>()?;
        self.line(&pole)?;
        let mut terms = Vec::new();
        for residue in &residues[1..] {
            let line = self.line(&pole)?;
            match line.number()? {
                pole if pole > 0.0 => terms.push((*residue, pole)),
                _ => return Err(line.error("every pole but the first must be above 0".to_owned())),
            }
        }
        Ok((MilcRational { factors, constant: residues[0], terms }, start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One pseudofermion of det(x + 4 0.5^2)^(1/2), with functions of order 1.
    const ONE: &str = "n_pseudo 1
# a comment
y_MD -1 0
z_MD 2 4
m_MD 0.5 99.9
order_MD 1
res_MD 0.25
res_MD 1.5
pole_MD 99.9
pole_MD 2.0

y_GR 1
z_GR 4
m_GR 0.5
order_GR 1
res_GR 2.5 # a comment
res_GR -3e0
pole_GR 0
pole_GR 4
y_FA -1
z_FA 4
m_FA 0.5
order_FA 1
res_FA 0.5
res_FA 0.5
pole_FA 0
pole_FA 1
";

    #[test]
    fn a_file_is_read() {
        let read = |p, constant, term| MilcRational { factors: vec![(0.5, p)], constant, terms: vec![term] };
        let expected = MilcPseudofermion {
            naik_epsilon: 0.0,
            md: read((-1, 2), 0.25, (1.5, 2.0)),
            heat_bath: read((1, 4), 2.5, (-3.0, 4.0)),
            action: read((-1, 4), 0.5, (0.5, 1.0)),
        };
        assert_eq!(milc_rationals(ONE), Ok(vec![expected.clone()]));
        let naik = ONE.replace("y_MD", "naik_term_epsilon -0.25\ny_MD");
        assert_eq!(milc_rationals(&naik), Ok(vec![MilcPseudofermion { naik_epsilon: -0.25, ..expected }]));
    }

    #[test]
    fn mistakes_have_their_lines() {
        let cases = [
            ("n_pseudo 1", "n_pseudo 0", "line 1: an integer from 1 to 1000 must follow 'n_pseudo'"),
            ("n_pseudo 1", "n_pseudo 2", "line 28: the file ends where 'y_MD' is expected"),
            ("n_pseudo 1", "root:x:0:0::/:/bin/sh", "line 1: expected 'n_pseudo', found something else"),
            ("n_pseudo 1", "", "line 3: expected 'n_pseudo', found 'y_MD'"),
            ("z_MD 2 4", "z_MD 2", "line 4: one positive denominator for each number of y_MD"),
            ("z_MD 2 4", "z_MD 0 4", "line 4: one positive denominator for each number of y_MD"),
            ("y_MD -1 0", "y_MD 0 0", "line 3: y_MD has no power but 0"),
            ("y_MD -1 0", "y_MD -1/2 0", "line 3: numbers alone may follow 'y_MD'"),
            ("m_MD 0.5 99.9", "m_MD 0.5 inf", "line 5: one finite mass for each number of y_MD"),
            ("order_MD 1", "order_MD 2", "line 9: expected 'res_MD', found 'pole_MD'"),
            ("res_MD 1.5", "res_MD nan", "line 8: one finite number must follow 'res_MD'"),
            ("res_MD 1.5", "res_MD 1.5 2", "line 8: one finite number must follow 'res_MD'"),
            ("pole_MD 2.0", "pole_MD -2.0", "line 10: every pole but the first must be above 0"),
            ("y_GR 1", "y_GR -1", "line 12: y_GR, z_GR and m_GR are not MD's power -1/2"),
            ("z_FA 4", "z_FA 2", "line 20: y_FA, z_FA and m_FA are not MD's power 1/2"),
            ("m_FA 0.5", "m_FA 0.25", "line 20: y_FA, z_FA and m_FA are not MD's power 1/2"),
            ("pole_FA 1", "pole_FA 1\nextra 1", "line 28: 'extra' after all 1 pseudofermions"),
        ];
        for (old, new, expected) in cases {
            assert!(ONE.contains(old), "{old}");
            let found = milc_rationals(&ONE.replacen(old, new, 1)).expect_err(new);
            assert_eq!(found.to_string(), expected, "{new}");
        }
    }
}
