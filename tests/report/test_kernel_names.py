"""Names of kernels: short enough to read, whole where it matters, and no danger whatever a file
holds."""

from __future__ import annotations

import shutil

import pytest
from commprof_report.gpu import gpu_activity as kernel_names
from work import counted

SHORT = {
    "ampere_sgemm_128x64_nn": "ampere_sgemm_128x64_nn",
    "triton_poi_fused_add_0": "triton_poi_fused_add_0",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)": (
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    ),
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::sum<float> > "
    ">(at::native::ReduceOp<float>)": ("at::native::reduce_kernel<512, 1, ReduceOp<...>>"),
    "void cutlass::Kernel<cutlass_80_tensorop_s16816gemm>"
    "(cutlass_80_tensorop_s16816gemm::Params)": ("cutlass::Kernel<cutlass_80_tensorop_s16816gemm>"),
    "void (anonymous namespace)::bar<float>(float)": "bar<float>",
    "void k<(at::Mode)3, float*>(float*)": "k<(Mode)3, float*>",
    "decltype (x+y) g<int>(int)": "g<int>",
    "A::operator()(int) const": "A::operator()",
    "foo(int)::{lambda(float, int)#1}::operator()(int) const": "foo::{lambda#1}::operator()",
    "": "",
    "(": "(",
}
needs_demangler = pytest.mark.skipif(not shutil.which("c++filt"), reason="no c++filt")


@pytest.mark.parametrize("name", SHORT)
def test_a_name_is_shortened(name):
    assert kernel_names.shortened(name) == SHORT[name]


LONG_NAMES = (
    ")))>>>",
    "<<<<((((",
    "a" * 100_000,
    "a::<" * 20_000,
    "(" * 50_000,
    "{lambda(" * 10_000,
    "operator" * 9_000,
)


@pytest.mark.parametrize("name", LONG_NAMES, ids=range(7))
def test_a_name_that_is_none_costs_no_more_than_its_first_characters(name):
    with counted() as work:
        assert isinstance(kernel_names.shortened(name), str)
    assert work.calls <= 5 * 2_000


@needs_demangler
def test_mangled_names_are_demangled_and_others_stay():
    names = ["_Z3fooi", "_ZN12_GLOBAL__N_13barIfEEvT_", "_Zbroken", "plain", "_Z3foo\n_Z3fooi", ""]
    assert kernel_names.demangled(names) == {
        "_Z3fooi": "foo(int)",
        "_ZN12_GLOBAL__N_13barIfEEvT_": "void (anonymous namespace)::bar<float>(float)",
        "_Zbroken": "_Zbroken",
    }


@pytest.mark.slow
@needs_demangler
def test_a_name_that_stands_for_gigabytes_stays_as_it_is():
    """Each template has the one before twice as its arguments."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    bomb = "_Z1f1aIiiE" + "".join(f"S_IS{digit}_S{digit}_E" for digit in digits[:30])
    found = kernel_names.demangled([bomb, "_Z1A"])
    assert found == {bomb: bomb, "_Z1A": "A"}
