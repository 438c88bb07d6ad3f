//! Instructions that load or store one operand in memory.
//!
//! The processor says which address faulted; the instruction says what to do there: how wide the
//! access is, which register or number takes part, which flags follow. Compilers fold a volatile
//! load into its use, so more than `mov` is met. What changes memory in one instruction, strings,
//! prefixes and 16 bits are left out: the caller must refuse what [`decode`] does not know.
//!
//! | bytes | instruction |
//! |---|---|
//! | 88 89 8A 8B /r, C6 C7 /0, A0 to A3 | `mov` |
//! | 0F B6 /r, 0F BE /r | `movzx`, `movsx` of a byte |
//! | 02 03 … 3A 3B /r | register = register *op* memory, for the eight operations; `cmp` |
//! | 38 39 /r, 80 81 83 /7 | `cmp` memory with a register or a number |
//! | 84 85 /r, F6 F7 /0 | `test` |

/// Bytes that are enough for every instruction known here.
pub const LONGEST: usize = 12;

/// The general registers in the order of their numbers: eax, ecx, edx, ebx, esp, ebp, esi, edi.
pub type Registers = [u32; 8];

const ESP: u8 = 4;

/// Bits of the flags register.
pub mod flag {
    /// Carry.
    pub const CF: u32 = 1 << 0;
    /// Even parity of the lowest byte.
    pub const PF: u32 = 1 << 2;
    /// Carry out of bit 3.
    pub const AF: u32 = 1 << 4;
    /// Zero.
    pub const ZF: u32 = 1 << 6;
    /// Negative.
    pub const SF: u32 = 1 << 7;
    /// Signed overflow.
    pub const OF: u32 = 1 << 11;
    /// All that an operation sets.
    pub const ALL: u32 = CF | PF | AF | ZF | SF | OF;
}

/// How wide an access is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Width {
    /// 8 bits.
    Byte,
    /// 32 bits.
    Word,
}

impl Width {
    const fn mask(self) -> u32 {
        match self {
            Self::Byte => 0xFF,
            Self::Word => !0,
        }
    }

    const fn sign(self) -> u32 {
        match self {
            Self::Byte => 0x80,
            Self::Word => 1 << 31,
        }
    }
}

/// The eight operations, in the order of their opcodes, and `test`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are what they are called")]
pub enum Operation {
    Add,
    Or,
    Adc,
    Sbb,
    And,
    Sub,
    Xor,
    Cmp,
    Test,
}

/// What is not in memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The register of this number; of bytes, 4 to 7 are ah, ch, dh, bh.
    Register(u8),
    /// A number in the instruction.
    Number(u32),
}

/// What is done with the operand in memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The register of this number takes it.
    Load(u8),
    /// A word takes a byte, its sign repeated if so said.
    Extend(u8, bool),
    /// It takes this.
    Store(Operand),
    /// The register takes the result of itself and memory; not for `cmp`.
    Combine(Operation, u8),
    /// Flags follow from memory and this.
    Compare(Operation, Operand),
}

/// An instruction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Its bytes.
    pub length: u32,
    /// Of its access.
    pub width: Width,
    /// What it does.
    pub action: Action,
}

/// One access to memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Of this width.
    Load(Width),
    /// Of this width, of this value.
    Store(Width, u32),
}

/// The instruction that `code` begins with, if it is one of these with an operand in memory.
pub fn decode(code: &[u8; LONGEST]) -> Option<Instruction> {
    let mut bytes = Bytes { code, at: 0 };
    let opcode = bytes.next()?;
    let width = match opcode & 1 {
        0 => Width::Byte,
        _ => Width::Word,
    };
    let (width, action) = match opcode {
        0x00..0x40 if matches!(opcode & 7, 2 | 3) => {
            let register = bytes.operand()?;
            (width, Action::Combine(operation(opcode >> 3)?, register))
        }
        0x38 | 0x39 => {
            let register = Operand::Register(bytes.operand()?);
            (width, Action::Compare(Operation::Cmp, register))
        }
        0x84 | 0x85 => {
            let register = Operand::Register(bytes.operand()?);
            (width, Action::Compare(Operation::Test, register))
        }
        0x88 | 0x89 => (width, Action::Store(Operand::Register(bytes.operand()?))),
        0x8A | 0x8B => (width, Action::Load(bytes.operand()?)),
        0xA0 | 0xA1 => {
            bytes.word()?;
            (width, Action::Load(0))
        }
        0xA2 | 0xA3 => {
            bytes.word()?;
            (width, Action::Store(Operand::Register(0)))
        }
        0x80 | 0x81 | 0x83 if bytes.operand()? == 7 => {
            let number = match opcode {
                0x81 => bytes.word()?,
                _ => bytes.next()? as i8 as u32,
            };
            let number = Operand::Number(number & width.mask());
            (width, Action::Compare(Operation::Cmp, number))
        }
        0xC6 | 0xC7 if bytes.operand()? == 0 => {
            (width, Action::Store(Operand::Number(bytes.number(width)?)))
        }
        0xF6 | 0xF7 if bytes.operand()? == 0 => {
            let number = Operand::Number(bytes.number(width)?);
            (width, Action::Compare(Operation::Test, number))
        }
        0x0F => {
            let signed = match bytes.next()? {
                0xB6 => false,
                0xBE => true,
                _ => return None,
            };
            let register = bytes.operand()?;
            (Width::Byte, Action::Extend(register, signed))
        }
        _ => return None,
    };
    // The stack pointer of a handler is not the instruction's.
    let stack = match action {
        Action::Extend(register, _) => register == ESP,
        Action::Load(register) | Action::Combine(_, register) => {
            width == Width::Word && register == ESP
        }
        Action::Store(Operand::Register(register))
        | Action::Compare(_, Operand::Register(register)) => {
            width == Width::Word && register == ESP
        }
        Action::Store(_) | Action::Compare(..) => false,
    };
    (!stack).then_some(Instruction {
        length: bytes.at as u32,
        width,
        action,
    })
}

fn operation(number: u8) -> Option<Operation> {
    use Operation::{Adc, Add, And, Cmp, Or, Sbb, Sub, Xor};
    [Add, Or, Adc, Sbb, And, Sub, Xor, Cmp]
        .get(usize::from(number & 7))
        .copied()
}

/// Reads an instruction, byte by byte.
struct Bytes<'c> {
    code: &'c [u8; LONGEST],
    at: usize,
}

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = self.code.get(self.at).copied();
        self.at += 1;
        byte
    }

    fn word(&mut self) -> Option<u32> {
        let bytes = [self.next()?, self.next()?, self.next()?, self.next()?];
        Some(u32::from_le_bytes(bytes))
    }

    fn number(&mut self, width: Width) -> Option<u32> {
        match width {
            Width::Byte => self.next().map(u32::from),
            Width::Word => self.word(),
        }
    }

    /// Steps over an operand in memory, and returns the other operand's number. `None` if it is in
    /// a register.
    fn operand(&mut self) -> Option<u8> {
        let byte = self.next()?;
        let (mode, number, place) = (byte >> 6, byte >> 3 & 7, byte & 7);
        let base = match place {
            4 => self.next()? & 7,
            _ => place,
        };
        match (mode, base) {
            (0, 5) | (2, _) => {
                self.word()?;
            }
            (1, _) => {
                self.next()?;
            }
            (0, _) => {}
            _ => return None,
        }
        Some(number)
    }
}

impl Instruction {
    /// Carries it out: its one access by `memory`, the rest on these registers and flags.
    ///
    /// # Errors
    /// Those of `memory`; registers and flags are as before then.
    pub fn run<E>(
        self,
        registers: &mut Registers,
        flags: &mut u32,
        memory: impl FnOnce(Access) -> Result<u32, E>,
    ) -> Result<(), E> {
        let width = self.width;
        let value = |registers: &Registers, operand| match operand {
            Operand::Register(number) => register(registers, width, number),
            Operand::Number(number) => number,
        };
        if let Action::Store(operand) = self.action {
            let value = value(registers, operand);
            return memory(Access::Store(width, value)).map(|_| ());
        }
        let found = memory(Access::Load(width))? & width.mask();
        match self.action {
            Action::Load(number) => set_register(registers, width, number, found),
            Action::Extend(number, signed) => {
                let found = match signed {
                    true => found as u8 as i8 as u32,
                    false => found,
                };
                set_register(registers, Width::Word, number, found);
            }
            Action::Combine(operation, number) => {
                let old = register(registers, width, number);
                let new = calculate(operation, width, old, found, flags);
                if operation != Operation::Cmp {
                    set_register(registers, width, number, new);
                }
            }
            Action::Compare(operation, operand) => {
                let other = value(registers, operand);
                calculate(operation, width, found, other, flags);
            }
            Action::Store(_) => {}
        }
        Ok(())
    }
}

fn register(registers: &Registers, width: Width, number: u8) -> u32 {
    let word = |number: u8| registers[usize::from(number & 7)];
    match (width, number) {
        (Width::Word, _) => word(number),
        (Width::Byte, 0..4) => word(number) & 0xFF,
        (Width::Byte, _) => word(number & 3) >> 8 & 0xFF,
    }
}

fn set_register(registers: &mut Registers, width: Width, number: u8, value: u32) {
    let (number, mask, shift) = match (width, number) {
        (Width::Word, _) => (number & 7, !0, 0),
        (Width::Byte, 0..4) => (number, 0xFF, 0),
        (Width::Byte, _) => (number & 3, 0xFF00, 8),
    };
    let word = &mut registers[usize::from(number)];
    *word = *word & !mask | value << shift & mask;
}

/// What `operation` makes of the two; sets the flags.
fn calculate(operation: Operation, width: Width, a: u32, b: u32, flags: &mut u32) -> u32 {
    use Operation::{Adc, Add, And, Cmp, Or, Sbb, Sub, Test, Xor};
    let mask = u64::from(width.mask());
    let carry = match operation {
        Adc | Sbb => u64::from(*flags & flag::CF),
        _ => 0,
    };
    let wide = match operation {
        Add | Adc => u64::from(a) + u64::from(b) + carry,
        Sub | Sbb | Cmp => u64::from(a).wrapping_sub(u64::from(b)).wrapping_sub(carry),
        Or => u64::from(a | b),
        And | Test => u64::from(a & b),
        Xor => u64::from(a ^ b),
    };
    let result = (wide & mask) as u32;
    let sign = width.sign();
    let overflow = match operation {
        Add | Adc => !(a ^ b) & (a ^ result) & sign,
        Sub | Sbb | Cmp => (a ^ b) & (a ^ result) & sign,
        _ => 0,
    };
    let half = match operation {
        Or | And | Test | Xor => 0,
        _ => (a ^ b ^ result) & flag::AF,
    };
    let mut set = half;
    for (bit, is) in [
        (flag::CF, wide & !mask != 0),
        (flag::PF, (result as u8).count_ones().is_multiple_of(2)),
        (flag::ZF, result == 0),
        (flag::SF, result & sign != 0),
        (flag::OF, overflow != 0),
    ] {
        if is {
            set |= bit;
        }
    }
    *flags = *flags & !flag::ALL | set;
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use flagpost_common::Dice;
    use iced_x86::{Decoder, DecoderOptions, Instruction as Other, Mnemonic, OpKind};

    fn padded(code: &[u8]) -> [u8; LONGEST] {
        core::array::from_fn(|i| code.get(i).copied().unwrap_or(0xCC))
    }

    fn other(code: &[u8; LONGEST]) -> Other {
        Decoder::new(32, code, DecoderOptions::NONE).decode()
    }

    /// Each pair of an opcode and what follows it, with random numbers behind: what is known here
    /// is what another decoder makes of it.
    #[test]
    fn what_is_known_is_known_right() {
        let mut dice = Dice::new(1);
        let mut known = 0;
        for pair in 0..=u16::MAX {
            for _ in 0..8 {
                let mut code = [0; LONGEST];
                code.fill_with(|| dice.roll() as u8);
                [code[0], code[1]] = pair.to_be_bytes();
                if let Some(ours) = decode(&code) {
                    known += 1;
                    agree(ours, &code);
                }
            }
        }
        assert!(known > 40_000, "{known}");
        assert_eq!(decode(&padded(&[0x0F, 0x0B, 0, 0])), None);
    }

    fn agree(ours: Instruction, code: &[u8; LONGEST]) {
        use Mnemonic as M;
        let theirs = other(code);
        assert_eq!(ours.length as usize, theirs.len(), "{code:x?} {theirs:?}");
        assert!(!theirs.has_lock_prefix());
        let memory = (0..2).filter(|&i| theirs.op_kind(i) == OpKind::Memory);
        assert_eq!(memory.count(), 1, "{code:x?}");
        assert_eq!(
            theirs.memory_size().size(),
            match ours.width {
                Width::Byte => 1,
                Width::Word => 4,
            }
        );
        let operation = |operation| match operation {
            Operation::Add => M::Add,
            Operation::Or => M::Or,
            Operation::Adc => M::Adc,
            Operation::Sbb => M::Sbb,
            Operation::And => M::And,
            Operation::Sub => M::Sub,
            Operation::Xor => M::Xor,
            Operation::Cmp => M::Cmp,
            Operation::Test => M::Test,
        };
        // Numbers are in the order of the processor's own; of bytes, those of ah to bh follow.
        let register = |register: iced_x86::Register| register.number() as u8;
        let (mnemonic, first) = match ours.action {
            Action::Load(into) => (M::Mov, Some(into)),
            Action::Extend(into, false) => (M::Movzx, Some(into)),
            Action::Extend(into, true) => (M::Movsx, Some(into)),
            Action::Combine(what, into) => (operation(what), Some(into)),
            Action::Store(_) => (M::Mov, None),
            Action::Compare(what, _) => (operation(what), None),
        };
        assert_eq!(theirs.mnemonic(), mnemonic, "{code:x?}");
        if let Some(into) = first {
            assert_eq!(register(theirs.op0_register()), into, "{code:x?}");
        }
        if let Action::Store(operand) | Action::Compare(_, operand) = ours.action {
            match operand {
                Operand::Register(number) => assert_eq!(register(theirs.op1_register()), number),
                Operand::Number(number) => {
                    let mask = u64::from(ours.width.mask());
                    assert_eq!(theirs.immediate(1) & mask, number.into(), "{code:x?}");
                }
            }
        }
    }

    /// The forms that images have been seen to use.
    #[test]
    fn the_forms_of_images_are_known() {
        for (code, expected) in [
            (&[0x8B, 0x05, 0, 1, 0, 0xF8][..], "Load(0)"),
            (&[0x8B, 0x0E], "Load(1)"),
            (&[0xA1, 0x24, 0x82, 0, 0xF9], "Load(0)"),
            (&[0x89, 0x08], "Store(Register(1))"),
            (&[0xC7, 0x00, 0, 0, 0, 0], "Store(Number(0))"),
            (&[0xC7, 0x05, 0, 2, 0, 0xE0, 1, 0, 0, 0], "Store(Number(1))"),
            (&[0x23, 0x05, 0x80, 0, 0, 0xF8], "Combine(And, 0)"),
            (&[0xF7, 0x00, 2, 0, 0, 0], "Compare(Test, Number(2))"),
            (&[0x88, 0x04, 0x0E], "Store(Register(0))"),
            (&[0x0F, 0xB6, 0x44, 0x24, 8], "Extend(0, false)"),
        ] {
            let found = decode(&padded(code)).expect(expected);
            assert_eq!(std::format!("{:?}", found.action), expected);
            assert_eq!(found.length as usize, code.len(), "{code:x?}");
        }
    }

    #[test]
    fn what_is_not_one_access_is_refused() {
        for code in [
            &[0x8B, 0xC1][..],         // mov eax, ecx
            &[0x8B, 0x20],             // mov esp, [eax]
            &[0x89, 0x20],             // mov [eax], esp
            &[0x01, 0x08],             // add [eax], ecx
            &[0x83, 0x00, 1],          // add dword [eax], 1
            &[0x87, 0x08],             // xchg [eax], ecx
            &[0xF3, 0xA5],             // rep movsd
            &[0x66, 0x8B, 0x00],       // mov ax, [eax]
            &[0xF0, 0x0F, 0xB1, 0x0B], // lock cmpxchg
            &[0xFF, 0x30],             // push dword [eax]
            &[0x0F, 0x0A],             // cl1invmb
        ] {
            assert_eq!(decode(&padded(code)), None, "{code:x?}");
        }
    }

    /// Carries out `code` with these registers and flags, and this in memory.
    fn run(code: &[u8], registers: &mut Registers, flags: &mut u32, memory: u32) -> Access {
        let mut seen = None;
        let instruction = decode(&padded(code)).expect("known");
        let done = instruction.run(registers, flags, |access| {
            seen = Some(access);
            Ok::<_, ()>(memory)
        });
        assert_eq!(done, Ok(()));
        seen.expect("an access")
    }

    #[test]
    fn registers_and_flags_are_as_the_processor_leaves_them() {
        const ALL: Registers = [0x11_2233, 0x8000_0001, 3, 4, 5, 6, 7, 8];
        for (code, memory, register, value, flags) in [
            (&[0x8B, 0x00][..], 9, 0, 9, 0),
            (&[0x8A, 0x20], 0x1FF, 0, 0x11_FF33, 0), // mov ah, [eax]
            (&[0x0F, 0xBE, 0x10], 0x80, 2, 0xFFFF_FF80, 0),
            (
                &[0x23, 0x08],
                0x8000_0000,
                1,
                0x8000_0000,
                flag::SF | flag::PF,
            ),
            (&[0x03, 0x08], 0x8000_0000, 1, 1, flag::CF | flag::OF),
            (&[0x2B, 0x10], 3, 2, 0, flag::ZF | flag::PF),
            (
                &[0x3B, 0x10],
                4,
                2,
                3,
                flag::CF | flag::SF | flag::PF | flag::AF,
            ),
            (&[0x39, 0x10], 4, 2, 3, 0),
            (&[0x3A, 0x10], 0x83, 2, 3, flag::CF | flag::SF | flag::OF),
            (
                &[0xF7, 0x00, 2, 0, 0, 0],
                1,
                0,
                0x11_2233,
                flag::ZF | flag::PF,
            ),
            (&[0x83, 0x38, 0xFF], !0, 0, 0x11_2233, flag::ZF | flag::PF),
        ] {
            let (mut registers, mut found) = (ALL, 0x202);
            run(code, &mut registers, &mut found, memory);
            assert_eq!(registers[register], value, "{code:x?}");
            assert_eq!(found, 0x202 | flags, "{code:x?}");
        }
        let store = run(&[0x88, 0x30], &mut ALL.clone(), &mut 0, 0); // mov [eax], dh
        assert_eq!(store, Access::Store(Width::Byte, 0));
        let store = run(&[0xC7, 0x00, 1, 2, 3, 4], &mut ALL.clone(), &mut 0, 0);
        assert_eq!(store, Access::Store(Width::Word, 0x0403_0201));
        // With the carry of before.
        let (mut registers, mut flags) = (ALL, flag::CF);
        run(&[0x1B, 0x10], &mut registers, &mut flags, 2);
        assert_eq!((registers[2], flags & flag::ZF), (0, flag::ZF));
    }

    #[test]
    fn a_refused_access_changes_nothing() {
        let instruction = decode(&padded(&[0x2B, 0x10])).expect("known");
        let (mut registers, mut flags) = ([7; 8], 0x2);
        let done = instruction.run(&mut registers, &mut flags, |_| Err(1));
        assert_eq!((done, registers, flags), (Err(1), [7; 8], 0x2));
    }
}
