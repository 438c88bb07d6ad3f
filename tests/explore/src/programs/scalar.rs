//! Elements, as bits, and how accumulates combine them.

/// What an element is. Values are its bits, above them zeros.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// `u8`.
    U8,
    /// `u16`.
    U16,
    /// `u32`.
    U32,
    /// `u64`.
    U64,
    /// `i8`.
    I8,
    /// `i16`.
    I16,
    /// `i32`.
    I32,
    /// `i64`.
    I64,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// True or false.
    Bool,
    /// Of `f32`; the real part is the lower half.
    Complex,
    /// An `i32` with its place, which is the upper half.
    Placed,
}

impl Scalar {
    /// All.
    pub const ALL: [Self; 13] = [
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::F32,
        Self::F64,
        Self::Bool,
        Self::Complex,
        Self::Placed,
    ];

    /// All bits of an element.
    pub fn mask(self) -> u64 {
        match self {
            Self::U8 | Self::I8 => 0xFF,
            Self::U16 | Self::I16 => 0xFFFF,
            Self::U32 | Self::I32 | Self::F32 => 0xFFFF_FFFF,
            Self::U64 | Self::I64 | Self::F64 | Self::Complex => u64::MAX,
            Self::Bool => 1,
            // Few values and places, so that some are equal.
            Self::Placed => 0x7_0000_0003,
        }
    }

    /// Whether results depend on how they are rounded.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64 | Self::Complex)
    }

    /// Whether it has bits to combine and to compare.
    pub fn is_integer(self) -> bool {
        !self.is_float() && !matches!(self, Self::Bool | Self::Placed)
    }

    /// Operations for which the order does not count.
    pub(super) fn operations(self) -> &'static [Operation] {
        use Operation::{And, LogicalAnd, LogicalOr, LogicalXor, Max, Min, Or, Prod, Sum, Xor};
        match self {
            Self::F32 | Self::F64 => &[Sum, Prod, Min, Max],
            Self::Bool => &[LogicalAnd, LogicalOr, LogicalXor],
            Self::Complex => &[Sum, Prod],
            Self::Placed => &[Min, Max],
            _ => &[
                Sum, Prod, Min, Max, And, Or, Xor, LogicalAnd, LogicalOr, LogicalXor,
            ],
        }
    }

    /// A whole number that it can hold, as bits.
    pub(super) fn whole(self, number: i16) -> u64 {
        match self {
            Self::F32 | Self::Complex => f32::from(number).to_bits().into(),
            Self::F64 => f64::from(number).to_bits(),
            _ => number as u64 & self.mask(),
        }
    }

    /// The size of a float; 0 for other elements.
    pub(super) fn size(self, value: u64) -> f64 {
        match self {
            Self::F32 => f64::from(f32::from_bits(value as u32)).abs(),
            Self::F64 => f64::from_bits(value).abs(),
            // Of a product, no part is larger than the product of these.
            Self::Complex => parts(value).map(|part| f64::from(part).abs()).iter().sum(),
            _ => 0.0,
        }
    }

    /// Whole numbers up to here are what they are, in floats.
    pub(super) fn exact(self) -> f64 {
        match self {
            Self::F32 | Self::Complex => f64::from(1_u32 << f32::MANTISSA_DIGITS),
            _ => (1_u64 << f64::MANTISSA_DIGITS) as f64,
        }
    }
}

/// How an accumulate combines.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Adds; integers wrap around.
    Sum,
    /// Multiplies; integers wrap around.
    Prod,
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Both are true.
    LogicalAnd,
    /// One is true.
    LogicalOr,
    /// Only one is true.
    LogicalXor,
    /// The new one.
    Replace,
    /// The old one: to fetch it.
    NoOp,
}

impl Operation {
    /// What `old` and `new` come to.
    pub fn apply(self, old: u64, new: u64, scalar: Scalar) -> u64 {
        match self {
            Self::Replace => return new,
            Self::NoOp => return old,
            _ => {}
        }
        match scalar {
            Scalar::F32 => {
                let [old, new] = [old, new].map(|bits| f32::from_bits(bits as u32));
                self.of_floats(old.into(), new.into())
                    .map_or(0, |done| (done as f32).to_bits().into())
            }
            Scalar::F64 => {
                let done = self.of_floats(f64::from_bits(old), f64::from_bits(new));
                done.map_or(0, f64::to_bits)
            }
            Scalar::Complex => {
                let ([a, b], [c, d]) = (parts(old), parts(new));
                let [re, im] = match self {
                    Self::Sum => [a + c, b + d],
                    _ => [a * c - b * d, b * c + a * d],
                };
                u64::from(im.to_bits()) << 32 | u64::from(re.to_bits())
            }
            Scalar::Placed => {
                // Values that count against the order are turned round; the place breaks ties.
                let key = |bits: u64| match self {
                    Self::Max => (-i64::from(bits as i32), bits >> 32),
                    _ => (i64::from(bits as i32), bits >> 32),
                };
                if key(old) <= key(new) { old } else { new }
            }
            Scalar::I8 => self.of_signed((old as i8).into(), (new as i8).into()) & scalar.mask(),
            Scalar::I16 => self.of_signed((old as i16).into(), (new as i16).into()) & scalar.mask(),
            Scalar::I32 => self.of_signed((old as i32).into(), (new as i32).into()) & scalar.mask(),
            Scalar::I64 => self.of_signed(old as i64, new as i64),
            _ => self.of_unsigned(old, new) & scalar.mask(),
        }
    }

    fn of_unsigned(self, old: u64, new: u64) -> u64 {
        match self {
            Self::Sum => old.wrapping_add(new),
            Self::Prod => old.wrapping_mul(new),
            Self::Min => old.min(new),
            Self::Max => old.max(new),
            Self::And => old & new,
            Self::Or => old | new,
            Self::Xor => old ^ new,
            Self::LogicalAnd => (old != 0 && new != 0).into(),
            Self::LogicalOr => (old != 0 || new != 0).into(),
            Self::LogicalXor => ((old != 0) != (new != 0)).into(),
            Self::Replace => new,
            Self::NoOp => old,
        }
    }

    fn of_signed(self, old: i64, new: i64) -> u64 {
        match self {
            Self::Min => old.min(new) as u64,
            Self::Max => old.max(new) as u64,
            _ => self.of_unsigned(old as u64, new as u64),
        }
    }

    /// Floats have no bits to combine.
    fn of_floats(self, old: f64, new: f64) -> Option<f64> {
        match self {
            Self::Sum => Some(old + new),
            Self::Prod => Some(old * new),
            Self::Min => Some(old.min(new)),
            Self::Max => Some(old.max(new)),
            _ => None,
        }
    }
}

/// The parts of a complex number.
fn parts(bits: u64) -> [f32; 2] {
    [bits as u32, (bits >> 32) as u32].map(f32::from_bits)
}
