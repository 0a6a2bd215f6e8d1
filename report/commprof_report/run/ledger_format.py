"""The layout of a ledger: the numbers and structs that ledger_format.h declares.

The C header itself is parsed, so every field is declared in one place. It uses little of C: enums,
#define of a number, and structs of numbers and arrays without padding. An array or a struct inside
another is read as bytes; neighbouring bit fields are one number, `a_and_b`; of a union the last
member is read. tests/report/test_ledger_format.py compares the result with the compiler.
"""

from __future__ import annotations

import re
import struct
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

from ..base.library_files import source_text

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
    """A struct of the ledger: its fields in order, without padding."""

    def __init__(self, name: str, codes: dict[str, str]) -> None:
        row = namedtuple(name, codes)  # type: ignore[misc]  # the struct's name
        self.make: Any = row._make
        self.codec = struct.Struct("<" + "".join(codes.values()))
        self.bytes = self.codec.size
        self.offsets: dict[str, int] = {}
        offset = 0
        for field, code in codes.items():
            self.offsets[field] = offset
            offset += struct.calcsize("<" + code)

    def unpack(self, data: bytes, offset: int = 0):
        return self.make(self.codec.unpack_from(data, offset))

    def unpack_all(self, data: bytes):
        return [self.make(values) for values in self.codec.iter_unpack(data)]


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
                self.layouts[name] = Layout(name, dict(self._codes(members)))
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

    def _codes(self, members: str) -> Iterator[tuple[str, str]]:
        """The names of a struct's members, and their format characters for module struct."""
        plain = UNION.sub(r"\1", " ".join(members.split()))
        plain = BIT_FIELDS.sub(r"\2 \1_and_\3;", plain)
        for member in MEMBER.finditer(plain):
            for declared in member["names"].split(","):
                name, _, length = declared.strip().rstrip("]").partition("[")
                yield name, self._code(member["type"], length)

    def _code(self, kind: str, length: str) -> str:
        _, _, name = kind.rpartition("struct ")
        if name in CODES and not length:
            return CODES[name]
        element_bytes = (
            self.layouts[name].bytes if name in self.layouts else struct.calcsize(CODES[name])
        )
        return f"{self._number(length or '1') * element_bytes}s"


FORMAT = Format(source_text("ledger/ledger_format.h"))


def number(name: str) -> int:
    """Value of an enumerator or a macro, without LEDGER_ in front."""
    return FORMAT.numbers["LEDGER_" + name]


def layout(name: str) -> Layout:
    """Layout of a struct, without ledger_ in front."""
    return FORMAT.layouts["ledger_" + name]
