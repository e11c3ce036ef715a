"""Short kernels in the styles of learners: what the compiler takes, the interpreter takes too.

Each form is the body of `kernel(out, a, b, n)`, run by one thread. The interpreter's result is
compared with that of Python itself on numpy's arrays. All numbers are small multiples of 1/2, so
that the result does not depend on types and rounding, which test_values.py compares. Whether Numba
takes a form is asked of its compiler, which needs no GPU; its result is not known here.
"""

import pickle
from types import SimpleNamespace

import form_compiler
import numpy as np
import pytest
from form_compiler import forms, function
from numba import cuda

from tiled_matmul.microscope.compiled.cuda import NoCompiler, elsewhere
from tiled_matmul.microscope.cuda import KernelError, OutOfBounds, trace
from tiled_matmul.microscope.cuda.kernel import run

ABOVE = """
TILE, K, PAIR, NONE, ONE = 4, 2, (2, 3), None, np.int32(3)

@cuda.jit(device=True)
def add(x, y=10):
    return x + y

@cuda.jit(device=True)
def optional(x, y=None):
    if y is None:
        return x
    return x + y

@cuda.jit(device=True)
def swapped(x, y):
    return y, x

def plain(x):
    return x + 1
"""

RUN = forms(
    """
# for i, j in tuple of tuples
for i, j in ((0, 0), (0, 1), (1, 0)):
    out[i, j] = i + 2 * j + 1
# for i, (j, k) nested
for i, (j, k) in ((0, (0, 5)), (0, (1, 6)), (1, (0, 7))):
    out[i, j] = k
# for i, x in mixed types
for i, x in ((0, 1.5), (1, 2.5)):
    out[0, i] = x
# enumerate tuple
for i, x in enumerate((1.5, 2.5)):
    out[0, i] = x
# enumerate range
for i, x in enumerate(range(3, 6)):
    out[0, i] = x
# zip range tuple
for x, y in zip(range(2), (1.5, 2.5)):
    out[0, x] = y
# zip 3
for x, y, z in zip(range(2), (1.5, 2.5), range(4, 9)):
    out[z - 4, x] = y
# enumerate zip
for i, (x, y) in enumerate(zip(range(2), (1.5, 2.5))):
    out[i, x] = y
# enumerate shape
for i, x in enumerate(a.shape):
    out[0, i] = x
# zip shapes
for x, y in zip(a.shape, b.shape):
    out[0, 0] += x * y
# enumerate array
for i, x in enumerate(a[0]):
    out[0, i] = x
# for x in array
for x in a[0]:
    out[0, 0] += x
# for row in array
for row in a:
    out[0, 0] += row[0]
# for target tuple store
for out[0, 0], out[0, 1] in ((1, 2), (3, 4)):
    pass
# for else
for i in range(3):
    if a[0, i] > 1:
        break
else:
    out[0, 0] = 7
# in tuple
if n in (0, 1):
    out[0, 0] = 1
# in outside tuple
if n in PAIR:
    out[0, 0] = 1
# in shape
if n in a.shape:
    out[0, 0] = 1
# in range
if n in range(3):
    out[0, 0] = 1
# in list
if n in [0, 1]:
    out[0, 0] = 1
# tuple in tuple of tuples
if (n, 1) in ((0, 1), (1, 1)):
    out[0, 0] = 1
# in empty tuple
if n in ():
    out[0, 0] = 1
# is not None
if a is not None:
    out[0, 0] = 1
# is True
if (n > 0) is True:
    out[0, 0] = 1
# chained compare in
if 0 <= n in (1, 2):
    out[0, 0] = 1
# tuple slice
t = (n, 2, 3)
u = t[1:]
out[0, 0] = u[0] + len(u)
# hetero tuple slice
t = (n, 2.5, 3)
u = t[1:]
out[0, 0] = u[0]
# strides slice
out[0, 0] = a.strides[:1][0]
# tuple + tuple
t = (1, 2) + a.shape
out[0, 0] = t[3]
# tuple * 2
t = (1, 2) * 2
out[0, 0] = t[3]
# slice store scalar
out[0, 0:1] = 3.0
# slice store one element col
x = 1
out[0, x:x + 1] = a[0, 0]
# slice store int
tile = cuda.shared.array((4, 4), float32)
tile[1] = 0
out[0, 0] = tile[1, 1]
# a tuple to a slice
out[0, 0:2] = (1, 2)
# slice store tuple var
t = 1.0, 2.0
out[0, 0:2] = t
# slice store step
out[0, ::2] = 1
# slice store column
out[:, 1] = 5
# slice store in row view
row = out[0]
row[:] = 1
# shape 2*4
t = cuda.local.array(2 * 4, float32)
t[0] = 1; out[0, 0] = t[0]
# shape (TILE, 16+2)
t = cuda.shared.array((TILE, 16 + 2), float32)
t[0, 0] = 1; out[0, 0] = t[0, 0]
# shape local alias TILE
w = TILE
t = cuda.shared.array((w, w), float32)
t[0, 0] = 1; out[0, 0] = t[0, 0]
# shape local tuple
s = (4, 5)
t = cuda.shared.array(s, float32)
t[0, 0] = 1; out[0, 0] = t[0, 0]
# shape local tuple TILE
s = (TILE, TILE)
t = cuda.shared.array(s, float32)
t[0, 0] = 1; out[0, 0] = t[0, 0]
# shape outside tuple index
t = cuda.shared.array(PAIR[0], float32)
t[0] = 1; out[0, 0] = t[0]
# shape -(-5//2)
t = cuda.shared.array(-(-5 // 2), float32)
t[0] = 1; out[0, 0] = t[0]
# closure
def inner(x):
    return x + n
out[0, 0] = inner(n)
# inner function assigns
def inner(x):
    out[0, 1] = x
inner(3)
# starred tuple
t = (*a.shape, 1)
out[0, 0] = t[2]
# float('inf')
out[0, 0] = float("inf")
# unpack range
p, q, r = range(3)
out[0, 0] = q
# range attr
r = range(3)
for i in r:
    out[0, i] = 1
# len range
out[0, 0] = len(range(3))
# np maximum
out[0, 0] = np.maximum(a[0, 0], b[0, 0]) + np.minimum(a[0, 0], 2.5)
# shape unpack consts
M, N = 4, 8
t = cuda.shared.array((M, N), float32)
t[0, 0] = 1; out[0, 0] = t[0, 0]
# shape alias of alias
v = TILE
w = v
t = cuda.shared.array((v, w), float32)
t[0, 0] = 1; out[0, 0] = t[0, 0]
# shape local PAIR[1]
w = PAIR[1]
t = cuda.shared.array(w, float32)
t[0] = 1; out[0, 0] = t[0]
# shape PAIR[-1]
t = cuda.shared.array(PAIR[-1], float32)
t[0] = 1; out[0, 0] = t[0]
# shape PAIR slice
t = cuda.shared.array(PAIR[:1], float32)
t[0] = 1; out[0, 0] = t[0]
# shape literal tuple mult
t = cuda.shared.array((4,) * 2, float32)
t[0, 0] = 1; out[0, 0] = t[0, 0]
# for in list
for x in [1, 2]:
    out[0, x] = x
# for in list of vars
for x in [n, n + 1]:
    out[0, x] = x
# for in list of tuples
for i, j in [(0, 0), (0, 1), (1, 0)]:
    out[i, j] = 9
# in list of vars
if n in [n + 1, 2]:
    out[0, 0] = 1
# float in int tuple
if a[1, 2] in (0, 1):
    out[0, 0] = 1
# threadIdx in tuple
if cuda.threadIdx.x in (0, 1):
    out[0, 0] = 1
# pair of grid
i = cuda.grid(1)
for dy, dx in ((i, 0), (0, i), (n, 1)):
    out[dy, dx] = 9
# tuple slice local const name
t = (n, 2, 3)
k = 1
u = t[k:]
out[0, 0] = u[0]
# tuple slice neg
t = (n, 2, 3)
u = t[:-1]
out[0, 0] = u[1]
# sum with start
out[0, 0] = sum((1, 2), 3)
# sum shape
out[0, 0] = sum(a.shape)
# divmod grid
p, q = divmod(cuda.grid(1), 3)
out[p, q] = 5
# flag is False
f = n > 1
if f is False:
    out[0, 0] = 1
# int is True
if n is True:
    out[0, 0] = 1
# slice cut
out[0, 2:100] = 7
# slice cut negative
out[1, -2:] = 7
# slice cut below
out[1, -9:2] = 7
# slice empty
out[1, 3:1] = 7
# slice neg step store scalar
out[1, ::-2] = 7
# slice 2d block
out[1:3, 1:3] = n
# slice block store from typed
out[n - 1:n + 1, 0] = a[0, 0]
# slice row int neg
out[-1] = 3
# slice store bool
out[0, :] = n > 1
# slice tuple row
out[1] = (1, 2, 3, 4)
# slice store local row tuple
acc = cuda.local.array((2, 2), float32)
acc[0] = (1, 2)
out[0, 0] = acc[0, 1]
# list target for
for [i, j] in ((0, 1), (1, 0)):
    out[i, j] = 9
# zip arrays
for x, y in zip(a[0], b[1]):
    out[0, 0] += x * y
# nested fn in loop
for i in range(3):
    def sq(x):
        return x * i
    out[0, i] = sq(i)
# nested fn late binding
w = 1
def f(x):
    return x * w
w = 5
out[0, 0] = f(2)
# nested fn multiple returns
def f(x):
    if x > 1:
        return 1
    return 2
out[0, 0] = f(n)
# nested fn loop
def f(x):
    s = 0.0
    for i in range(x):
        s += a[0, i]
    return s
out[0, 0] = f(n)
# nested fn default
def f(x, y=3):
    return x * y
out[0, 0] = f(n)
# nested fn calls nested
def f(x):
    return x + 1
def g(x):
    return f(x) * 2
out[0, 0] = g(n)
# lambda closure
f = lambda i: a[i, 0] + n
out[0, 0] = f(1)
# nested with shared
def f(i):
    t = cuda.local.array(4, float32)
    t[0] = i
    return t[0]
out[0, 0] = f(1)
# continue else
for i in range(4):
    if i % 2:
        continue
    out[0, i] = 9
else:
    out[1, 0] = 5
# else with return
for i in range(4):
    if i > n:
        return
else:
    out[1, 0] = 5
out[0, 0] = 3
# nested for else break outer
for i in range(3):
    for j in range(3):
        if i * j == 2:
            break
    else:
        continue
    out[i, j] = 99
    break
# while else no break
i = 0
while i < n:
    i += 1
else:
    out[0, i] = 77
# while else break
i = 0
while True:
    i += 1
    if i > 2:
        break
else:
    out[0, i] = 77
out[0, 0] = i
# optional
x = None
if n > 1:
    x = 3
if x is not None:
    out[0, 0] = x
# flat loop
for i in range(16):
    r, c = divmod(i, 4)
    out[r, c] = a[c, r]
# register tile slices
acc = cuda.local.array((2, 2), float32)
acc[:, :] = 0.0
rows = cuda.local.array(2, float32)
cols = cuda.local.array(2, float32)
for k in range(4):
    for i in range(2):
        rows[i] = a[i, k]
        cols[i] = b[k, i]
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        acc[i, j] += rows[i] * cols[j]
for i in range(2):
    for j in range(2):
        out[i, j] = acc[i, j]
# shared halo
tile = cuda.shared.array((TILE, 4 + 1), float32)
for i in range(4):
    tile[i, :] = 0
    for j in range(4):
        tile[i, j] = a[i, j]
cuda.syncthreads()
for i in range(4):
    for j in range(4):
        out[j, i] = tile[i, j + 1]
# stencil neighbours
for dy, dx in ((-1, 0), (1, 0), (0, -1), (0, 1)):
    y, x = 1 + dy, 1 + dx
    if 0 <= y < a.shape[0] and 0 <= x < a.shape[1]:
        out[1, 1] += a[y, x]
# argmax tuple assign
best, at = a[2, 0], 0
for i, x in enumerate(a[2]):
    if x > best:
        best, at = x, i
out[0, 0], out[0, 1] = at, best
# search with else
for i in range(4):
    if b[0, i] > 13:
        break
else:
    i = -1
out[0, 0] = i
# in loop membership
for i in range(8):
    if i not in (1, 3, 5):
        out[0, i % 4] += i
# in range check
row = n
if row in range(a.shape[0]):
    out[0, 0] = row
# zero sub view
block = out[1:3, 1:3]
block[:] = -1
# zero row by loop over shape
for i in range(out.shape[0]):
    out[i] = 0
# zip rows
for x, y in zip(a, b):
    out[0, 0] += x[0] * y[0]
# sum of products
out[0, 0] = sum((a[0, 0] * b[0, 0], a[0, 1] * b[1, 0]))
# local named like builtins
min = 99.0
for x in a[0]:
    if x < min:
        min = x
out[0, 0] = min
# nested function with if
def pick(x):
    if x < 0:
        return -x
    elif x > 2:
        return 2.0
    return x
for j in range(4):
    out[0, j] = pick(a[0, j])
# tuple repeat loop
for d in (1,) * 3:
    out[0, 0] += d
# tuple slice loop
t = (5, 6, 7, 8)
for d in t[1:3]:
    out[0, 0] += d
# tuple reversed slice
for i, d in enumerate((5, 6, 7)[::-1]):
    out[0, i] = d
# shape zip check
for x, y in zip(a.shape, out.shape):
    if x != y:
        return
out[0, 0] = 1
# none default device
out[0, 0] = optional(n) + optional(n, 5)
# default device
out[0, 0] = add(n) + add(n, 1) + add(x=1, y=2)
# elif chain
if n == 0:
    x = 1
elif n == 1:
    x = 2
elif n in (2, 3):
    x = 3
else:
    x = 4
out[0, 0] = x
# fill twice
acc = cuda.local.array(4, float32)
acc.fill(2)
acc[1:3] = 5
s = 0
for x in acc:
    s += x
out[0, 0] = s
# slice of slice loop
for x in a[0, 1:3]:
    out[0, 0] += x
# range float div
for i in range(5 / 2):
    out[0, i] = i
# local named sum
sum = 0.0
for i in range(3):
    sum += a[0, i]
out[0, 0] = sum
# local named max
max = 3
out[0, 0] = max
# local named len range int
len = 2; int = 3; float = 4.0; abs = 1; min = 2
out[0, 0] = len + int + float + abs + min
# local named range
range = 3
out[0, 0] = range
# loop var named sum
for sum in range(3):
    out[0, sum] = 1
# chained assign array
x = y = cuda.local.array(4, float32)
x[0] = 2; out[0, 0] = y[0]
# chained two tuples
p, q = r, s = n, 3
out[0, 0] = p + s
# chained subscript
out[0, 0] = out[0, 1] = x = 4
# aug all ops
x = n
x //= 2; x %= 5; x <<= 2; x >>= 1; x &= 7; x |= 1; x ^= 2; x **= 2; x -= 1; x *= 3
out[0, 0] = x
# aug element ops
out[0, 0] //= 2; out[0, 0] %= 5; out[0, 0] **= 2; out[0, 0] /= 3
# swap elements
out[0, 0], out[0, 1] = out[0, 1], out[0, 0]
# select array ternary
x = a if n > 2 else b
out[0, 0] = x[0, 0]
# swap arrays
x, y = a, b
for i in range(3):
    x, y = y, x
out[0, 0] = x[0, 0]
# bool arithmetic
c = (n > 1) + (n > 2)
out[0, 0] = c * 2
# nested ternary
x = 1 if n > 3 else 2 if n > 1 else 3.0
out[0, 0] = x
# two local arrays swap
x = cuda.local.array(4, float32); y = cuda.local.array(4, float32)
x[0] = 1; y[0] = 2
x, y = y, x
out[0, 0] = x[0]
# tuple return in loop
p, q = 1, 2
for i in range(3):
    p, q = swapped(p, q)
out[0, 0] = p
# keyword argument partly
out[0, 0] = add(n, y=2)
# shape outside tuple
t = cuda.shared.array(PAIR, float32)
t[0, 0] = 1; out[0, 0] = t[0, 0]
# matmul with early return and m, n, k
m, k = a.shape
k2, n2 = b.shape
row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
if row >= m or col >= n2: return
acc = float32(0)
p = 0
while p < k:
    acc += a[row, p] * b[p, col]
    p += 1
out[row, col] = acc
# tile loop with ragged end
for start in range(0, 10, 4):
    end = min(start + 4, 10)
    for k in range(start, end):
        out[0, k % 4] += k
# grid stride
for i in range(cuda.grid(1), 16, cuda.gridsize(1)):
    out[i // 4, i % 4] = i * i
# register tile
acc = cuda.local.array((2, 2), float32)
for i in range(2):
    for j in range(2):
        acc[i, j] = 0
for k in range(4):
    for i in range(2):
        for j in range(2):
            acc[i, j] += a[i, k] * b[k, j]
for i in range(2):
    for j in range(2):
        out[i, j] = acc[i, j]
# swizzle
for y in range(4):
    for x in range(4):
        out[y, x ^ y] = y * 4 + x
# snake order
for y in range(4):
    for x in range(4):
        col = x if y % 2 == 0 else 3 - x
        out[y, col] = y * 4 + x
# masks
for i in range(4):
    mask = i < n
    out[0, i] = mask * a[0, i]
# masks and or
ok = (n > 0) & (n < 4) | (n == 9)
out[0, 0] = ok
# bool variable
found = False
for i in range(4):
    if b[0, i] == 14:
        found = True
out[0, 0] = found
# flag while
going = True
i = 0
while going:
    i += 1
    going = i < 5
out[0, 0] = i
# argmax
best = -1e30
at = -1
for i in range(4):
    if a[2, i] > best:
        best = a[2, i]
        at = i
out[0, 0] = at
out[0, 1] = best
# prefix sum
s = 0
for i in range(4):
    s, out[0, i] = s + i, s
# gcd
x, y = 48, 18
while y:
    x, y = y, x % y
out[0, 0] = x
# collatz
x, steps = 27, 0
while x != 1:
    x = x // 2 if x % 2 == 0 else 3 * x + 1
    steps += 1
out[0, 0] = steps
# reversed bits
r = 0
for i in range(4):
    r = r << 1 | (n >> i & 1)
out[0, 0] = r
# horner indexed
coeffs = (1.0, -2.0, 0.5)
acc = 0.0
for i in range(len(coeffs)):
    acc = acc * a[0, 3] + coeffs[i]
out[0, 0] = acc
# clamp
lo, hi = -1.0, 1.0
for i in range(4):
    out[0, i] = min(max(a[0, i], lo), hi)
# relu
for i in range(4):
    out[1, i] = max(a[1, i], 0)
# mean var
mean = 0.0
for i in range(4): mean += a[1, i]
mean /= 4
var = 0.0
for i in range(4): var += (a[1, i] - mean) ** 2
out[0, 0] = math.sqrt(var / 4)
# int div
out[0, 0] = 7 / 2 + 7 // 2 + -7 // 2 + 7 % -3
# float mod
out[0, 0] = a[0, 1] % 2 + a[0, 1] // 2
# nested break with flag
done = False
for i in range(4):
    for j in range(4):
        if a[i, j] > 1:
            done = True
            break
    if done:
        break
out[0, 0] = i * 10 + j
# loop var after loop
for i in range(5):
    pass
out[0, 0] = i
# loop var modified
for i in range(4):
    i *= 2
    out[0, i % 4] = i
# while with two conditions
i, j = 0, 3
while i < j and a[0, i] < a[0, j]:
    i += 1
    j -= 1
out[0, 0] = i * 10 + j
# continue odd
for i in range(8):
    if i % 2: continue
    if i > 5: break
    out[0, i // 2] = i
# range negative
for i in range(-3, 0):
    out[0, i] = i
# chained compare three
out[0, 0] = 0 < n < 4 < 9 != 8
# ternary chain in index
out[0 if n == 0 else 1 if n == 1 else 2, 0] = 42
# swap rows
for j in range(4):
    out[0, j], out[1, j] = out[1, j], out[0, j]
# transposed tile via T
t = a.T
for i in range(4):
    for j in range(4):
        out[i, j] = t[i, j]
# sub view
block = a[1:3, 1:3]
for i in range(block.shape[0]):
    for j in range(block.shape[1]):
        out[i, j] = block[i, j]
# tuple of sizes
sizes = (TILE, K, 3)
total = 1
for s in sizes:
    total *= s
out[0, 0] = total
# max of abs
out[0, 0] = max(abs(a[0, 0]), abs(a[0, 1]), abs(a[0, 2]))
# local named len and abs
len = 4
abs = -1
for i in range(len):
    out[0, i] = abs
# local named sum with aug
sum = 0
for i in range(5):
    sum += i
out[0, 0] = sum / 2
# mixed bool int
out[0, 0] = (n > 1) * 5 + (n > 5) * 7 + True
# nested tuples unpack
(p, q), (r, s) = a.shape, b.shape
out[0, 0] = p * 1000 + q * 100 + r * 10 + s
# neg index
out[-1, -1] = a[-1, -2]
# ellipsis load
row = a[..., 1]
out[0, 0] = row[2]
# ceil div
tiles = (a.shape[1] + TILE - 1) // TILE
tiles2 = -(-a.shape[1] // TILE)
out[0, 0] = tiles + tiles2
# complex slice of local
acc = cuda.local.array(8, float32)
acc[:] = 1
acc[2:5] = 3
s = 0.0
for i in range(8): s += acc[i]
out[0, 0] = s
# tuple in loop carried
t = (0, 1)
for i in range(5):
    t = (t[1], t[0] + t[1])
out[0, 0] = t[0]
# xor swap
x = 5; y = 9
x ^= y; y ^= x; x ^= y
out[0, 0] = x * 100 + y
# shadow module name
math = 3
out[0, 0] = math
# shadow param
n = n + 1
out[0, 0] = n
# type change of name
x = 1
x = x / 2
out[0, 0] = x
# float loop var
x = 0
while x < 2:
    x += 0.5
out[0, 0] = x
# mixed mod
out[0, 0] = -7 % 3 + (-7) // 2 + (7 // -2)
# round half
out[0, 0] = round(2.5) + round(-0.5) + round(3.7)
"""
)

# Both refuse these; behind the bar stands a part of the interpreter's message.
REFUSED = forms(
    """
# enumerate start kw | enumerate takes its arguments by position
for i, x in enumerate((1.5, 2.5), start=1):
    out[0, i] = x
# hetero tuple loop | the elements of a tuple differ in type
for x in (1, 2.5):
    out[0, 0] += x
# hetero tuple index variable | the elements of a tuple differ in type
t = (4, 5.5, 6)
out[0, 0] = t[n]
# in mixed tuple | the elements of a tuple differ in type
if n in (0, 1.5):
    out[0, 0] = 1
# tuple of unequal | the parts of a tuple differ in length
for t in ((1, 2), (3, 4, 5)):
    out[0, 0] += t[0]
# reversed range | range(n - 1, -1, -1)
for x in reversed(range(3)):
    out[0, 0] += x
# in set | Set
if n in {0, 1}:
    out[0, 0] = 1
# tuple slice variable | a tuple is cut at constants only
t = (n, 2, 3)
u = t[n:]
out[0, 0] = u[0]
# tuple slice expr | a tuple is cut at constants only
t = (n, 2, 3)
u = t[K - 1:]
out[0, 0] = u[0]
# slice store from array | storing an array to a slice: store each element in a loop
out[0, 0:2] = b[1, 2:4]
# slice store 2d from 2d | storing an array to a slice: store each element in a loop
out[:2, :2] = b[1:3, 1:3]
# slice store array | storing an array to a slice: store each element in a loop
out[:] = b
# slice store tuple hetero | the elements of a tuple differ in type
out[0, 0:2] = (1, 2.5)
# slice tuple 2d | takes a number, got 2 values
out[:, 0:2] = (1, 2)
# slice store list | List
out[0, 0:2] = [1, 2]
# slice store expr of arrays | arithmetic takes elements
out[0, :] = a[0] + b[0]
# slice aug | arithmetic takes elements
out[0, :] += 1
# row aug | arithmetic takes elements
out[0] += 1
# shape (TILE, TILE+1) | write SIZE = TILE + 1 outside of the kernel
t = cuda.shared.array((TILE, TILE + 1), float32)
t[0, 0] = 1; out[0, 0] = t[0, 0]
# shape (2*TILE, TILE//2) | write SIZE = 2 * TILE outside of the kernel
t = cuda.shared.array((2 * TILE, TILE // 2), float32)
t[0, 0] = 1; out[0, 0] = t[0, 0]
# shape TILE*TILE | write SIZE = TILE * TILE outside of the kernel
t = cuda.local.array(TILE * TILE, float32)
t[0] = 1; out[0, 0] = t[0]
# shape local const TILE expr | w is computed; give a number, or a name
w = TILE * 2
t = cuda.shared.array(w, float32)
t[0] = 1; out[0, 0] = t[0]
# shape local const plus | w + 1 is computed
w = 8
t = cuda.shared.array(w + 1, float32)
t[0] = 1; out[0, 0] = t[0]
# shape local tuple TILE + 1 | s is computed
s = (TILE, TILE + 1)
t = cuda.shared.array(s, float32)
t[0, 0] = 1; out[0, 0] = t[0, 0]
# shape outside tuple concat | PAIR + (2,) is computed
t = cuda.shared.array(PAIR + (2,), float32)
t[0, 0, 0] = 1; out[0, 0] = t[0, 0, 0]
# shape -TILE neg | must be a constant
t = cuda.shared.array(-(-TILE), float32)
t[0] = 1; out[0, 0] = t[0]
# shape np.int32 outside | takes ints, ONE is a int32
t = cuda.shared.array(ONE, float32)
t[0] = 1; out[0, 0] = t[0]
# shape int(TILE) | int(TILE) is computed
t = cuda.shared.array(int(TILE), float32)
t[0] = 1; out[0, 0] = t[0]
# shape max(TILE, K) | max(TILE, K) is computed
t = cuda.shared.array(max(TILE, K), float32)
t[0] = 1; out[0, 0] = t[0]
# shape list | [4, 4] is computed
t = cuda.shared.array([4, 4], float32)
t[0, 0] = 1; out[0, 0] = t[0, 0]
# shape a.shape | a.shape is computed
t = cuda.shared.array(a.shape, float32)
t[0, 0] = 1; out[0, 0] = t[0, 0]
# shape blockDim | cuda.blockDim.x is computed
t = cuda.shared.array(cuda.blockDim.x, float32)
t[0] = 1; out[0, 0] = t[0]
# shape n | n is computed
t = cuda.shared.array(n, float32)
t[0] = 1; out[0, 0] = t[0]
# shape float | takes ints, 8.0 is a float
t = cuda.shared.array(8.0, float32)
t[0] = 1; out[0, 0] = t[0]
# index of a shape | an index must be an integer, and this is float64
out[0, 0] = a.shape[0.0]
# shape True | takes ints, True is a bool
t = cuda.shared.array(True, float32)
t[0] = 1; out[0, 0] = t[0]
# shape branch two consts | w is computed
if n > 1:
    w = 4
else:
    w = 8
t = cuda.shared.array(w, float32)
t[0] = 1; out[0, 0] = t[0]
# shape same const aug | w is computed
w = 4
w += 1
t = cuda.shared.array(w, float32)
t[0] = 1; out[0, 0] = t[0]
# dtype float builtin | float, a type
t = cuda.local.array(TILE, float)
t[0] = 1; out[0, 0] = t[0]
# aug tuple | t for tuples of different lengths
t = (1, 2)
t += (3,)
out[0, 0] = t[2]
# tuple * K | a tuple takes + with a tuple
t = (1, 2) * K
out[0, 0] = t[3]
# walrus | NamedExpr
if (m := n * 2) > 3:
    out[0, 0] = m
# walrus while | NamedExpr
i = 0
while (i := i + 1) < 4:
    out[0, 0] += i
# fstring | JoinedStr
print(f"{n}")
# print pct | % with a text
print("n: %d" % n)
# plain function | decorate it with @cuda.jit(device=True)
out[0, 0] = plain(n)
# list | List
t = [1, 2]
out[0, 0] = t[0]
# list comp | ListComp
t = [i for i in range(3)]
out[0, 0] = t[0]
# dict | Dict
t = {1: 2}
out[0, 0] = t[1]
# set | Set
t = {1, 2}
out[0, 0] = len(t)
# sum genexp | GeneratorExp
out[0, 0] = sum(i for i in range(3))
# any | or between the conditions
out[0, 0] = any((n > 1, n > 2))
# sorted | comparisons and swaps
t = sorted((3, 1))
out[0, 0] = t[0]
# try | an if that checks beforehand
try:
    out[0, 0] = 1
except Exception:
    out[0, 0] = 2
# del | Delete
x = 3
del x
out[0, 0] = 1
# starred assign | the elements one by one
p, *q = 1, 2, 3
out[0, 0] = p
# import | the import above the kernel
import math
out[0, 0] = math.sqrt(4.0)
# a @ b | a loop that adds the products
out[:] = a @ b
# a.flatten | method .flatten()
out[0, 0] = a.flatten()[0]
# index by bool | this is a bool
out[0, n > 1] = 1
# index float | an index must be an integer, and this is float64
out[0, 4 / 2] = 1
# floor index | math.floor and math.ceil give a float
i = math.floor(2.7)
out[i, 0] = 3
# log base | write math.log2
out[0, 0] = math.log(a[1, 3], 2)
# min max kwargs | by position
out[0, 0] = max(n, 3, key=None)
# np sqrt | math.sqrt
out[0, 0] = np.sqrt(a[1, 3])
# np abs | abs(x)
out[0, 0] = np.abs(a[0, 0])
# nested fn kw | f takes its arguments by position
def f(x, y):
    return x * y
out[0, 0] = f(y=n, x=2)
# nested fn recursion | f, which calls itself
def f(x):
    return f(x - 1) if x > 0 else 1
out[0, 0] = f(n)
# nested fn twice defined | a second meaning of f
if n > 1:
    def f(x):
        return 1
else:
    def f(x):
        return 2
out[0, 0] = f(n)
# print array | print its elements in a loop
print(a)
"""
)

# Numba takes these, the interpreter does not yet. Its message says what to write instead.
LEFT = forms(
    """
# in array | == in a loop over the elements
if 1.0 in a:
    out[0, 0] = 1
# is array ab | a comparison by is
if a is b:
    out[0, 0] = 1
# slice store index array | an index must be an integer, got an array
idx = cuda.local.array(2, int64); idx[0] = 0; idx[1] = 1
out[idx, 0] = 3
# slice object | the slice in brackets
s = slice(0, 2)
out[0, s] = 3
# shape twice assigned | w is computed
w = 8
w = 9
t = cuda.shared.array(w, float32)
t[0] = 1; out[0, 0] = t[0]
# scalar tuple aug | t for tuples of different lengths
t = (1, 2)
t = t + (3,)
out[0, 0] = t[2]
# isinstance | isinstance()
if isinstance(n, int):
    out[0, 0] = 1
# global | Global
global TILE
out[0, 0] = TILE
# match | if and elif
match n:
    case 1:
        out[0, 0] = 1
    case _:
        out[0, 0] = 2
# starred call | the elements one by one
t = (n, 2)
out[0, 0] = add(*t)
# unpack array row | write its elements, x[0], x[1]
p, q, r, s = a[0]
out[0, 0] = p
# a.sum | a loop over the elements
out[0, 0] = a.sum()
# np.sum | a loop that adds the elements
out[0, 0] = np.sum(a[0])
# alias dev function | add, a
g = add
out[0, 0] = g(1, 2)
# enumerate outside loop | enumerate in the head of a for loop
e = enumerate((1, 2))
for i, x in e:
    out[0, i] = x
# nested fn nonlocal | Nonlocal
w = 1
def f():
    nonlocal w
    w = 3
f()
out[0, 0] = w
# nested fn passed | f, a function, as a value
def f(x):
    return x + 1
g = f
out[0, 0] = g(n)
# lambda immediate | a name for it in a line of its own
out[0, 0] = (lambda x: x * 2)(n)
"""
)


class Plain:
    """What a kernel of one thread uses of `numba.cuda`, in Python."""

    threadIdx = blockIdx = SimpleNamespace(x=0, y=0, z=0)
    blockDim = gridDim = SimpleNamespace(x=1, y=1, z=1)
    shared = local = SimpleNamespace(array=np.zeros)
    syncthreads = staticmethod(lambda: None)
    gridsize = staticmethod(lambda axes: 1)

    @staticmethod
    def jit(device):
        return lambda function: function

    @staticmethod
    def grid(axes):
        return 0 if axes == 1 else (0,) * axes


def integers(*ends):
    return range(*map(int, ends))  # Numba cuts floats off


def given():
    a = np.linspace(-3, 4.5, 16, dtype="float32").reshape(4, 4)
    b = np.arange(16, dtype="float32").reshape(4, 4)[::-1].copy()
    return np.arange(16.0).reshape(4, 4), a, b, 2


@pytest.fixture(scope="module")
def refusals():
    """Return {body: Numba's error, or None}."""
    bodies = [*RUN.values(), *REFUSED.values(), *LEFT.values()]
    question = pickle.dumps((form_compiler.refusals, bodies, ABOVE))
    answer = elsewhere("form_compiler", question)
    if isinstance(answer, NoCompiler):
        pytest.skip(str(answer))
    return answer


@pytest.mark.parametrize("name", RUN)
def test_a_form_gives_what_python_gives(name):
    expected, *rest = given()
    with np.errstate(all="ignore"):
        function(RUN[name], ABOVE, Plain, range=integers)(expected, *rest)
    for way in (run, trace):
        out, *rest = given()
        way(function(RUN[name], ABOVE, cuda), 1, 1, out, *rest)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.long
@pytest.mark.parametrize("name", RUN)
def test_numba_takes_a_form(refusals, name):
    assert refusals[RUN[name]] is None


@pytest.mark.parametrize("name", [*REFUSED, *LEFT])
def test_a_refusal_says_why(name):
    body = REFUSED.get(name) or LEFT[name]
    messages = set()
    for way in (run, trace):
        with pytest.raises(KernelError) as caught:
            way(function(body, ABOVE, cuda), 1, 1, *given())
        messages.add(str(caught.value))
    (message,) = messages
    assert name.partition(" | ")[2] in message


@pytest.mark.long
@pytest.mark.parametrize("name", [*REFUSED, *LEFT])
def test_numba_refuses_what_is_listed_so(refusals, name):
    body = REFUSED.get(name) or LEFT[name]
    assert (refusals[body] is None) == (name in LEFT)


# --- what is recorded -----------------------------------------------------------------------------


def accesses(body, block=8):
    """Return (the requests of a launch in program order, what it writes to `out`)."""
    out, a, b, n = np.zeros((8, 8)), *(np.ones((8, 8), "float32"),) * 2, 2
    made = trace(function(body, ABOVE, cuda), 1, block, out, a, b, n)
    assert not made.findings
    return [
        (each.site.op, each.array.name, each.width, each.lanes, each.elements, each.wavefronts)
        for each in made.requests()
    ], out


LOOPS = {
    "tile[x, :] = 0": "for j in range(8): tile[x, j] = 0",
    "tile[x] = 0": "for j in range(8): tile[x, j] = 0",
    "tile[x, 2:5] = b[x, 0]": "v = b[x, 0]\nfor j in range(2, 5): tile[x, j] = v",
    "tile[:, x] = 1": "for j in range(8): tile[j, x] = 1",
    "tile[x, 0:2] = (1, 2)": "tile[x, 0] = 1\ntile[x, 1] = 2",
    "out[x, 6:99] = 1": "for j in range(6, 8): out[x, j] = 1",
    "out[x].fill(3)": "for j in range(8): out[x, j] = 3",
    "out[0:2, x] = out[2, x] = 1": "for j in range(2): out[j, x] = 1\nout[2, x] = 1",
    "for j in range(2): tile[x, j * 2:j * 2 + 2] = j": (
        "for j in range(2):\n    for k in range(2): tile[x, j * 2 + k] = j"
    ),
    "for v in a[x]: out[x, 0] += v": "for j in range(8):\n    v = a[x, j]\n    out[x, 0] += v",
    "for v, w in zip(a[x], (1, 2)): out[x, w] = v": (
        "for w in (1, 2):\n    v = a[x, w - 1]\n    out[x, w] = v"
    ),
    "for j in range(3): tile[x, j] = 1\nelse: out[x, 0] = 5": (
        "for j in range(3): tile[x, j] = 1\nout[x, 0] = 5"
    ),
}


@pytest.mark.parametrize("form", LOOPS)
def test_each_element_is_an_access_of_its_own(form):
    top = "x = cuda.threadIdx.x\ntile = cuda.shared.array((8, 8), float32)\n"
    ours, result = accesses(top + form)
    expected, same = accesses(top + LOOPS[form])
    assert ours == expected
    assert result.tobytes() == same.tobytes()


def test_a_slice_is_cut_and_an_index_beside_it_is_not():
    for body in ("out[4, 0:2] = 1", "out[4] = 1", "out[0:2, -5] = 1"):
        kernel = function(body, ABOVE, cuda)
        with pytest.raises(OutOfBounds, match="outside of shape"):
            run(kernel, 1, 1, *given())
        out, *rest = given()
        (finding,) = trace(kernel, 1, 1, out, *rest).findings
        assert finding.kind == "out of bounds"
        assert np.array_equal(out, given()[0])


def test_barriers_and_else_and_functions_in_many_threads():
    body = """
tile = cuda.shared.array(8, float32)
x = cuda.threadIdx.x
def shifted(by):
    cuda.syncthreads()
    tile[x] = a[0, x] + by
    cuda.syncthreads()
    return tile[7 - x]
for step in range(2):
    out[step, x] = shifted(step)
else:
    out[2, x] = x in (1, 3)
"""
    _, out = accesses(body)
    assert out[:3].tolist() == [[1.0] * 8, [2.0] * 8, [0, 1, 0, 1, 0, 0, 0, 0]]
