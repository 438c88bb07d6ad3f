# First instructions of every hart, and of every trap. The only assembly of the board.
#
# Module-level assembly does not see the target's features; so it says what it uses.
    .attribute arch, "rv64imac_zicsr"

# Start of RAM: entry of all harts at once, in M mode, as QEMU leaves them: a0 = hart, a1 = device
# tree.
    .section .reset, "ax", @progbits
    .globl  _flagpost_reset
_flagpost_reset:
    la      t0, _flagpost_start
    jr      t0

# Sets up what Rust code needs, and nothing else: trap vector, floating point, two stacks. a0 and a1
# stay.
#   mscratch = top of the trap stack = end of this hart's share
#   sp       = 8 KiB below
    .section .text._flagpost_start, "ax", @progbits
_flagpost_start:
    la      t0, _flagpost_trap
    csrw    mtvec, t0               # first, so that no later mistake goes unheard
    csrw    mie, zero
    li      t0, 0x2000              # mstatus.FS = initial: the compiler may use f registers anywhere
    csrs    mstatus, t0
    la      t0, _flagpost_layout
    ld      t1, 0(t0)               # harts that there is room for
    bgeu    a0, t1, _flagpost_park
    ld      t1, 8(t0)               # where the stacks start
    ld      t2, 16(t0)              # bytes per hart
    addi    t3, a0, 1
    mul     t3, t3, t2
    add     t1, t1, t3
    csrw    mscratch, t1
    li      t2, 8192
    sub     sp, t1, t2
    li      s0, 0                   # end of the chain of frame pointers
    li      ra, 0
    call    _flagpost_boot          # does not return

_flagpost_park:
    wfi                             # no interrupt is enabled: for ever
    j       _flagpost_park

# Entry of every trap. None is ever returned from, so nothing is saved. s0 stays: the chain of frame
# pointers leads on into the frame that trapped. The trapped stack pointer stays in mscratch.
    .balign 4
_flagpost_trap:
    csrrw   sp, mscratch, sp
    la      t0, _flagpost_trap_in_trap
    csrw    mtvec, t0
    call    _flagpost_report_trap   # does not return

# A trap while a trap is reported: there may be no stack. Write (1 << 16) | 0x3333 to the finisher,
# so that the machine ends with status 1 rather than repeat itself for ever.
    .balign 4
_flagpost_trap_in_trap:
    li      t0, 0x100000
    li      t1, 0x13333
    sw      t1, 0(t0)
    j       _flagpost_park

# Loads from address 0, where the board has nothing. Rust has no defined way to do this.
    .section .text._flagpost_load_from_zero, "ax", @progbits
    .globl  _flagpost_load_from_zero
_flagpost_load_from_zero:
    lw      a0, 0(zero)
    ret
