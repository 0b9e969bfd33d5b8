"""Kernels by name and digest, in the text that Inductor writes, and what a driver says of Triton's.

The C++ is that of torch 2.13 on a CPU. There is no GPU here: the Triton source has the form of
torch's own `TritonKernel`, and the objects have the attributes of the kernels that torch launches.
"""

import sys
from types import SimpleNamespace

import pytest

from ci_perf.measuring import generated_kernels
from ci_perf.measuring.generated_kernels import list_compiled, list_kernels
from ci_perf.model.base import MAX_SOURCE_CHARS

CPP = """
async_compile = AsyncCompile()
cpp_fused_add_sin_0 = async_compile.cpp_pybinding(['const float*', 'float*'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0, float* out_ptr0)
{
    auto tmp2 = static_cast<float>(3.0);
}
''')
async_compile.wait(globals())
def call(args):
    '''Call
    the kernels.'''
"""
TRITON = '''
# Topologically Sorted Source Nodes: [add], Original ATen: [aten.add]
triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', """
import triton
@triton_heuristics.pointwise(
    filename=__file__,
    inductor_meta={'kernel_name': 'triton_poi_fused_add_0', 'backend_hash': 'HASH'},
)
@triton.jit
def triton_poi_fused_add_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp1 = 3.0
""", device_str='cuda')
'''.replace("HASH", "0123456789abcdef" * 4)


def digests(module):
    return {kernel.name: kernel.digest for kernel in list_kernels([module], {})}


@pytest.mark.parametrize(
    ("module", "name"), [(CPP, "cpp_fused_add_sin"), (TRITON, "triton_poi_fused_add")]
)
def test_a_constant_changes_the_digest_and_the_number_in_its_graph_does_not(module, name):
    before = digests(module)

    assert list(before) == [name]
    assert digests(module.replace(f"{name}_0", f"{name}_7")) == before
    assert digests(module.replace("3.0", "4.0")) != before


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (CPP, "auto tmp2", "// model.py:12 in forward\n    auto tmp2"),
        (CPP, "auto tmp2", "/* model.py:12\n in forward */ auto tmp2"),
        (CPP, "<torch/csrc/inductor/cpp_prefix.h>", "<torch/csrc/inductor/cpp_prefix.h>  "),
        (TRITON, "    tmp1 =", "    # model.py:12 in forward\n    tmp1 ="),
        (TRITON, "    tmp1 =", "    'model.py:12'\n    tmp1 ="),
        (TRITON, "0123456789abcdef" * 4, "f" * 64),
    ],
)
def test_comments_docstrings_and_hashes_do_not_change_the_digest(module, old, new):
    assert old in module
    assert digests(module.replace(old, new)) == digests(module)


def test_the_folder_of_a_cache_does_not_change_the_digest():
    prefix = '"/tmp/torchinductor_{}/2r/c2rnilspx43ivnzu4uieul65kx65dfhfbptbh5og4wk6rqebuxoo.h"'
    here, there = (
        CPP.replace("<torch/csrc/inductor/cpp_prefix.h>", prefix.format(who)) for who in "ab"
    )

    assert digests(here) == digests(there)


def a_compiled(kind, name, registers, spills):
    return type(kind, (), {"name": name, "n_regs": registers, "n_spills": spills})()


def test_registers_and_spills_are_those_of_all_variants_of_a_kernel():
    """torch 2.13 drops Triton's own object when it launches a kernel without Triton."""
    compiled = list_compiled(
        [
            a_compiled("CompiledKernel", "triton_poi_fused_add_0", 32, 3),
            a_compiled("StaticallyLaunchedCudaKernel", "triton_poi_fused_add_0", 40, 1),
            a_compiled("CompiledKernel", "not_loaded", None, None),
            "another object",
        ]
    )
    (kernel,) = list_kernels([TRITON], compiled)

    assert compiled == {"triton_poi_fused_add_0": (40, 4)}
    assert (kernel.registers, kernel.spills) == (40, 4)


def test_variants_of_one_code_are_one_kernel():
    again = TRITON.replace("fused_add_0", "fused_add_1")
    compiled = {"triton_poi_fused_add_0": (32, 3), "triton_poi_fused_add_1": (40, 1)}

    (kernel,) = list_kernels([TRITON, again, TRITON], compiled)

    assert (kernel.registers, kernel.spills) == (40, 4)


def test_a_statement_that_leaves_a_loop_is_other_code():
    loop = "    for i in range(2):\n        tmp0 = 1\n        tmp1 = 3.0"
    inside = TRITON.replace("    tmp1 = 3.0", loop)

    assert digests(inside) != digests(inside.replace("        tmp1", "    tmp1"))


def test_a_source_is_kept_where_it_is_asked_for_and_not_too_large():
    huge = CPP.replace("3.0", "3" * MAX_SOURCE_CHARS)
    for module in (CPP, TRITON, huge):
        (bare,) = list_kernels([module], {})
        (kept,) = list_kernels([module], {}, keeps_sources=True)
        assert bare.source == ""
        assert bare.digest == kept.digest
        assert ("too many to keep" in kept.source) is (module is huge)
        assert ("3.0" in kept.source) is (module is not huge)
        # A digest stands for a source that is left out, so that a diff shows other code.
        assert module is not huge or kept.digest in kept.source


def test_all_sources_of_a_launch_fit_into_its_result():
    sources = [CPP.replace("3.0", str(number) * 990_000) for number in range(1, 10)]

    kernels = list_kernels(sources, {}, keeps_sources=True)

    assert len({kernel.digest for kernel in kernels}) == 9
    assert sum("too many to keep" in kernel.source for kernel in kernels) == 1


@pytest.mark.parametrize(
    ("codecache", "reason"),
    [
        (
            SimpleNamespace(
                PyCodeCache=SimpleNamespace(modules=[SimpleNamespace(__file__="gone.py")])
            ),
            "gone.py",
        ),
        (SimpleNamespace(), "PyCodeCache"),
    ],
)
def test_a_cache_that_cannot_be_read_is_told(monkeypatch, codecache, reason):
    monkeypatch.setitem(sys.modules, "torch._inductor.codecache", codecache)

    code = generated_kernels.read_generated()

    assert code is not None
    assert reason in code.absent


def test_without_a_compiler_there_is_nothing(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._inductor.codecache", raising=False)

    assert generated_kernels.read_generated() is None
