"""Matrices that record the accesses of loops in plain Python, and their order.

A `Watched` matrix is indexed as a NumPy array is, `a[i, k]` or `a[i][k]`. A `Record` holds the
accesses to several of them: reads and writes, reads of elements of C that were not written before,
negative indices, and the order that decides which words a small cache would have had to load.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from tiled_matmul.grader.messages import sentence

ANSWER = "<answer>"  # the file name under which a worker runs a learner's code
NUMBERS = (
    *("float16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool_", "intp"),
)
SHAPES = {"A": "out of bounds: A", "B": "out of bounds: B", "C": "out of bounds: C"}
OLD_C = {True: "uninitialised read: remedy", False: "uninitialised read: operation"}


class Scalar:
    """A type of numbers: called with one, it returns that number, rounded as the type does.

    It takes the place of NumPy's types, which make arrays of lists; NumPy would run the loops.
    """

    def __init__(self, name: str) -> None:
        self.name = self.__name__ = name
        self.type = self

    def __call__(self, value: Any = 0) -> Any:
        if not isinstance(value, int | float):
            raise TypeError(sentence("error: no number", name=self.name, kind=type(value).__name__))
        made = np.dtype(self.name).type(value).item()
        if isinstance(made, float) and isinstance(value, Factor):
            made = value._kept(made)
        return made

    def __eq__(self, other: object) -> bool:
        return self.name == getattr(other, "name", getattr(other, "__name__", other))

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


SCALARS = {name: Scalar(np.dtype(name).name) for name in NUMBERS}


class Factor(float):
    """An element that was read: a float whose products with another one are counted.

    `matrix` is the name of its matrix, `place` its number. With a number that was not read, and in
    a sum, it stays what it is, so that `a[i, k] * 1.0` is no product, and neither is it a way to an
    element that is counted no more.
    """

    __slots__ = ("matrix", "place", "record")

    def __mul__(self, other: Any) -> Any:
        return self._times(other, float.__mul__(self, other))

    def __rmul__(self, other: Any) -> Any:
        return self._times(other, float.__rmul__(self, other))

    def __pow__(self, *others: Any) -> Any:
        return self._times(self, float.__pow__(self, *others))

    @property
    def real(self) -> Factor:
        return self

    def conjugate(self) -> Factor:
        return self

    def _times(self, other: Any, made: Any) -> Any:
        if not isinstance(other, Factor):
            return self._kept(made)
        if not self.record.multiply(self, other):
            return self._kept(made)
        return made * self.record.scale

    def __truediv__(self, other: Any) -> Any:
        return self._times(other, float.__truediv__(self, other))

    def _kept(self, made: Any) -> Any:
        return _factor(made, self.record, self.matrix, self.place) if type(made) is float else made


def _factor(value: float, record: Record, matrix: str, place: int) -> Factor:
    made = Factor(value)
    made.record, made.matrix, made.place = record, matrix, place
    return made


def _keeping(name: str) -> Callable[..., Any]:
    operation = getattr(float, name)
    return lambda self, *others: self._kept(operation(self, *others))


for _name in (
    "add",
    "radd",
    "sub",
    "rsub",
    "rtruediv",
    "mod",
    "rmod",
    "neg",
    "pos",
    "abs",
    "round",
    "floordiv",
    "rfloordiv",
):
    setattr(Factor, f"__{_name}__", _keeping(f"__{_name}__"))


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: Factor, *others: Any) -> Any:
        raise TypeError(sentence("error: whole number", matrix=self.matrix, name=name))

    return refuse


for _name, _called in (
    ("__int__", "int"),
    ("__trunc__", "math.trunc"),
    ("__floor__", "math.floor"),
    ("__ceil__", "math.ceil"),
    ("__divmod__", "divmod"),
    ("__rdivmod__", "divmod"),
):
    setattr(Factor, _name, _refusing(_called))


class _FloatType(type):
    def __call__(cls, value: Any = 0.0) -> float:
        return value if isinstance(value, Factor) else float(value)

    def __instancecheck__(cls, one: Any) -> bool:
        return isinstance(one, float)


class Float(metaclass=_FloatType):
    """What an answer has as `float`: it leaves an element that was read what it is."""

    is_integer, fromhex = staticmethod(float.is_integer), staticmethod(float.fromhex)


class _ArrayType(type):
    def __call__(cls, *arguments: Any) -> Any:
        raise TypeError(sentence("error: no value", kind="array"))

    def __instancecheck__(cls, one: Any) -> bool:
        return isinstance(one, Watched)


class Array(metaclass=_ArrayType):
    """What an answer has as `np.ndarray`: its matrices are some."""


TYPES = SimpleNamespace(**SCALARS, ndarray=Array, ndindex=np.ndindex)  # what an answer has as `np`


class Outside(Exception):
    """The answer accessed an element outside its matrix; the record has the finding."""


class Record:
    """The accesses to some matrices, such as A, B and C. The last one is the output.

    `touched` holds the number of each accessed element, in order, and `longest` is the most reads
    in a row without a multiplication: copying a matrix takes many. In a `product` A, B and C have
    the shapes that every product's have, and a message may say which.

    `factors` says which elements are multiplied for each element of C: two lists of lists with the
    numbers of the elements of X (M, K) and Y (K, N), whose product is C. Then only such products
    are counted, and each of them is an access to both elements and to the one of C where the sum
    belongs, whatever lists the answer keeps them in: those lie in memory as well. The `latest`
    element of a factor is in a register, and is not accessed again.
    """

    def __init__(self, product: bool = True, factors: Any = None, scale: float = 1.0) -> None:
        self.product, self.factors, self.scale = product, factors, scale
        self.reads: dict[str, int] = {}
        self.writes = 0
        self.products = self.waiting = self.longest = 0
        self.whole_rows = 0
        self.pairs: set[tuple[int, int]] = set()
        self.touched: list[int] = []
        self.findings: dict[tuple[str, str], dict] = {}

    def watch(self, **arrays: np.ndarray) -> tuple[Watched, ...]:
        """Return matrices as watched ones. Nothing of the last one counts as written yet."""
        self.reads, self.latest = dict.fromkeys(arrays, 0), dict.fromkeys(arrays, -1)
        self.output = list(arrays)[-1]
        self.shapes = [array.shape for array in arrays.values()]
        watched, first = [], 0
        for name, array in arrays.items():
            places = np.arange(first, first + array.size).reshape(array.shape)
            watched.append(Watched(self, name, array, places, first, array.shape))
            first += array.size
        self.written = np.arange(first) < first - array.size
        self.of_x: dict[int, tuple[int, int]] = {}
        self.of_y: dict[int, tuple[int, int]] = {}
        if self.factors is not None:
            x, y = self.factors
            begins = range(first - array.size, first, array.shape[1])
            for begin, places in zip(begins, x, strict=True):
                self.of_x |= {place: (begin, k) for k, place in enumerate(places)}
            for k, places in enumerate(y):
                self.of_y |= {place: (column, k) for column, place in enumerate(places)}
        return tuple(watched)

    def touch(self, matrix: str, place: int) -> None:
        """Add an access, unless the one before was to the same element."""
        if not self.touched or self.touched[-1] != place:
            self.touched.append(place)
        self.latest[matrix] = place

    def multiply(self, one: Factor, other: Factor) -> bool:
        """Count the product of two elements. With `factors` each counts once, and others do not."""
        if self.factors is not None:
            if one.place not in self.of_x:
                one, other = other, one
            begin, step = self.of_x.get(one.place, (0, -1))
            column, same = self.of_y.get(other.place, (0, -2))
            if step != same:
                return False
            for factor in (one, other):
                if self.latest[factor.matrix] != factor.place:
                    self.touch(factor.matrix, factor.place)
            self.touch(self.output, begin + column)
            pair = (one.place, other.place)
            self.products += pair not in self.pairs
            self.pairs.add(pair)
        else:
            self.products += 1
        self.waiting = 0
        return True

    def note(self, kind: str, name: str, message: str, remedy: str) -> None:
        """Keep the first finding of each kind in each matrix, and count the others."""
        known = self.findings.get((kind, name))
        if known is not None:
            known["count"] += 1
            return
        finding = {"kind": kind, "array": name, "message": message, "remedy": remedy, "count": 1}
        self.findings[kind, name] = finding

    def fetched(self, room: int, rows: int = 1, columns: int = 1) -> int:
        """Return how many words a cache with this room loads; it evicts the least recently used.

        With `rows` and `columns` it loads and holds whole tiles of that shape, or lines of one row.
        The first of them begins at a matrix's element [0, 0].
        """
        held: dict[int, None] = {}
        count = 0
        for place in self._blocks(rows, columns)[self.touched].tolist() if self.touched else ():
            if place in held:
                del held[place]
            else:
                count += 1
                if len(held) == room:
                    del held[next(iter(held))]
            held[place] = None
        return count

    def _blocks(self, rows: int, columns: int) -> np.ndarray:
        """Return the number of the tile that each element lies in."""
        parts, first = [], 0
        for down, across in self.shapes:
            row, column = np.indices((down, across))
            wide = -(-across // columns)
            parts.append((first + row // rows * wide + column // columns).ravel())
            first += -(-down // rows) * wide
        return np.concatenate(parts)


class Watched(np.lib.mixins.NDArrayOperatorsMixin):
    """A matrix or a part of it. Computing with the whole of it counts as reading every element."""

    def __init__(
        self,
        record: Record,
        name: str,
        array: np.ndarray,
        places: np.ndarray,
        first: int,
        whole: tuple[int, int],
    ) -> None:
        self._record, self._name, self._array, self._places = record, name, array, places
        self._first, self._whole = first, whole
        self.shape, self.size, self.ndim = array.shape, array.size, array.ndim
        self.dtype = Scalar(array.dtype.name)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Any:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        if self.ndim == 2 and self.shape[0] == 0 and type(index) is int and index == 0:
            return NoRow(self)
        place = self._element(index)
        if place is None:
            index = _plain_index(index)
            places = self._at(index)
            if isinstance(places, np.ndarray):
                rest = self._record, self._name, self._array[index], places
                return Watched(*rest, self._first, self._whole)
            place = int(places)
        self._read(place)
        value = self._array.item(index)  # a number of NumPy's would turn lists into arrays
        return _factor(value, self._record, self._name, place) if type(value) is float else value

    def __setitem__(self, index: Any, value: Any) -> None:
        record, places, value = self._record, self._element(index), _plain_value(value)
        if places is None:
            index = _plain_index(index)
            places = self._at(index)
        if not isinstance(places, np.ndarray):
            record.touch(self._name, int(places))
        elif np.ndim(value):
            record.whole_rows += 1
            record.touched += places.ravel().tolist()
        record.writes += int(np.size(places))
        record.written[places] = True
        self._array[index] = value

    @property
    def T(self) -> Watched:  # noqa: N802
        rest = self._array.T, self._places.T, self._first, self._whole
        return Watched(self._record, self._name, *rest)

    def item(self, *index: Any) -> Any:
        return self[index if len(index) > 1 else divmod(*index, self.shape[1])]

    def fill(self, value: Any) -> None:
        self[...] = value

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self._taken().astype(dtype or self._array.dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        named.pop("out", None)  # `c[i] += …` puts its result back by __setitem__
        taken = [_plain_value(x) for x in inputs]
        return getattr(ufunc, method)(*taken, **named)

    def _taken(self) -> np.ndarray:
        """Read all of it."""
        self._record.whole_rows += 1
        for place in self._places.ravel().tolist():
            self._read(place)
        return self._array.copy()

    def _read(self, place: int) -> None:
        record = self._record
        record.reads[self._name] += 1
        record.touch(self._name, place)
        record.waiting += 1
        if record.waiting > record.longest:
            record.longest = record.waiting
        if not record.written[place]:
            row, column = divmod(place - self._first, self._whole[1])
            element = f"{self._name}[{row}, {column}]"
            record.note(
                "uninitialised read",
                self._name,
                sentence("uninitialised read: loops", line=_line(), element=element),
                sentence(OLD_C[record.product]),
            )

    def _element(self, index: Any) -> int | None:
        """Return the place of an element that plain numbers name, as nearly all do, else None."""
        if type(index) is int and self.ndim == 1 and 0 <= index < self.size:
            return self._places.item(index)
        if type(index) is tuple and len(index) == self.ndim == 2:
            (row, column), (rows, columns) = index, self.shape
            if type(row) is type(column) is int and 0 <= row < rows and 0 <= column < columns:
                return self._places.item(row, column)
        return None

    def _at(self, index: Any) -> Any:
        """Return the places of an index; note a negative one, and raise Outside for one outside."""
        parts = index if isinstance(index, tuple) else (index,)
        element = f"{self._name}[{', '.join(map(_spelled, parts))}]"
        array, size = self._name, self._whole
        if self.shape != self._whole:
            array = f"a {'part' if self.ndim == 2 else 'row'} of {self._name}"
            element, size = f"[{', '.join(map(_spelled, parts))}] of {array}", self.shape
            array = "that part" if self.ndim == 2 else self._name
            size = size if self.ndim == 2 else self._whole
        if any(isinstance(part, int | np.integer) and part < 0 for part in parts):
            self._record.note(
                "negative index",
                self._name,
                sentence("negative index: loops", line=_line(), element=element),
                sentence("negative index: remedy"),
            )
        try:
            return self._places[index]
        except IndexError as error:
            if "out of bounds" not in str(error):
                raise
        place = {"element": element, "array": array, "shape": "×".join(map(str, size))}
        self._record.note(
            "out of bounds",
            self._name,
            sentence("out of bounds: loops", line=_line(), **place),
            sentence(SHAPES[self._name] if self._record.product else "out of bounds: loops axes"),
        )
        raise Outside(element)


class NoRow:
    """The first row of a matrix that has none: `len(b[0])` asks it for B's columns."""

    def __init__(self, matrix: Watched) -> None:
        self._matrix = matrix
        self.shape = matrix.shape[1:]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        return self._matrix[0, index]  # raises Outside


def _plain_index(index: Any) -> Any:
    """Return an index that is the same whenever it is used. Raises TypeError for other objects.

    An object of the answer's could name one element where it is counted, another where it is read.
    """
    if isinstance(index, tuple):
        return tuple(map(_plain_index, index))
    if isinstance(index, list):
        index = np.array(_numbers(index))
    if isinstance(index, Watched):
        index = index._taken()
    if isinstance(index, slice):
        parts = index.start, index.stop, index.step
        return slice(*(part if part is None else _number(part) for part in parts))
    if isinstance(index, np.ndarray) and index.dtype.kind in "biu":
        return index.copy()
    return index if index is None or index is Ellipsis else _number(index)


def _numbers(values: Any) -> Any:
    """Return lists of numbers as they are. Raises TypeError for other objects in them."""
    if isinstance(values, list | tuple):
        return [_numbers(part) for part in values]
    if isinstance(values, Watched):
        return values._taken()
    return values if isinstance(values, np.ndarray) else _number(values)


def _number(value: Any) -> Any:
    if type(value) in (bool, int, float) or isinstance(value, np.generic):
        return value
    raise TypeError(sentence("error: no index", kind=type(value).__name__))


def _plain_value(value: Any) -> Any:
    """Return a number or an array of numbers. Raises TypeError for other objects."""
    if isinstance(value, float):
        return value
    if isinstance(value, Watched):
        return value._taken()
    if isinstance(value, list | tuple):
        value = np.array(_numbers(value))
    kind = value.dtype.kind if isinstance(value, np.ndarray) else None
    if kind in ("b", "i", "u", "f") or isinstance(value, np.number | np.bool_ | int | float):
        return value
    raise TypeError(sentence("error: no value", kind=type(value).__name__))


def _spelled(part: Any) -> str:
    return str(part) if isinstance(part, int | np.integer) else ":"


def _line() -> str:
    """Return the line of the answer that is running, such as "Line 3"."""
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_filename != ANSWER:
        frame = frame.f_back
    return f"Line {frame.f_lineno}" if frame is not None else "The answer"
