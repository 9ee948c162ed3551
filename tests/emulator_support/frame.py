"""What surrounds a kernel's instructions in assembly: its symbol, descriptor and metadata."""

from __future__ import annotations

_FRAME = """
.text
.globl k
.p2align 8
.type k,@function
k:
{code}
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr {vgprs}
  .amdhsa_next_free_sgpr {sgprs}
  .amdhsa_kernarg_size {size}
  .amdhsa_group_segment_fixed_size {lds}
{directives}
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{target}
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: {size}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: 0
    .wavefront_size: {lanes}
    .sgpr_count: {sgprs}
    .vgpr_count: {vgprs}
    .max_flat_workgroup_size: {items}
{metadata}
    .args:
{arguments}
...
.end_amdgpu_metadata
"""
_ARGUMENT = (
    "      - {{.name: {name}, .size: 8, .offset: {offset}, .value_kind: global_buffer,"
    " .address_space: global}}"
)


def kernel(
    target: str,
    code: str,
    *,
    arrays: str = "a",
    vgprs: int = 16,
    sgprs: int = 32,
    lanes: int = 32,
    items: int = 1024,
    lds: int = 0,
    directives: tuple[str, ...] = (),
    metadata: tuple[str, ...] = (),
) -> str:
    """Returns the assembly of a kernel `k` whose instructions are `code`; s[0:1] is the address of
    its arguments, the addresses of `arrays`, names separated by blanks. `lanes` and `items`: of a
    wave, and at most of a workgroup. `directives` are added to the descriptor, `metadata` to the
    kernel's record."""
    names = arrays.split()
    arguments = [_ARGUMENT.format(name=name, offset=8 * n) for n, name in enumerate(names)]
    return _FRAME.format(
        target=target,
        code=code,
        size=8 * len(names),
        vgprs=vgprs,
        sgprs=sgprs,
        lanes=lanes,
        items=items,
        lds=lds,
        directives="\n".join(f"  {line}" for line in directives),
        metadata="\n".join(f"    {line}" for line in metadata),
        arguments="\n".join(arguments),
    )
