"""What a fused epilogue saves: the bytes of a layer, in one kernel and in several.

A layer is activation(a·b + bias) + residual, with a (M, K), b (K, N) and the rest (M, N). Bytes are
counted as if each kernel read its operands from memory and wrote its result there once. A C that
stays in the L2 cache costs less, so the prediction is an upper bound for small ones.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layer:
    """A layer's sizes, the bytes of an element, and which steps follow its product.

    The bias is added within the product on both sides, as cuBLAS does it.
    """

    m: int
    n: int
    k: int
    activation: bool = False
    residual: bool = False
    bytes_each: int = 2

    @property
    def flops(self) -> int:
        """The operations of the product."""
        return 2 * self.m * self.n * self.k

    @property
    def product_bytes(self) -> int:
        """The bytes of the product alone: a and b read, C written."""
        m, n, k = self.m, self.n, self.k
        return self.bytes_each * (m * k + k * n + m * n)

    @property
    def c_bytes(self) -> int:
        """The bytes of C, or of the residual."""
        return self.bytes_each * self.m * self.n

    @property
    def separate_bytes(self) -> int:
        """The bytes of a kernel for each step: an activation moves C twice, a sum three times."""
        return self.product_bytes + (2 * self.activation + 3 * self.residual) * self.c_bytes

    @property
    def two_kernels_bytes(self) -> int:
        """The bytes where one kernel does all steps after the product, as `torch.compile` does."""
        after = 2 + self.residual if self.activation or self.residual else 0
        return self.product_bytes + after * self.c_bytes

    @property
    def fused_bytes(self) -> int:
        """The bytes of one kernel: C is written once, and the residual read."""
        return self.product_bytes + self.residual * self.c_bytes

    def predicted_ms(self, rate_tflops: float, bandwidth_gbps: float) -> tuple[float, float, float]:
        """Return (separate, in two kernels, fused) milliseconds.

        The product takes the longer of its operations and its bytes; what follows takes its bytes.
        """
        compute, a_byte = self.flops / (rate_tflops * 1e9), 1 / (bandwidth_gbps * 1e6)
        product = max(compute, self.product_bytes * a_byte)
        after = (
            moved - self.product_bytes for moved in (self.separate_bytes, self.two_kernels_bytes)
        )
        separate, together = (product + moved * a_byte for moved in after)
        return separate, together, max(compute, self.fused_bytes * a_byte)
