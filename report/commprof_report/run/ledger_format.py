"""The layout of a ledger: the numbers and structs that ledger_format.h declares.

The C header itself is parsed, so every field is declared in one place. It uses little of C: enums,
#define of a number, and structs of numbers and arrays without padding. Neighbouring bit fields are
one number, `a_and_b`; of a union the last member is read. tests/report/test_ledger_format.py
compares the result with the compiler.
"""

from __future__ import annotations

import re
import struct
from collections import namedtuple
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ..base.columns import np
from ..base.files import source_text

CODES = {
    "char": "c", "int32_t": "i", "int64_t": "q", "uint8_t": "B", "uint16_t": "H", "uint32_t": "I",
    "uint64_t": "Q",
}
LIMITS = {
    "INT32_MIN": -(1 << 31),
    "UINT16_MAX": (1 << 16) - 1,
    "UINT32_MAX": (1 << 32) - 1,
    "UINT64_MAX": (1 << 64) - 1,
}
MEMBER = re.compile(r"(?P<type>(?:struct )?\w+) (?P<names>[^;]+);")
BIT_FIELDS = re.compile(r"\w+ (\w+) : \d+;\s*(\w+) (\w+) : \d+;")
UNION = re.compile(r"union \{(?:[^{}]|\{[^{}]*\})*?\s(\w+ \w+;)\s*\};")


class Layout:
    """A struct of the ledger: its fields in order, without padding. One entry is a named tuple, in
    which arrays are bytes; many are an array of numpy, with a column for each field."""

    def __init__(self, name: str, members: dict[str, tuple[str | Layout, int]]) -> None:
        row = namedtuple(name, members)  # type: ignore[misc]  # the struct's name
        self.make: Any = row._make
        self.members = members
        codes, self.offsets = "<", {}
        for field, (kind, length) in members.items():
            self.offsets[field] = struct.calcsize(codes)
            element_bytes = kind.bytes if isinstance(kind, Layout) else struct.calcsize(kind)
            is_one = isinstance(kind, str) and not length
            codes += str(kind) if is_one else f"{(length or 1) * element_bytes}s"
        self.codec = struct.Struct(codes)
        self.bytes: int = self.codec.size

    @cached_property
    def dtype(self) -> np.dtype:
        return np.dtype([_column(name, *member) for name, member in self.members.items()])

    def unpack(self, data: bytes, offset: int = 0):
        return self.make(self.codec.unpack_from(data, offset))

    def array(self, data: bytes) -> np.ndarray:
        """The entries; bytes behind the last whole one are left out."""
        return np.frombuffer(data, self.dtype, len(data) // self.bytes)


def _column(name: str, kind: str | Layout, length: int) -> tuple:
    """The field of a numpy.dtype; a text has no NULs at its end."""
    if kind == "c":
        return name, f"S{length}"
    element = kind.dtype if isinstance(kind, Layout) else "<" + kind
    return (name, element, (length,)) if length else (name, element)


class Format:
    """Declarations of a header: numbers by name, layouts by the struct's name."""

    def __init__(self, code: str) -> None:
        self.numbers = dict(LIMITS)
        self.layouts: dict[str, Layout] = {}
        for found in re.finditer(
            r"^#define (\w+) ([\w<]+)$|^enum \w*\s*\{(.*?)\};|^struct (\w+) \{\n(.*?)^\};",
            code,
            re.M | re.S,
        ):
            define, value, enumerators, name, members = found.groups()
            if define:
                self.numbers[define] = self._number(value)
            elif name:
                self.layouts[name] = Layout(name, dict(self._members(members)))
            else:
                self._enum_take(enumerators)

    def _enum_take(self, enumerators: str) -> None:
        value = -1
        for enumerator in filter(None, map(str.strip, enumerators.split(","))):
            name, _, expression = enumerator.partition("=")
            value = self._number(expression) if expression else value + 1
            self.numbers[name.strip()] = value

    def _number(self, expression: str) -> int:
        """The value of a C expression in numbers known so far; the file is part of the program, so
        evaluating it is safe."""
        return eval(
            re.sub(r"(?<=\d)u?ll\b", "", expression.strip()), {"__builtins__": {}}, self.numbers
        )

    def _members(self, members: str) -> Iterator[tuple[str, tuple[str | Layout, int]]]:
        """The names of a struct's members; what each is, and of arrays the length."""
        plain = UNION.sub(r"\1", " ".join(members.split()))
        plain = BIT_FIELDS.sub(r"\2 \1_and_\3;", plain)
        for member in MEMBER.finditer(plain):
            kind = member["type"].rpartition("struct ")[2]
            for declared in member["names"].split(","):
                name, _, length = declared.strip().rstrip("]").partition("[")
                yield name, (self.layouts.get(kind) or CODES[kind], self._number(length or "0"))


FORMAT = Format(source_text("ledger/ledger_format.h"))


def number(name: str) -> int:
    """Value of an enumerator or a macro, without LEDGER_ in front."""
    return FORMAT.numbers["LEDGER_" + name]


def __getattr__(name: str) -> Any:
    """These numbers are names of this module, too."""
    try:
        return number(name)
    except KeyError:
        raise AttributeError(name) from None


def layout(name: str) -> Layout:
    """Layout of a struct, without ledger_ in front."""
    return FORMAT.layouts["ledger_" + name]
