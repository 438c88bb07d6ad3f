//! Boot words of the monitor: what QEMU's `-append` says, `name=value` each.
//!
//! | word | meaning |
//! |---|---|
//! | `mapping=M` | how pages are mapped: `normal`, `mpbt`, or `mpbt-wt`, the default |
//! | `lines=0` | message lines and the write-combining buffer are not emulated |
//! | `interrupts=0` | the image starts with interrupts masked, and no timer runs |
//! | `until=heard` | the run ends well once each core has heard its bell after it was counted |
//! | `fault=F` | breaks the machine: [`Fault`] |
//!
//! Other words are the image's.

use flagpost_scc::Mapping;

/// What is broken on purpose.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `page`: of each core, the page table entry of the last page of its own message buffer, as
    /// message data, leads to the page before.
    Page,
    /// `register`: where core 1 asks for the registers of tile 0, it reaches those of tile 1.
    Register,
    /// `lock`: a test-and-set register that is held is granted, too.
    Lock,
    /// `cl1invmb`: this instruction drops nothing.
    Cl1invmb,
    /// `drain`: a store to a core's line that is kept free for this lets the write-combining buffer
    /// keep the line that it has.
    Drain,
}

/// What the words ask for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How pages are mapped.
    pub mapping: Mapping,
    /// Message lines and the write-combining buffer are emulated.
    pub lines: bool,
    /// The image starts with interrupts admitted: of the bell, and of a timer.
    pub interrupts: bool,
    /// The run ends once each core has heard its bell.
    pub until_heard: bool,
    /// What is broken.
    pub fault: Option<Fault>,
}

impl Options {
    /// Reads the words.
    ///
    /// # Errors
    /// The word that means nothing.
    pub fn parse(words: &str) -> Result<Self, &str> {
        let mut options = Self {
            mapping: Mapping::default(),
            lines: true,
            interrupts: true,
            until_heard: false,
            fault: None,
        };
        for word in words.split_ascii_whitespace() {
            let Some((name, value)) = word.split_once('=') else {
                continue;
            };
            let flag = match value {
                "0" => Some(false),
                "1" => Some(true),
                _ => None,
            };
            match (name, value) {
                ("mapping", "normal") => options.mapping = Mapping::Normal,
                ("mapping", "mpbt") => options.mapping = Mapping::Mpbt,
                ("mapping", "mpbt-wt") => options.mapping = Mapping::MpbtWriteThrough,
                ("lines", _) => options.lines = flag.ok_or(word)?,
                ("interrupts", _) => options.interrupts = flag.ok_or(word)?,
                ("until", "heard") => options.until_heard = true,
                ("fault", "page") => options.fault = Some(Fault::Page),
                ("fault", "register") => options.fault = Some(Fault::Register),
                ("fault", "lock") => options.fault = Some(Fault::Lock),
                ("fault", "cl1invmb") => options.fault = Some(Fault::Cl1invmb),
                ("fault", "drain") => options.fault = Some(Fault::Drain),
                ("mapping" | "until" | "fault", _) => return Err(word),
                _ => {}
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_bad_ones_named() {
        let plain = Options::parse("/a/monitor seed=1 filter=put").expect("good");
        assert_eq!(plain.mapping, Mapping::MpbtWriteThrough);
        assert!(plain.lines && plain.interrupts && !plain.until_heard && plain.fault.is_none());
        let words = "mapping=normal lines=0 interrupts=0 until=heard fault=drain";
        let expected = Options {
            mapping: Mapping::Normal,
            lines: false,
            interrupts: false,
            until_heard: true,
            fault: Some(Fault::Drain),
        };
        assert_eq!(Options::parse(words), Ok(expected));
        for bad in [
            "mapping=none",
            "lines=2",
            "interrupts=",
            "until=never",
            "fault=all",
        ] {
            assert_eq!(Options::parse(bad), Err(bad));
        }
    }
}
