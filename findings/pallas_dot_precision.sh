#!/usr/bin/env bash
# Package: jax 0.10.2, jaxlib 0.10.2, numpy 2.4.6
# Date: 2026-11-29
# Behaviour: In a Pallas kernel jnp.dot on float32 is lowered for an NVIDIA GPU to a product in TF32,
#     which keeps 10 bits of a factor. In the interpreter it gives float32, with and without
#     precision="highest" the same bits, so that no test on a CPU can see it.
# Guess: float32 times float32 is float32, as it is in the interpreter.
# Seen:
#     default: interpreted 0 elements differ from "highest"; for a GPU inputPrecision = tf32
#     highest: interpreted 0 elements differ from "highest"; for a GPU inputPrecision = ieee

source "$(dirname "$0")/lib.sh"
install pallas jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
seen=$(run pallas 2>/dev/null <<'END'
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as pallas_triton
from jaxlib.mlir import ir
from jaxlib.triton import dialect

SHAPE = jax.ShapeDtypeStruct((64, 64), jnp.float32)


def matmul(precision, interpret):
    def kernel(a, b, c):
        c[...] = jnp.dot(a[...], b[...], precision=precision)

    options = {} if interpret else {"compiler_params": pallas_triton.CompilerParams()}
    return pl.pallas_call(kernel, out_shape=SHAPE, interpret=interpret, **options)


def lowered(precision):
    """Return the Triton IR of the kernel, made without a GPU."""
    traced = jax.jit(matmul(precision, interpret=False)).trace(SHAPE, SHAPE)
    module = traced.lower(lowering_platforms=("cuda",)).compiler_ir("stablehlo")
    found = []

    def look(operation):
        if "mhlo.backend_config" in operation.attributes:
            config = ir.DictAttr(operation.attributes["mhlo.backend_config"])
            found.append(ir.StringAttr(config["ir"]).value_bytes)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    context = ir.Context()
    dialect.register_dialect(context)
    context.allow_unregistered_dialects = True
    with context:
        return ir.Module.parse(found[0]).operation.get_asm()


a, b = np.random.default_rng(0).standard_normal((2, 64, 64), np.float32)
best = np.asarray(matmul("highest", interpret=True)(a, b))
for name, precision in (("default", None), ("highest", "highest")):
    c = np.asarray(matmul(precision, interpret=True)(a, b))
    differ = (c.view(np.uint32) ^ best.view(np.uint32)).astype(bool).sum()
    text = re.search(r"inputPrecision = \w+", lowered(precision))  # where it is not printed: ieee
    text = text[0] if text else "inputPrecision = ieee"
    print(f'{name}: interpreted {differ} elements differ from "highest"; for a GPU {text}')
END
)
judge "$seen"
