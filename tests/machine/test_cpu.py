"""The width of vectors, and the fastest of some calls."""

from tiled_matmul.machine import cpu


def test_the_widest_vectors_decide():
    everything = {"avx512f": True, "fma": True, "neon": False}
    assert cpu.widest(everything) == ("AVX-512", 16, 2)
    assert cpu.widest(everything, "znver4") == ("AVX-512", 16, 1)
    assert cpu.widest({"fma": True}) == ("AVX2 with FMA", 8, 2)
    assert cpu.widest({"neon": True}) == ("NEON", 4, 4)
    assert cpu.widest({}) == ("128-bit vectors", 4, 1)


def test_this_machine_has_a_core():
    core = cpu.cpu_core()
    assert core.cores >= 1 and core.lanes in (4, 8, 16) and core.fma_units >= 1


def test_the_first_call_is_not_timed():
    calls = []
    assert cpu.shortest_ns(calls.append, 1, runs=3) > 0
    assert len(calls) == 4
