#!/usr/bin/env bash
# Package: triton 3.7.1 and 3.9.0, numpy 2.4.6
# Date: 2026-11-27
# Behaviour: Triton's interpreter ignores tl.device_assert, also with debug=True.
# Guess: The interpreter, which is there for debugging, reports an assertion that does not hold.
# Seen:
#     3.7.1: a kernel with debug=True asserted 1 > 5 and went on
#     3.9.0: a kernel with debug=True asserted 1 > 5 and went on

source "$(dirname "$0")/lib.sh"
export TRITON_INTERPRET=1
seen=""
for version in 3.7.1 3.9.0; do
    install "$version" --no-deps "triton==$version" numpy==2.4.6
    if said=$(run "$version" <<'END'
import triton
import triton.language as tl


@triton.jit(debug=True)
def checked(n):
    tl.device_assert(n > 5, "n is too small")
    tl.device_print("after the assertion", n)


checked[(1,)](1)
END
    ) && grep -q "after the assertion" <<<"$said"; then
        seen+="$version: a kernel with debug=True asserted 1 > 5 and went on"$'\n'
    else
        seen+="$version: the assertion was reported: $said"$'\n'
    fi
done
judge "${seen%$'\n'}"
