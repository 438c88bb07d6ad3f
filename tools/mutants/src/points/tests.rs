//! What the check of the sources finds, and what it leaves alone.

use super::*;

fn found(source: &str) -> Found {
    let mut found = Found::default();
    found.source("a.rs", source);
    found.finish();
    found
}

fn names(source: &str) -> Vec<String> {
    let found = found(source);
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    found.points.into_iter().map(|point| point.name).collect()
}

#[test]
fn our_sources_are_in_order() {
    let found = scan().unwrap();
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    assert!(found.points.len() > 50, "{}", found.points.len());
}

#[test]
fn points_are_found_with_their_lines() {
    let source = "fn f() {\n  order!(\"it is first\": \"b\",\n point!(DRAIN \"it is in memory\":\n\
                  \"a\", m.drain()), {\n x.fence(); })\n}";
    let points = found(source).points;
    let places: Vec<_> = points.iter().map(|p| (&*p.name, &*p.place)).collect();
    assert_eq!(places, [("a", "a.rs:3"), ("b", "a.rs:2")]);
}

#[test]
fn a_step_outside_of_a_point_is_an_error() {
    for bad in [
        "self.machine.drain();",
        "self.machine . write_back ( &[lines] );",
        "M::acquire(&self.machine);",
        "Coherence::invalidate(m, &[]);",
        "fence(SeqCst);",
        "let held = machine.try_lock(core);",
        "let held = self.lock(to)?;",
        "if x { point!(WAIT \"all have come\": \"a\", y()); core.refresh(lines)?; }",
        "let act = Self::drain; act();",
        "spans.iter().for_each(M::drain);",
        "vec![self.link.fence()];",
        "loop { |x| { world.barrier() } }",
        "fn g() {} self.link.publish();",
        "fn publish() { self.link.refresh(); }",
    ] {
        let found = found(&format!("fn f(&self) {{ {bad} }}"));
        assert_eq!(found.errors.len(), 1, "{bad}: {:?}", found.errors);
        assert!(found.errors[0].contains("outside of a mutation point"));
    }
}

#[test]
fn a_step_is_seen_by_another_name_and_in_a_macro() {
    for bad in [
        "use super::drain as quiet;",
        "mod alias { pub(crate) use super::{x, drain as quiet}; }",
        "macro_rules! hush { ($m:expr) => { $m.invalidate(&[]) }; }",
        "fn f(&self) { self.machine.settle(); }",
        "fn f(&self) { self.before_telling(None)?; }",
    ] {
        assert_eq!(found(bad).errors.len(), 1, "{bad}");
    }
}

#[test]
fn comments_strings_tests_and_definitions_do_not_count() {
    let source = r#"
        use crate::epoch::fence;
        use flagpost_link::lock;
        pub use epoch::fence::Fence;
        /// `self.machine.drain()` does it.
        fn drain(&self) { /* m.drain() */ let s = "m.drain()"; } // m.drain()
        trait T { fn fence(&self); fn lock(&self) -> bool; }
        #[cfg(test)]
        mod tests { fn t() { m.drain(); } }
        #[cfg(test)]
        use x::y;
        macro_rules! point { ($a:expr) => { m.drain() } }
        fn after() { drained(); let drain = 1; }
        fn publish(&self) { self.link.publish() }
    "#;
    assert!(names(source).is_empty());
    let behind = format!("{source} fn g() {{ m.drain() }}");
    assert_eq!(found(&behind).errors.len(), 1);
}

#[test]
fn sites_may_be_handed_on_by_those_who_were_given_one() {
    assert_eq!(
        names("fn f() { let held = self.lock(to, site!(LOCK \"one at a time\": \"a\"))?; }"),
        ["a"]
    );
    assert_eq!(
        names(
            "fn f() { let s = site!(LOCK \"one at a time\": \"a\"); let held = self.lock(to, s)?; }"
        ),
        ["a"]
    );
    assert!(
        names("fn f(&self, to: Rank, [lock, x]: [Site; 2]) { self.unlock(h, lock); point!(x, m.drain()) }")
            .is_empty()
    );
    for bad in [
        "fn f(lock: Rank) { self.lock(to, lock) }",
        "fn f() { { let s = site!(LOCK \"one at a time\": \"a\"); } self.lock(to, s) }",
        "fn f(a: Site) { } fn g() { self.lock(to, a) }",
        "fn f() { point!(a, m.drain()) }",
        "fn f() { point!(concat!(\"a\"), x()) }",
    ] {
        assert_eq!(found(bad).errors.len(), 1, "{bad}");
    }
}

#[test]
fn a_name_is_used_once() {
    let found = found(
        "fn f() { point!(WAIT \"all have come\": \"a\", x()); order!(\"it is first\": \"a\", y(), z()); }",
    );
    assert_eq!(
        found.errors,
        ["a.rs:1, a.rs:1: several points are called a"]
    );
}

#[test]
fn what_is_no_rust_is_an_error() {
    assert_eq!(found("fn f( {").errors.len(), 1);
}

#[test]
fn a_point_says_why_its_step_is_there() {
    for bad in [
        "point!(WAIT \"\": \"a\", x())",
        "point!(WAIT \"G2\": \"a\", x())",
        "self.lock(to, site!(LOCK \" \": \"a\"))",
        "order!(\"G1: first\": \"a\", x(), y())",
    ] {
        let found = found(&format!("fn f() {{ {bad}; }}"));
        assert_eq!(found.errors.len(), 1, "{bad}: {:?}", found.errors);
        assert!(found.errors[0].starts_with("a.rs:1: a does not say why"));
    }
    for bad in [
        "point!(\"a\", x())",
        "point!(\"all have come\": \"a\", x())",
        "order!(\"a\", x(), y())",
        "order!(ORDER \"it is first\": \"a\", x(), y())",
        "self.lock(to, site!(\"a\"))",
    ] {
        let found = found(&format!("fn f() {{ {bad}; }}"));
        assert_eq!(found.errors.len(), 1, "{bad}: {:?}", found.errors);
        assert!(found.errors[0].contains("begins neither"));
    }
}

#[test]
fn a_wrong_copy_of_a_protocol_stands_elsewhere() {
    let point = |instead| {
        format!("fn f() {{ point!(WAIT \"all have come\": \"a\", x(); else {instead}) }}")
    };
    for good in [
        "true",
        "Ok(())",
        "self.posted = false",
        "self.told_first(world, || 1)?",
    ] {
        assert_eq!(names(&point(good)), ["a"]);
    }
    for bad in [
        "{ self.tell(); self.wait() }",
        "{ self.tell() }",
        "if told { wait() } else { tell() }",
        "self.told_first(\nworld)",
        "self.targets.for_each(|target| { tell(target); wait(target) })",
    ] {
        let found = found(&point(bad));
        assert_eq!(found.errors.len(), 1, "{bad}: {:?}", found.errors);
        assert!(found.errors[0].ends_with("make it a function in a file wrong.rs"));
    }
}

#[test]
fn wrong_copies_are_compiled_with_mutants_only() {
    assert!(names("#[cfg(mutants)]\nmod wrong;").is_empty());
    for bad in [
        "mod wrong;",
        "#[cfg(test)] use x; pub mod wrong;",
        "#[cfg(not(mutants))] mod wrong;",
    ] {
        let found = found(bad);
        assert_eq!(found.errors.len(), 1, "{bad}: {:?}", found.errors);
        assert!(found.errors[0].contains("`mod wrong` without"));
    }
}
