#!/usr/bin/env bash
# Package: triton 3.7.1 and 3.9.0, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: When Triton's interpreter rounds float32 to an 8-bit float and the mantissa overflows,
#     the carry into the exponent is lost.
# Guess: 1.97 is rounded to 2, and 500 to 512 or to the largest number of the type, 448.
# Seen:
#     3.7.1: 1.97 -> 1.0, 500.0 -> 256.0, 1.9 -> 1.875
#     3.9.0: 1.97 -> 1.0, 500.0 -> 256.0, 1.9 -> 1.875

source "$(dirname "$0")/lib.sh"
export TRITON_INTERPRET=1
seen=""
for version in 3.7.1 3.9.0; do
    install "$version" --no-deps "triton==$version" numpy==2.4.6
    numbers=$(run "$version" <<'END'
import triton
import triton.language as tl


@triton.jit
def rounded(x):
    tl.device_print("", tl.full((1,), x, tl.float32).to(tl.float8e4nv).to(tl.float32))


for x in (1.97, 500.0, 1.9):
    rounded[(1,)](x)
END
    )
    read -r -d '' a b c < <(grep -o '\[.*\]' <<<"$numbers" | sed 's/\.\]/.0]/' | tr -d '[]')
    seen+="$version: 1.97 -> $a, 500.0 -> $b, 1.9 -> $c"$'\n'
done
judge "${seen%$'\n'}"
