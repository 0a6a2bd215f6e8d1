"""Each fact that the library records is documented, and either stands in docs/PRIVACY.md or stays
on an anonymous page."""

from __future__ import annotations

import re

import pytest
from commprof_report.run import anonymous
from planted import ROOT

FACT = re.compile(
    r'(?:ledger_fact|record_unless_empty|record_namespace|note_once)\((?:&\w+, )?"([^"]+)"'
)
FACTS = sorted(
    {key for path in (ROOT / "src").rglob("*.c") for key in FACT.findall(path.read_text())}
)


def is_in(page: str, key: str) -> bool:
    return f"`{key}`" in (ROOT / "docs" / page).read_text()


@pytest.mark.parametrize("key", FACTS)
def test_a_fact_is_documented(key):
    assert is_in("SCHEMA.md", key)


@pytest.mark.parametrize("key", FACTS)
def test_a_fact_that_is_not_listed_as_private_is_on_an_anonymous_page(key):
    """Else a sentence would be missing there that rests on it."""
    assert is_in("PRIVACY.md", key) or key in anonymous.UNCHANGED
