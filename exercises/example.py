# %% spec
"""How many blocks a launch needs: the example of how an exercise is added."""

from tiled_matmul.grader.spec import VALUES, Call, Exercise, Slip


def _blocks(m, n, x, y):
    return [-(-n // x), -(-m // y)]


def _sizes(rng):
    """Sizes of C that the block does not divide."""
    x, y = (int(edge) for edge in rng.choice([8, 16, 32], 2, replace=False))
    down, across = (int(tiles) for tiles in rng.choice([3, 5, 7, 9], 2, replace=False))
    return y * down + 1, x * across + 3, x, y


BLOCKS = Exercise(
    name="04.3",
    title="how many blocks",
    points=1,
    entry="grid",
    parameters=("m", "n", "x", "y"),
    kind="values",
    rules=VALUES,
    cases=(
        Call((64, 96, 32, 8)),
        Call(draw=_sizes),
        Call((1, 1, 16, 16), hidden=True),
        Call(draw=_sizes, hidden=True),
    ),
    answer=_blocks,
    slips=(
        Slip(
            lambda m, n, x, y: [n // x, m // y],
            "rounded down",
            "These blocks leave the last rows or columns of C without a thread: round up.",
        ),
        Slip(
            lambda m, n, x, y: [n // x + 1, m // y + 1],
            "one more",
            "That is a block too many where the block divides C, and all its threads go home.",
        ),
        Slip(
            lambda m, n, x, y: [n / x, m / y],
            "a fraction",
            "A launch takes whole numbers: // divides, and what is left over needs a block too.",
        ),
        Slip(
            lambda m, n, x, y: _blocks(m, n, x, y)[::-1],
            "swapped",
            "The two are the other way round: x goes along the columns and comes first.",
        ),
        Slip(
            lambda m, n, x, y: _blocks(n, m, x, y),
            "axes",
            "x goes along the columns, of which there are n: divide n by x, and m by y.",
        ),
    ),
    hints={
        **{"rounded down": 2, "one more": 2, "swapped": 1, "axes": 1, "nothing": 3, "error": 3},
        **{"a fraction": 2, "value": 1, "timeout": 3, "other": 1},
    },
)

EXERCISES = (BLOCKS,)

# %% task [markdown]
# ## 04.3 How many blocks
#
# C has m rows and n columns, and a block has x × y threads: return how many blocks the grid needs along x and along y, so that each element has a thread. None should be without work.
#
# *Expected: roughly 1 line.*

# %% exercise
# exercise 04.3: how many blocks
def grid(m, n, x, y):
    # >>> solution, roughly 1 line
    return -(-n // x), -(-m // y)
    # --- starter
    # return 1, 1
    # <<<


# %% run
# NBVAL_CHECK_OUTPUT
print(grid(100, 200, 32, 8))

# %% hints [markdown]
# <details><summary>Hint 1</summary>
#
# x is the column: the blocks along x cover the n columns, those along y the m rows. The number along x comes first, as in a launch.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# 100 columns and blocks of 32: three blocks cover 96 of them, so there are four. 96 columns need three, and no more. Round up.
#
# </details>
#
# <details><summary>Hint 3</summary>
#
# `(n + x - 1) // x` rounds up, and so does `-(-n // x)`. Return that, and the same of m and y.
#
# </details>

# %% answer rounded_down
# status: WRONG
# words: round up; hint 2
# exercise 04.3: how many blocks
def grid(m, n, x, y):
    return n // x, m // y


# %% answer one_more
# status: WRONG
# words: a block too many; hint 2
# exercise 04.3: how many blocks
def grid(m, n, x, y):
    return n // x + 1, m // y + 1


# %% answer swapped
# status: WRONG
# words: the other way round; hint 1
# exercise 04.3: how many blocks
def grid(m, n, x, y):
    return (m + y - 1) // y, (n + x - 1) // x


# %% answer rows_along_x
# status: WRONG
# words: divide n by x; hint 1
# exercise 04.3: how many blocks
def grid(m, n, x, y):
    return (m + x - 1) // x, (n + y - 1) // y


# %% answer a_fraction
# status: WRONG
# words: takes whole numbers; hint 2
# exercise 04.3: how many blocks
def grid(m, n, x, y):
    return n / x, m / y


# %% answer nothing_returned
# status: WRONG
# words: return; hint 3
# exercise 04.3: how many blocks
def grid(m, n, x, y):
    blocks = (n + x - 1) // x, (m + y - 1) // y


# %% answer right_by_ceil
# status: PASS
# words:
# exercise 04.3: how many blocks
def grid(m, n, x, y):
    return math.ceil(n / x), math.ceil(m / y)


# %% answer right_by_adding
# status: PASS
# words:
# exercise 04.3: how many blocks
def grid(m, n, x, y):
    return (n + x - 1) // x, (m + y - 1) // y
