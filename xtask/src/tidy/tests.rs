//! Each check finds a mistake that is planted, and leaves alone what is right.

use super::Tree;

/// A tree in which nothing is wrong.
const AROUND: [(&str, &str); 9] = [
    (
        "docs/hardware.md",
        "# Facts\n## A5. Times\n* **H7** No protection.\n| [NA] | a paper |\n",
    ),
    ("docs/x.md", ""),
    ("kernel/src/epoch/mod.rs", ""),
    (
        "xtask/src/main.rs",
        "enum Commands {\n    Qemu(X),\n    Bench,\n}\n",
    ),
    (
        "bench/a.rs",
        "enum A {\n    Micro(B),\n}\nconst C: D = [\"ring\", \"--to\", \"host\"];\n",
    ),
    (
        "linux/b.rs",
        "struct A {\n    pub(crate) cores: u16,\n    mem: u16,\n}\n",
    ),
    (
        "kernel/a.rs",
        "struct A {\n    gone: u16,\n    lost: u16,\n}\n",
    ),
    ("kernel/c.rs", "fn tells() {}\n#[doc = heap_less]\n"),
    (
        "tests/src/cases/t.rs",
        "macro_rules! bs {\n    () => { [\"b.\" $prefix \"x\", 1] }\n}\n\
         const A: X = cases! { [\"a.one\", 1] };\nconst B: X = bs!(\"two.\", B);\n",
    ),
];

fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let owned = |&(name, text): &(&str, &str)| (name.to_owned(), text.to_owned());
    let files = files.iter().map(owned).collect();
    let (found, _) = Tree { files }.check();
    found.iter().map(ToString::to_string).collect()
}

/// Of each finding in the file the line and a part of what is said, bars between them; and none
/// elsewhere.
#[track_caller]
fn finds(file: &str, text: &str, expected: &str) {
    let found = findings(&[&AROUND[..], &[(file, text)]].concat());
    let expected: Vec<_> = { expected.split(" | ") }
        .filter(|one| !one.is_empty())
        .collect();
    let same = found.len() == expected.len();
    let is = |(found, expected): (&String, &&str)| {
        let (line, what) = expected.split_once(' ').expect("a line, and words");
        let rest = found.strip_prefix(&format!("{file}:{line}: "));
        rest.is_some_and(|rest| rest.contains(what))
    };
    assert!(same && found.iter().zip(&expected).all(is), "{found:#?}");
}

#[test]
fn lines_are_not_too_long_and_what_cannot_be_wrapped_may_be() {
    let (long, words) = ("x".repeat(120), "word ".repeat(25));
    let source = format!("fn f() {{\n    // {words}\n    let x = 1; /// {words}\n}}\n");
    finds("a.rs", &source, "2 132 columns | 3 144 columns");
    let code = format!("//! https://{long}\n//! [key]: https://{long}\nlet x = \"{words}\";\n");
    finds("a.rs", &code, "");
    let fenced = format!("```text\n{words}\n```\n| {words} |\n* <https://{long}>\n");
    finds("a.md", &fenced, "");
    // A row and a picture in a comment can be made narrower.
    finds(
        "a.rs",
        &format!("//! | {words} |\n"),
        "1 133 columns, at most 100: shorten",
    );
    finds(
        "a.rs",
        &format!("//! ```text\n//! {words}\n//! ```\n"),
        "2 wrap",
    );
    finds("a.rs", &format!("// {} é", "é".repeat(95)), "");
    let point = format!("point!(WAIT \"{}\":\n\"a\", f());\n", "word ".repeat(20));
    finds("kernel/b.rs", &point, "1 columns");
    finds("docs/log/a.md", &words, "");
    finds("docs/a.md", &words, "1 125 columns");
}

#[test]
fn words_to_avoid_are_found_on_front_pages() {
    let text = "Call it at\nonce. `at once` is code. Whoever looks goes on.\n";
    finds(
        "README.md",
        text,
        "1 \"at once\" | 2 \"Whoever\" | 2 \"goes on\": write \"cont",
    );
    finds("docs/other.md", text, "");
    let source = "//! So many.\n\n/// So many.\nfn f() {}\n";
    finds("linux/src/lib.rs", source, "1 \"So many\"");
    finds("linux/src/a.rs", source, "");
    let text = "```text\nrank 0 waits for\nrank rank 3\n```\n";
    finds("docs/other.md", text, "3 \"rank\" twice");
}

#[test]
fn all_comments_and_reasons_of_the_kernel_are_read() {
    for (text, expected) in [
        (
            "//! So many.\n\n/// A unit.\nfn f() {\n    // It goes\n    // on.\n}\n",
            "1 So many | 5 goes on",
        ),
        ("// ```text\n// Who\n// ```\nf(\"at once\");\n", ""),
        // Strings, characters and lifetimes are no comments, whatever they hold.
        (
            "fn f<'a>(s: &'a str) -> char { // At once.\n    let _ = (\"// So many\", 'x', '\"', \
             '\\'', r#\"// \"Who\"#, br\"// Who\", \"\\\"// Who\");\n    /* So\n  many */ let r = \
             number\"// Who\"; '/'\n    //// Who\n    let url = \"https://example.org\n// Who\";\n\
             } //Who\n",
            "1 At once | 3 So many | 5 Who | 8 Who",
        ),
        (
            "/// One `at\n/// once`\n/// ````text\n/// Who\n/// ```\n/// ````\n/// Who\n// go on",
            "7 Who | 8 go on",
        ),
        (
            "point!(DRAIN \"it goes on behind it\": \"a\", own());\norder!(\"all at once\":\n\
             \"b\", f());\nlock(to, site!(WAIT\n    \"Who has it\": \"c\"));\n",
            "1 behind | 1 goes on | 2 at once | 5 Who",
        ),
        (
            "// Stored\n// behind a drain.\n// Behind it.\n",
            "2 behind | 3 Behind",
        ),
        (
            "// The bell lies behind the ring; a rank that stands\n// behind another.\n",
            "",
        ),
        (
            "// The own ring, own\n// bells. Own memory; [own](A::Own) ones.\n",
            "1 own | 2 Own | 2 own",
        ),
        (
            "// Its own ring, the ranks' own\n// bells, `a`'s own, a rank's\n\
             // [own](A::Own) one, of their own, owner, owned.\n",
            "",
        ),
        (
            "// # What there is\n// Whether it has. Who takes it\n",
            "1 What | 2 Whether | 2 Who",
        ),
        ("// Says what, whether and who.\n", ""),
    ] {
        // The findings of a line are in the order of their words.
        finds("kernel/network/src/a.rs", text, expected);
        finds("hal/src/a.rs", text, expected);
        finds("linux/src/a.rs", text, "");
    }
}

#[test]
fn a_long_module_begins_with_sentences_and_errors_are_told_in_place() {
    let code = "fn f() {}\n".repeat(101);
    let few = "1 sentences before";
    for (header, expected) in [
        ("", few),
        ("//! One. Two `a. b. c.`\n//! # Three. Four.\n", few),
        ("//! One. Two.\n//!\n//! * Three. Four.\n", few),
        ("//! One. Two.\n//! | Three. | Four. |\n", few),
        (
            "//! One\n//! is. [`Two.`] is. Three (and four).\n//! # Five\n",
            "",
        ),
    ] {
        finds("kernel/b.rs", &format!("{header}{code}"), expected);
        finds("linux/a.rs", &format!("{header}{code}"), "");
    }
    finds("kernel/b.rs", "//! One.\nfn f() {}\n", "");
    let source = "/// As there it is fine.\n///\n/// # Errors\n/// As there.\nfn f() {}\n\
                  /// # Errors\n/// [`A`]. As\n/// [`B::c`]; more.\n\
                  /// # Panics\n/// As [`d`].\nfn g() {}\n";
    finds("a.rs", source, "4 \"As …\" | 7 \"As …\"");
}

#[test]
fn citations_lead_somewhere() {
    let keys = "//! [NA] IV, [GONE, recalled], [Lines], [`GONE`], [NO](self), [1]\n";
    finds("a.rs", keys, "1 [GONE] is not in the references");
    let labels = "// See hardware.md A5 and H7; docs/hardware.md\n// A5, B1.\nfn f() {}\n\
                  // `hardware.md`, H8: no.\n";
    finds("a.rs", labels, "1 no label **B1** | 4 no label **H8**");
    let notebooks = "// (HARDWARE A5), `HARDWARE`, HARDWARE_A, HARDWARE.md\n";
    finds(
        "a.rs",
        notebooks,
        "1 HARDWARE is no document | 1 HARDWARE.md is not in",
    );
    let files = "// docs/x.md, x.md, `epoch/mod.rs`, https://docs.rs/a.rs, docs.rs,\n\
                 // docs/gone.md or och/mod.rs\n";
    finds("a.rs", files, "2 docs/gone.md is not | 2 och/mod.rs is not");
    finds(
        "docs/log/a.md",
        "`gone.rs`, `gone.md`, [a](gone.md)",
        "1 gone.md is not",
    );
}

#[test]
fn commands_words_and_flags_must_be_there() {
    let page = "`cargo xtask qemu --cores N`, `cargo xtask gone`, `cargo xtask bench micro ring`\n\
                `cargo xtask bench macro`, `flagpost-run --mem 1 -n 4 program --gone`\n\
                ```console\n$ cargo xtask qemu --cores macro --lost --to x -- --any\n```\n";
    let expected = "1 knows gone of \"cargo xtask gone\" | 2 knows --gone of \"flagpost-run | 2 knows macro of | 4 knows --lost of";
    finds("a.md", page, expected);
}

#[test]
fn numbers_beside_a_checked_table_are_its_numbers() {
    let table = "```console\n$ bench tree --cores 17\nhalf of a trip\n\
                 cores  notified  ratio\n   17      1444   0.72\n```\n";
    for (prose, expected) in [
        (
            "Now 1,445 cycles;\nbefore 3.3 times, 72 %.",
            "8 \"1445\" | 9 \"3.3\" | 9 \"72\"",
        ),
        (
            "0.7 and 17.5, 16-ary,\n| 5 | 17 |",
            "8 \"0.7\" | 8 \"16\" | 8 \"17.5\" | 9 \"5\"",
        ),
        (
            "Twice as fast, a\nthird of it, three\ntimes, tenfold",
            "8 \"a third\" | 8 \"twice\" | 9 \"three times\" | 10 \"tenfold\"",
        ),
        ("With 17 cores 1,444 cycles (1444), 0.72; half a trip.", ""),
        (
            "`--lead 100`, [chapter 9\nof it](x.md#9), hardware H7, x86-64, P54C.",
            "",
        ),
    ] {
        finds(
            "docs/a.md",
            &format!("# A tree\n{table}{prose}\n# Next\n77\n"),
            expected,
        );
    }
    // Each section has its own; the block of a host has `99`, right after one that is compared.
    let other = "Before 3.\n# A\n```console host\n$ b\n```\n55\n\n```sh\n44\n```\n## B\n";
    let slow = table.replace("console", "console slow");
    let both = format!("{other}{slow}```console host\n$ c\n99\n```\n99, 1444\n1446\n");
    finds("docs/a.md", &both, "22 \"99\" | 23 \"1446\"");
}

#[test]
fn rows_of_sources_name_what_is_there_and_run_where_they_say() {
    let names = "| row |\n|---|\n| 1 | `a.one`, `b.two.x`, `tests` |\n\
                 | 3 | `kernel/c.rs::tells` `c.rs::gone` `bench/a.rs` `x/gone.c` |\n\
                 | 3 | `a.gone`, `b.two.z`, `cargo run gone/it` |\n";
    let expected = "1 no row 2 | 4 c.rs::gone: the file | 4 x/gone.c is not | 5 no case is named a.gone | 5 no case is named b.two.z | 5 row 3 twice";
    finds("docs/sources.md", names, expected);
    let rows = "| 1 | `heap`, a_b, c_d | `kernel/c.rs` | `kernel/c.rs::tells` | S | `c_d` is new |\n\
                | 2 | `heap-less` | `kernel/c.rs` | | | |\n\
                | 3 | a | `kernel/c.rs` | `kernel/c.rs` | S | |\n\
                | 4 | a | `kernel/c.rs` | `kernel/c.rs::tells` | all B H X | |\n\
                | 5 | a_gone | no | | | |\n\
                | 6 | a | `tests` | `a.one`, `cargo xtask bench host` | all B H | |\n";
    let expected = "1 row 1: no file of the row has a_b | 3 row 3: shown by: nothing in it runs | 4 row 4: shown by: B needs | 4 row 4: shown by: H needs | 4 row 4: shown by: X needs | 4 row 4: shown by: only a case runs on all";
    finds("docs/sources.md", rows, expected);
}

/// A crate, or a program, of three files beside its root: `a` needs `b`, `b` needs `c`, and `c` has
/// `text`.
fn circle(at: &str, root: &str, text: &str) -> Vec<String> {
    let names = [root, "a.rs", "b/mod.rs", "b/inner.rs", "c.rs"].map(|name| format!("{at}{name}"));
    let b = "mod inner;\npub(crate) use inner::B;\nfn f() { inner::g(super::c::C) }\n";
    let texts = [
        "mod a;\nmod b;\nmod c;\npub use a::A;\n",
        "use crate::b::B;\npub struct A(B);\npub fn go() {}\n",
        b,
        "use crate::c;\npub struct B;\npub fn g(_: c::C) {}\n",
        text,
    ];
    let files = names.iter().map(String::as_str).zip(texts);
    let files = files.chain([("lib/Cargo.toml", "")]);
    findings(&files.collect::<Vec<_>>())
}

#[test]
fn a_circle_of_three_files_is_refused_however_it_is_closed() {
    for closes in [
        "use crate::a::A;\n",
        "use super::a::{self as other};\n",
        "use crate::{Other, a::{A, go as start}};\n",
        "fn f() { crate::a::go() }\n",
        "fn f() { point!(\"x\", super::a::go(); else ()) }\n",
        "mod inner { fn f() { super::super::a::go() } }\n",
    ] {
        for (at, root) in [("lib/src/", "lib.rs"), ("lib/src/bin/x/", "main.rs")] {
            let found = circle(at, root, closes);
            let files = format!("{at}a.rs, {at}b/inner.rs, {at}c.rs");
            let what = format!("{at}a.rs:1: a circle of 3 files, at most 2: {files}: ");
            assert!(
                found.len() == 1 && found[0].starts_with(&what),
                "{closes}{found:?}"
            );
        }
    }
    for text in [
        "use crate::A;\n",
        "pub use crate::a::A;\n",
        "/// See [`A`](crate::a::A).\nstruct C;\n",
        "const C: &str = \"crate::a::go()\";\n",
        "#[cfg(test)]\nmod tests { use crate::a::A; fn f() { super::super::a::go() } }\n",
        "#[cfg(test)]\nuse crate::a::A;\n",
        "macro_rules! m { () => { use $crate::a::A; $crate::a::go() } }\n",
        // Two files may need each other; and a module may use what is inside of it.
        "use super::b::inner::B;\nfn f() { crate::f() }\n",
    ] {
        assert!(circle("lib/src/", "lib.rs", text).is_empty(), "{text}");
    }
}
