# From multiboot, and on the other cores from 16-bit mode, to Rust. All cores come to `enter`.
#
# The monitor is linked OFFSET above where it is loaded. Until paging is on, an address of the PC is
# the symbol minus OFFSET.

    .equ OFFSET, 0xFC000000
    .equ PAGING, 0x80010000         # CR0.PG, CR0.WP
    .equ TASKS, 48
    .equ STACK, 8192

    .section .multiboot, "a", @progbits
    .balign 4
    .long 0x1BADB002
    .long 0
    .long -0x1BADB002

    .section .text._flagpost_start, "ax", @progbits
    .code32
    .globl _flagpost_start
_flagpost_start:
    cli
    cld
    movl    %eax, %esi              # multiboot's number
    movl    %ebx, %edi              # and what it says
    jmp     _flagpost_paging

# The first page of code of the other cores; `start` copies it to 0x8000.
    .code16
    .globl _flagpost_trampoline
    .globl _flagpost_trampoline_end
_flagpost_trampoline:
    cli
    cld
    xorw    %ax, %ax
    movw    %ax, %ds
    lgdtl   0x8000 + (_flagpost_low_gdt - _flagpost_trampoline)
    movl    %cr0, %eax
    orb     $1, %al
    movl    %eax, %cr0
    ljmpl   $8, $0x8000 + (_flagpost_protected - _flagpost_trampoline)
    .balign 4
_flagpost_low_gdt:
    .word   _flagpost_gdt_end - _flagpost_gdt - 1
    .long   _flagpost_gdt - OFFSET
    .code32
_flagpost_protected:
    movw    $16, %ax
    movw    %ax, %ds
    movw    %ax, %ss
    movl    $(_flagpost_paging - OFFSET), %eax
    jmp     *%eax
_flagpost_trampoline_end:

# Large pages: the PC's memory at its own addresses, and at OFFSET.
_flagpost_paging:
    movl    $(_flagpost_boot_directory - OFFSET), %eax
    movl    %eax, %cr3
    movl    %cr4, %eax
    orl     $0x10, %eax             # CR4.PSE
    movl    %eax, %cr4
    movl    %cr0, %eax
    orl     $PAGING, %eax
    movl    %eax, %cr0
    movl    $_flagpost_enter, %eax
    jmp     *%eax

_flagpost_enter:
    lgdt    _flagpost_high_gdt
    ljmpl   $8, $_flagpost_flat
_flagpost_flat:
    movw    $16, %ax
    movw    %ax, %ds
    movw    %ax, %es
    movw    %ax, %fs
    movw    %ax, %gs
    movw    %ax, %ss
    movl    $1, %eax
    cpuid
    shrl    $24, %ebx               # this core's number
    cmpl    $TASKS, %ebx
    jae     _flagpost_park
    leal    24(,%ebx,8), %eax
    ltr     %ax
    leal    1(%ebx), %eax
    imull   $STACK, %eax
    leal    _flagpost_stacks(%eax), %esp
    xorl    %ebp, %ebp
    subl    $4, %esp                # 16 bytes aligned at the call
    pushl   %edi
    pushl   %esi
    pushl   %ebx
    call    _flagpost_boot          # does not return
_flagpost_park:
    cli
    hlt
    jmp     _flagpost_park

    .section .data._flagpost_gdt, "aw", @progbits
    .balign 8
_flagpost_gdt:
    .quad   0
    .quad   0x00CF9A000000FFFF      # code
    .quad   0x00CF92000000FFFF      # data
    .rept TASKS                     # the task register says which core this is; no task is ever
    .quad   0x0000890000000067      # switched to
    .endr
_flagpost_gdt_end:

    .balign 4
_flagpost_high_gdt:
    .word   _flagpost_gdt_end - _flagpost_gdt - 1
    .long   _flagpost_gdt

    .balign 4096
_flagpost_boot_directory:
    .set    entry, 0x83             # large, writable, present
    .rept   1008
    .long   entry
    .set    entry, entry + 0x400000
    .endr
    .long   0x83                    # OFFSET
    .set    entry, 0xFC400093       # uncached
    .rept   15
    .long   entry
    .set    entry, entry + 0x400000
    .endr

    .section .bss._flagpost_stacks, "aw", @nobits
    .balign 16
_flagpost_stacks:
    .skip   TASKS * STACK
