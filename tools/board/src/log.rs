//! The image's log: rzCOBS frames on the UART, decoded against the strings in the ELF file.

use defmt_decoder::{DecodeError, StreamDecoder, Table};

/// One decoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The core that wrote it, from the timestamp.
    pub(crate) core: Option<u32>,
    /// `None` for records printed whatever the level, as those of the protocol are.
    pub(crate) level: Option<&'static str>,
    pub(crate) text: String,
}

/// Turns bytes into lines.
pub(crate) struct Decoder<'t> {
    frames: Box<dyn StreamDecoder + Send + Sync + 't>,
    /// Frames that could not be decoded.
    pub(crate) broken: u32,
}

impl<'t> Decoder<'t> {
    pub(crate) fn new(table: &'t Table) -> Self {
        Self {
            frames: table.new_stream_decoder(),
            broken: 0,
        }
    }

    /// The lines completed by these bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Line> {
        self.frames.received(bytes);
        let mut lines = Vec::new();
        loop {
            match self.frames.decode() {
                Ok(frame) => {
                    let timestamp = frame.display_timestamp().map(|t| t.to_string());
                    lines.push(Line {
                        core: timestamp.as_deref().and_then(first_number),
                        level: frame.level().map(|level| level.as_str()),
                        text: frame.display_message().to_string(),
                    });
                }
                Err(DecodeError::UnexpectedEof) => return lines,
                // The frame is gone, the next one begins behind its separator.
                Err(DecodeError::Malformed) => self.broken += 1,
            }
        }
    }
}

/// The core number in a timestamp such as `core 3` or `3`.
fn first_number(text: &str) -> Option<u32> {
    let from = text.find(|c: char| c.is_ascii_digit())?;
    let digits = &text[from..];
    let to = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..to].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_numbers_are_read() {
        assert_eq!(first_number("core 31 at 5"), Some(31));
        assert_eq!(first_number("7"), Some(7));
        assert_eq!(first_number("none"), None);
    }
}
