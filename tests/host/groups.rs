//! How much the tests try.

/// Seeds of each combination: `deep` with `FLAGPOST_DEEP=1` in the environment, else a twentieth of
/// these. With `FLAGPOST_SEEDS=n` there are n.
pub(crate) fn seeds(deep: u64) -> u64 {
    number_of("FLAGPOST_SEEDS", deep)
}

/// Random programs: as [`seeds`], with `FLAGPOST_PROGRAMS=n`.
pub(crate) fn programs(deep: u64) -> u64 {
    number_of("FLAGPOST_PROGRAMS", deep)
}

/// The seed of the first program: `FLAGPOST_FIRST=n`.
pub(crate) fn first_program() -> u64 {
    std::env::var("FLAGPOST_FIRST").map_or(0, |text| text.parse().expect("a number"))
}

/// Whether `FLAGPOST_DEEP` is in the environment.
pub(crate) fn is_deep() -> bool {
    std::env::var_os("FLAGPOST_DEEP").is_some()
}

/// For `step_by` over what a quick run tries one in `quick` of: 1 in a deep run.
pub(crate) fn step(quick: usize) -> usize {
    if is_deep() { 1 } else { quick }
}

fn number_of(name: &str, deep: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) if is_deep() => deep,
        Err(_) => deep.div_ceil(20),
    }
}
