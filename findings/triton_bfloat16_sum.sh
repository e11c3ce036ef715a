#!/usr/bin/env bash
# Package: triton 3.7.1 and 3.9.0, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: Triton's interpreter keeps bfloat16 as 16-bit integers and adds the integers.
# Guess: 1 + 1 is 2 in every type that holds 2, as it is in compiled code.
# Seen:
#     3.7.1: bfloat16 1 + 1 = 1.7014118e+38, float16 1 + 1 = 2.
#     3.9.0: bfloat16 1 + 1 = 1.7014118e+38, float16 1 + 1 = 2.

source "$(dirname "$0")/lib.sh"
export TRITON_INTERPRET=1
seen=""
for version in 3.7.1 3.9.0; do
    install "$version" --no-deps "triton==$version" numpy==2.4.6
    numbers=$(run "$version" <<'END'
import triton
import triton.language as tl


@triton.jit
def twice(DTYPE: tl.constexpr):
    one = tl.full((1,), 1, tl.float32).to(DTYPE)
    tl.device_print("", (one + one).to(tl.float32))


twice[(1,)](tl.bfloat16)
twice[(1,)](tl.float16)
END
    )
    read -r -d '' a b < <(grep -o '\[.*\]' <<<"$numbers" | tr -d '[]')
    seen+="$version: bfloat16 1 + 1 = $a, float16 1 + 1 = $b"$'\n'
done
judge "${seen%$'\n'}"
