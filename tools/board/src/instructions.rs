//! Which instructions an image of the SCC is made of.
//!
//! The chip's cores are P54C: the integer instructions up to the Pentium's, and
//! [CL1INVMB](Code::Cl1invmb). What came later ends in an invalid opcode at run time, on a machine
//! that nobody here has; so the machine code is read instead, instruction by instruction. Floating
//! point is left out too: the target promises soft floats. A `lock` prefix would run, but is wrong
//! in this library: it locks a bus that no other core is on.

use std::path::Path;

use anyhow::{Context, Result, bail};
use iced_x86::{Code, CpuidFeature, Decoder, DecoderOptions, Instruction};
use object::{Object, ObjectSection, SectionKind};

/// How such a core decodes: it has one instruction more, and the prefix of `pause` and `tzcnt` does
/// nothing to the `nop` and `bsf` behind it. (Compilers put it before any `bsf` of what is not 0,
/// where both give the same.)
const DECODED: u32 =
    DecoderOptions::CL1INVMB | DecoderOptions::NO_PAUSE | DecoderOptions::NO_MPFX_0FBC;

/// What a core of the SCC understands.
const UNDERSTOOD: [CpuidFeature; 7] = [
    CpuidFeature::INTEL8086,
    CpuidFeature::INTEL186,
    CpuidFeature::INTEL286,
    CpuidFeature::INTEL386,
    CpuidFeature::INTEL486,
    CpuidFeature::TSC,
    CpuidFeature::CL1INVMB,
];

/// The instructions for which the port is there at all: code without them is not it.
const EXPECTED: [(Code, &str); 3] = [
    (Code::Cl1invmb, "cl1invmb"),
    (Code::Wbinvd, "wbinvd"),
    (Code::Rdtsc, "rdtsc"),
];

/// How many instructions the image at `path` has, all of them understood by the SCC's cores; or
/// which are not.
pub fn of_image(path: &Path) -> Result<usize> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file = object::File::parse(&*bytes).context("the image is no ELF file")?;
    let mut seen = Seen::default();
    for section in file.sections().filter(|s| s.kind() == SectionKind::Text) {
        seen.look(section.address(), section.data()?);
    }
    seen.judge()
}

/// What was found in machine code.
#[derive(Default)]
struct Seen {
    count: usize,
    expected: [bool; EXPECTED.len()],
    bad: Vec<String>,
}

impl Seen {
    fn look(&mut self, address: u64, code: &[u8]) {
        for instruction in Decoder::with_ip(32, code, address, DECODED) {
            self.count += 1;
            for (seen, (code, _)) in self.expected.iter_mut().zip(EXPECTED) {
                *seen |= instruction.code() == code;
            }
            if let Some(why) = objection(&instruction) {
                let (at, code) = (instruction.ip(), instruction.code());
                self.bad.push(format!("{at:#x}: {code:?}: {why}"));
            }
        }
    }

    fn judge(self) -> Result<usize> {
        if let [first, ..] = &self.bad[..] {
            let all = self.bad.len();
            bail!(
                "{all} instructions that the SCC's cores lack or that do not help there, first {first}"
            );
        }
        for (seen, (_, name)) in self.expected.iter().zip(EXPECTED) {
            if !seen {
                bail!("the image has no {name}: is this the port?");
            }
        }
        Ok(self.count)
    }
}

/// Why an instruction must not be in an image.
fn objection(instruction: &Instruction) -> Option<String> {
    if instruction.is_invalid() {
        return Some("no instruction".into());
    }
    if instruction.has_lock_prefix() {
        return Some("locks a bus that no other core is on".into());
    }
    let needed = instruction.cpuid_features().iter();
    let lacking: Vec<_> = needed.filter(|f| !UNDERSTOOD.contains(f)).collect();
    (!lacking.is_empty()).then(|| format!("needs {lacking:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORT: [&[u8]; 3] = [&[0x0F, 0x0A], &[0x0F, 0x09], &[0x0F, 0x31]];

    fn judge(more: &[u8]) -> Result<usize> {
        let mut seen = Seen::default();
        seen.look(0x1000, &PORT.concat());
        seen.look(0x2000, more);
        seen.judge()
    }

    #[test]
    fn what_a_pentium_has_is_in_order() {
        for code in [
            &[0x90][..],                                 // nop
            &[0xF3, 0x90],                               // pause
            &[0xF3, 0x0F, 0xBC, 0xC1],                   // bsf eax, ecx, as compilers write it
            &[0x0F, 0x20, 0xE0],                         // mov eax, cr4
            &[0x0F, 0xC8],                               // bswap eax
            &[0x87, 0x03],                               // xchg [ebx], eax
            &[0x8D, 0xB4, 0x26, 0x00, 0x00, 0x00, 0x00], // lea as padding
        ] {
            assert_eq!(judge(code).ok(), Some(4), "{code:x?}");
        }
    }

    #[test]
    fn what_came_later_is_named() {
        for (code, named) in [
            (&[0x0F, 0x44, 0xC1][..], "CMOV"),
            (&[0x0F, 0x1F, 0x00], "MULTIBYTENOP"),
            (&[0xF3, 0x0F, 0xBD, 0xC1], "LZCNT"),
            (&[0xD9, 0xE8], "FPU"),
            (&[0x0F, 0xEF, 0xC0], "MMX"),
            (&[0x0F, 0x28, 0xC1], "SSE"),
            (&[0x0F, 0xAE, 0xF0], "SSE2"),
            (&[0x0F, 0xC7, 0x0B], "CX8"),
            (&[0xF0, 0x0F, 0xB1, 0x0B], "bus"),
            (&[0x0F, 0x0B, 0x0F, 0x04], "no instruction"),
        ] {
            let why = judge(code).expect_err(named).to_string();
            assert!(why.contains(named) && why.contains("0x200"), "{why}");
        }
    }

    #[test]
    fn code_without_the_port_is_none() {
        let why = Seen::default().judge().expect_err("empty").to_string();
        assert!(why.contains("cl1invmb"), "{why}");
    }
}
