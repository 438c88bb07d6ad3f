//! The image's log: lines of text, or rzCOBS frames, decoded against the strings in the ELF file.

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
    log: Log<'t>,
    /// Frames that could not be decoded.
    pub(crate) broken: u32,
}

enum Log<'t> {
    Frames(Box<dyn StreamDecoder + Send + Sync + 't>),
    /// The bytes of a line that is not over.
    Text(Vec<u8>),
}

impl<'t> Decoder<'t> {
    /// For frames, with the strings that they name; for text without.
    pub(crate) fn new(table: Option<&'t Table>) -> Self {
        Self {
            log: match table {
                Some(table) => Log::Frames(table.new_stream_decoder()),
                None => Log::Text(Vec::new()),
            },
            broken: 0,
        }
    }

    /// The lines completed by these bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let frames = match &mut self.log {
            Log::Frames(frames) => frames,
            Log::Text(open) => {
                open.extend(bytes);
                while let Some(end) = open.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = open.drain(..=end).collect();
                    lines.push(Line {
                        core: None,
                        level: None,
                        text: String::from_utf8_lossy(&line).trim_end().to_owned(),
                    });
                }
                return lines;
            }
        };
        frames.received(bytes);
        loop {
            match frames.decode() {
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
    text.split(|c: char| !c.is_ascii_digit())
        .find_map(|digits| digits.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_in_lines_whatever_the_pieces() {
        let mut decoder = Decoder::new(None);
        let mut lines = Vec::new();
        for piece in ["@be", "gin case=a\r\n@e", "nd", "\nrest"] {
            lines.extend(decoder.feed(piece.as_bytes()));
        }
        let texts: Vec<_> = lines.iter().map(|line| &*line.text).collect();
        assert_eq!(texts, ["@begin case=a", "@end"]);
    }
}
