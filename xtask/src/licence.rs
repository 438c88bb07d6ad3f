//! Licence expressions, and which of them a dependency may have.
//!
//! The expressions are SPDX's: identifiers joined by `AND`, `OR` and `WITH`, with parentheses, and
//! the older `/` for `OR`. An expression is satisfied if its terms that are allowed make it true.
//! An exception (`WITH`) only grants more, so it is as good as the licence before it.

/// Licences any dependency may have.
const ALLOWED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Packages that may come under MPL-2.0: it binds only changes to their own files. These two are
/// what defmt-decoder brings to `xtask`; neither ends up on a target.
const MPL: [&str; 2] = ["alterable_logger", "colored"];

/// May `package` be used under `expression`? The error says why not.
pub(crate) fn check(package: &str, expression: &str) -> Result<(), String> {
    let words = words(expression);
    let mut parser = Parser {
        package,
        words: &words,
        at: 0,
    };
    let satisfied = parser.or().filter(|_| parser.at == words.len());
    match satisfied {
        Some(true) => Ok(()),
        Some(false) => Err(format!(
            "{package}: licence `{expression}` is not on the list"
        )),
        None => Err(format!("{package}: cannot read the licence `{expression}`")),
    }
}

fn allowed(package: &str, licence: &str) -> bool {
    ALLOWED.contains(&licence) || (licence == "MPL-2.0" && MPL.contains(&package))
}

/// Words, with parentheses as words of their own.
fn words(expression: &str) -> Vec<String> {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    spaced.split_whitespace().map(str::to_owned).collect()
}

/// Recursive descent; `None` stands for an expression that cannot be read.
struct Parser<'a> {
    package: &'a str,
    words: &'a [String],
    at: usize,
}

impl Parser<'_> {
    fn take(&mut self, word: &str) -> bool {
        let here = self.words.get(self.at).is_some_and(|w| w == word);
        self.at += usize::from(here);
        here
    }

    fn or(&mut self) -> Option<bool> {
        let mut value = self.and()?;
        while self.take("OR") {
            value |= self.and()?;
        }
        Some(value)
    }

    fn and(&mut self) -> Option<bool> {
        let mut value = self.term()?;
        while self.take("AND") {
            value &= self.term()?;
        }
        Some(value)
    }

    fn term(&mut self) -> Option<bool> {
        if self.take("(") {
            let value = self.or()?;
            return self.take(")").then_some(value);
        }
        let licence = self.identifier()?;
        let value = allowed(self.package, &licence);
        if self.take("WITH") {
            self.identifier()?;
        }
        Some(value)
    }

    fn identifier(&mut self) -> Option<String> {
        let word = self.words.get(self.at)?;
        let operators = ["(", ")", "AND", "OR", "WITH"];
        self.at += 1;
        (!operators.contains(&word.as_str())).then(|| word.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissive_licences_pass() {
        for good in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
            "MIT OR Apache-2.0 OR LGPL-2.1-or-later",
            "Zlib",
        ] {
            assert_eq!(check("p", good), Ok(()));
        }
        assert_eq!(check("colored", "MPL-2.0"), Ok(()));
    }

    #[test]
    fn others_do_not() {
        for bad in [
            "GPL-3.0",
            "MIT AND GPL-2.0",
            "MPL-2.0",
            "(MIT OR GPL-3.0) AND GPL-3.0",
        ] {
            assert!(check("p", bad).unwrap_err().contains("not on the list"));
        }
        for bad in ["", "MIT OR", "(MIT", "MIT MIT", "AND", "MIT WITH"] {
            assert!(
                check("p", bad).unwrap_err().contains("cannot read"),
                "{bad}"
            );
        }
    }
}
