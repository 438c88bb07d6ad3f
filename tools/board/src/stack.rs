//! How much stack an image may take: the deepest path through its machine code.
//!
//! The compiler says for each function how large its frame is (`-Z emit-stack-sizes`), and the
//! linker keeps the relocations of calls (`--emit-relocs`). So the sum of frames along any path is
//! known, but for three things, which are taken too high rather than too low:
//!
//! * A call by a pointer, of a `dyn`, is one to each function whose address is taken anywhere: up
//!   to `POINTERS` times on a path.
//! * A function of the toolchain, which comes compiled (`memcpy`, divisions), takes `FOREIGN`
//!   bytes.
//! * A function that may call itself is an error: there is no bound.
//!
//! Interrupts come on top.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail};
use object::elf::{
    R_ARM_THM_JUMP19, R_ARM_THM_JUMP24, R_ARM_THM_PC22, R_RISCV_BRANCH, R_RISCV_CALL,
    R_RISCV_CALL_PLT, R_RISCV_JAL, R_RISCV_RVC_BRANCH, R_RISCV_RVC_JUMP,
};
use object::endian::{LittleEndian as LE, U32, U64};
use object::read::Bytes;
use object::{
    Architecture, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget,
    SectionKind, SymbolKind,
};

/// Bytes of the frame of a function that does not say: `memcpy`, whose is the largest, has 84.
const FOREIGN: u64 = 96;

/// Calls by pointers on a path. A closure that calls another one might call itself, for all that
/// machine code says; in Rust it needs a reference to itself for that.
const POINTERS: u32 = 3;

/// The bytes of the deepest path from a function, with so many calls by pointers, and its next
/// step.
type Paths = BTreeMap<(u64, u32), (u64, Option<(u64, u32)>)>;

/// A function.
#[derive(Debug, Default)]
struct Function {
    name: String,
    size: u64,
    /// Bytes of its frame.
    frame: Option<u64>,
    /// Where the functions begin that it calls.
    calls: Vec<u64>,
    /// It calls by a pointer.
    by_pointer: bool,
}

/// The functions of an image, by their addresses.
#[derive(Debug, Default)]
struct Calls {
    functions: BTreeMap<u64, Function>,
    /// Those whose address is taken.
    taken: Vec<u64>,
}

/// Bytes of stack that the function `entry` of an image may take, and the functions on the deepest
/// path, each with the bytes of its frame.
///
/// # Errors
/// If the image does not say its frames, or has a function that may call itself.
pub fn deepest(image: &[u8], entry: &str) -> Result<(u64, Vec<(String, u64)>)> {
    let file = object::File::parse(image).context("the image is no ELF file")?;
    let calls = Calls::of(&file)?;
    let mut found = calls.functions.iter();
    let (&start, _) = found
        .find(|(_, function)| function.name == entry)
        .with_context(|| format!("there is no function {entry}"))?;
    let mut paths = BTreeMap::new();
    let first = (start, POINTERS);
    let bytes = calls.search(first, &mut Vec::new(), &mut paths)?;
    let (mut path, mut next) = (Vec::new(), Some(first));
    while let Some(at) = next {
        let function = &calls.functions[&at.0];
        let name = rustc_demangle::demangle(&function.name);
        path.push((format!("{name:#}"), function.frame.unwrap_or(FOREIGN)));
        next = paths[&at].1;
    }
    Ok((bytes, path))
}

impl Calls {
    fn of(file: &object::File<'_>) -> Result<Self> {
        let arm = file.architecture() == Architecture::Arm;
        let mut calls = Self::default();
        for symbol in file.symbols() {
            if symbol.kind() == SymbolKind::Text && symbol.size() > 0 {
                let function = calls.functions.entry(code(arm, symbol.address()));
                let function = function.or_default();
                symbol.name()?.clone_into(&mut function.name);
                function.size = symbol.size();
            }
        }
        calls.read_frames(file, arm)?;
        for section in file.sections() {
            if section.kind() == SectionKind::Text {
                calls.read_code(file.architecture(), &section)?;
            }
            if section.name()? != ".stack_sizes" {
                calls.read_relocations(file, &section, arm)?;
            }
        }
        Ok(calls)
    }

    /// The function that has this byte.
    fn at(&self, address: u64) -> Option<u64> {
        let (&start, function) = self.functions.range(..=address).next_back()?;
        (address < start + function.size).then_some(start)
    }

    /// Entries of an address and a number of 7 bits per byte.
    fn read_frames(&mut self, file: &object::File<'_>, arm: bool) -> Result<()> {
        let section = file.section_by_name(".stack_sizes");
        let section = section.context("the image does not say its frames")?;
        let mut data = Bytes(section.data()?);
        let half = |()| anyhow!("half an entry");
        while !data.is_empty() {
            let address = match file.is_64() {
                true => data.read::<U64<LE>>().map(|word| word.get(LE)),
                false => data.read::<U32<LE>>().map(|word| word.get(LE).into()),
            };
            let address = code(arm, address.map_err(half)?);
            let frame = data.read_uleb128().map_err(half)?;
            if let Some(function) = self.functions.get_mut(&address) {
                function.frame = Some(frame);
            }
        }
        Ok(())
    }

    /// Finds calls by a pointer. Half a longer instruction may look like one: no harm.
    fn read_code(&mut self, of: Architecture, section: &object::Section<'_, '_>) -> Result<()> {
        let (start, data) = (section.address(), section.data()?);
        let halves = data
            .chunks_exact(2)
            .map(|half| u16::from_le_bytes([half[0], half[1]]));
        let halves: Vec<u16> = halves.collect();
        // A call of a known function in two instructions, of which the second looks like one.
        let known: Vec<u64> = section.relocations().map(|(at, _)| at + 4).collect();
        for (index, &half) in halves.iter().enumerate() {
            let at = start + 2 * index as u64;
            let next = halves.get(index + 1).copied().unwrap_or_default();
            let found = match of {
                // blx; bx, but for a return.
                Architecture::Arm => {
                    half & 0xff87 == 0x4780 || half & 0xff87 == 0x4700 && half != 0x4770
                }
                // c.jalr; c.jr, but for a return; jalr, but for a return.
                Architecture::Riscv32 | Architecture::Riscv64 => {
                    let long = u32::from(half) | u32::from(next) << 16;
                    half & 0xf07f == 0x9002 && half != 0x9002
                        || half & 0xf07f == 0x8002 && half != 0x8082 && half != 0x8002
                        || long & 0x707f == 0x67 && long != 0x8067 && !known.contains(&at)
                }
                other => bail!("calls by pointers are not known for {other:?}"),
            };
            if found && let Some(function) = self.at(at) {
                self.functions.entry(function).or_default().by_pointer = true;
            }
        }
        Ok(())
    }

    /// Who calls whom, and whose address is taken.
    fn read_relocations(
        &mut self,
        file: &object::File<'_>,
        section: &object::Section<'_, '_>,
        arm: bool,
    ) -> Result<()> {
        for (at, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else {
                continue;
            };
            let symbol = file.symbol_by_index(symbol)?;
            let mut target = symbol.address().wrapping_add_signed(relocation.addend());
            if symbol.kind() == SymbolKind::Section && relocation.has_implicit_addend() {
                // The linker has stored the sum.
                let word = section.data_range(at, 4)?.unwrap_or_default();
                target = word
                    .iter()
                    .rev()
                    .fold(0, |all, byte| all << 8 | u64::from(*byte));
            }
            let target = code(arm, target);
            // Places inside of functions are those of jump tables, and of loops.
            let Some(callee) = self.functions.contains_key(&target).then_some(target) else {
                continue;
            };
            let caller = self.at(at).filter(|_| section.kind() == SectionKind::Text);
            match (is_jump(file.architecture(), relocation.flags()), caller) {
                // A loop.
                (true, Some(caller)) if caller == callee => (),
                (true, Some(caller)) => {
                    self.functions.entry(caller).or_default().calls.push(callee);
                }
                _ => self.taken.push(callee),
            }
        }
        self.taken.sort_unstable();
        self.taken.dedup();
        Ok(())
    }

    /// Finds the deepest path from a function, with up to so many calls by pointers: its bytes.
    fn search(
        &self,
        at: (u64, u32),
        above: &mut Vec<(u64, u32)>,
        paths: &mut Paths,
    ) -> Result<u64> {
        if let Some((bytes, _)) = paths.get(&at) {
            return Ok(*bytes);
        }
        let (start, pointers) = at;
        let function = &self.functions[&start];
        if above.contains(&at) {
            let name = rustc_demangle::demangle(&function.name);
            bail!("{name:#} may call itself");
        }
        above.push(at);
        let by_pointer = pointers.checked_sub(1).filter(|_| function.by_pointer);
        let taken = self.taken.iter().filter_map(|&to| Some((to, by_pointer?)));
        let called = function.calls.iter().map(|&to| (to, pointers));
        let mut deepest = (0, None);
        for next in called.chain(taken) {
            let bytes = self.search(next, above, paths)?;
            if bytes > deepest.0 {
                deepest = (bytes, Some(next));
            }
        }
        above.pop();
        let bytes = function.frame.unwrap_or(FOREIGN) + deepest.0;
        paths.insert(at, (bytes, deepest.1));
        Ok(bytes)
    }
}

/// The address of code: on Arm its lowest bit says how it is encoded.
fn code(arm: bool, address: u64) -> u64 {
    if arm { address & !1 } else { address }
}

/// True for a call or jump, whose target is the function that the relocation names.
fn is_jump(of: Architecture, flags: RelocationFlags) -> bool {
    let RelocationFlags::Elf { r_type } = flags else {
        return false;
    };
    match of {
        Architecture::Arm => [R_ARM_THM_PC22, R_ARM_THM_JUMP19, R_ARM_THM_JUMP24].contains(&r_type),
        _ => [
            R_RISCV_CALL,
            R_RISCV_CALL_PLT,
            R_RISCV_JAL,
            R_RISCV_BRANCH,
            R_RISCV_RVC_JUMP,
            R_RISCV_RVC_BRANCH,
        ]
        .contains(&r_type),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(all: &[(u64, u64, &[u64], bool)], taken: &[u64]) -> Calls {
        let functions = all.iter().map(|&(at, frame, calls, by_pointer)| {
            let function = Function {
                name: format!("at_{at}"),
                size: 1,
                frame: Some(frame).filter(|frame| *frame > 0),
                calls: calls.to_vec(),
                by_pointer,
            };
            (at, function)
        });
        Calls {
            functions: functions.collect(),
            taken: taken.to_vec(),
        }
    }

    fn bytes(calls: &Calls) -> Result<u64> {
        calls.search((1, POINTERS), &mut Vec::new(), &mut BTreeMap::new())
    }

    #[test]
    fn the_deepest_path_counts_and_not_the_longest() {
        let chain = calls(
            &[
                (1, 8, &[2, 3], false),
                (2, 8, &[4], false),
                (3, 100, &[], false),
                (4, 8, &[], false),
            ],
            &[],
        );
        assert_eq!(bytes(&chain).unwrap(), 108);
        // One that does not say.
        let foreign = calls(&[(1, 8, &[2], false), (2, 0, &[], false)], &[]);
        assert_eq!(bytes(&foreign).unwrap(), 8 + FOREIGN);
    }

    #[test]
    fn a_pointer_may_lead_to_whatever_has_its_address_taken() {
        let all: [(u64, u64, &[u64], bool); 3] =
            [(1, 8, &[], true), (2, 8, &[3], false), (3, 50, &[], false)];
        assert_eq!(bytes(&calls(&all, &[])).unwrap(), 8);
        assert_eq!(bytes(&calls(&all, &[2])).unwrap(), 66);
    }

    #[test]
    fn a_function_that_may_call_itself_has_no_bound() {
        let direct = calls(&[(1, 8, &[2], false), (2, 8, &[1], false)], &[]);
        assert!(bytes(&direct).is_err());
        let by_pointer = calls(&[(1, 8, &[2], false), (2, 10, &[], true)], &[2]);
        assert_eq!(bytes(&by_pointer).unwrap(), 18 + 10 * u64::from(POINTERS));
    }
}
