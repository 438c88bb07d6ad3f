//! Arguments of a run: `name=value` words, such as `stencil.m=64`.

/// Words of the form `name=value`, separated by white space.
#[derive(Copy, Clone, Debug, Default)]
pub struct Args<'a>(&'a str);

impl<'a> Args<'a> {
    /// Looks arguments up in `line`. Words without `=` are ignored.
    pub const fn new(line: &'a str) -> Self {
        Self(line)
    }

    /// The value of the last word that names `name`.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.0
            .split_ascii_whitespace()
            .filter_map(|word| word.split_once('='))
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value)
            .next_back()
    }

    /// The value of `name` as a number, or `default` if it is not given. `None` if it is given and
    /// no number.
    pub fn number(&self, name: &str, default: u32) -> Option<u32> {
        self.text(name).map_or(Some(default), |v| v.parse().ok())
    }
}
