# Entry of each trap: a frame of all registers, and then Rust.

    .macro trap vector
    .globl _flagpost_trap_\vector
_flagpost_trap_\vector:
    pushl   $0                      # no error code
    pushl   $\vector
    jmp     _flagpost_common
    .endm

    .macro trap_with_code vector
_flagpost_trap_\vector:
    pushl   $\vector
    jmp     _flagpost_common
    .endm

    .section .text._flagpost_traps, "ax", @progbits
    .irp vector, 0,1,2,3,4,5,6,7,9,15,16,18,19,48,63,64,65
    trap \vector
    .endr
    .irp vector, 8,10,11,12,13,14,17
    trap_with_code \vector
    .endr

_flagpost_common:
    pushal
    cld
    movl    %esp, %eax
    pushl   %eax
    call    _flagpost_trap
    addl    $4, %esp
    popal
    addl    $8, %esp
    iretl

    .section .rodata._flagpost_traps, "a", @progbits
    .balign 4
    .globl _flagpost_vectors
    .globl _flagpost_vectors_end
_flagpost_vectors:
    .irp vector, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,48,63,64,65
    .long   \vector
    .long   _flagpost_trap_\vector
    .endr
_flagpost_vectors_end:
