"""Tables on terminals of any width: whole where they fit, the most telling columns where they don't."""

import io
import re
from contextlib import redirect_stdout
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.cli import tables
from app.cli.tables import Rows, show
from app.cli.usage import UsedLine
from app.contracts.base import DatabaseStatus, Engine
from app.databases.inventory import DatabaseSummary
from app.upkeep.reconcile.findings import Report, Violation
from tests.support.together import together

_STYLE = re.compile(r"\x1b\[[012]m")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def line() -> DatabaseSummary:
    return DatabaseSummary(
        uuid=UUID("0f9d2c1a-8a43-4f3d-9f0e-0123456789ab"),
        name="orders-of-the-european-shop",
        team="Platform engineering",
        engine=Engine.POSTGRES,
        status=DatabaseStatus.ACTIVE,
        storage_bytes=3 * 2**30,
        plan="launch",
        region="us-east-1",
        host_id=1,
        address="db-with-a-long-name.example.com:5432",
        created_at=datetime(2026, 1, 2, tzinfo=UTC),
    )


def printed(result: Any, width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    with redirect_stdout(_Terminal()) as out:
        show(result)
    return [_STYLE.sub("", text).rstrip() for text in out.getvalue().splitlines()]


def test_eighty_columns(line: DatabaseSummary, monkeypatch: pytest.MonkeyPatch) -> None:
    header, row, left_out, summary = printed(Rows(rows=[line], total=1, noun="databases"), 80, monkeypatch)
    assert max(map(len, (header, row))) <= 80
    assert row.split()[:2] == ["0f9d2c1a", "orders-of-the-european-shop"]
    assert "Platform engineering" in row
    assert "created_at" in left_out
    assert summary == "1 database"


def test_eighty_columns_of_usage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numbers are what was asked for; columns that say nothing of any row take no room from them."""
    moment = datetime(2026, 11, 1, tzinfo=UTC)
    used = UsedLine(
        team="Platform engineering",
        database=None,
        plan=None,
        region=None,
        runtime_seconds=2_592_000,
        storage_byte_seconds=Decimal(10**15),
        backup_byte_seconds=Decimal(0),
        starts_at=moment,
        ends_at=moment,
        open=True,
        team_id=1,
        database_uuid=None,
        measured_at=moment,
    )
    header, row, left_out = printed([used], 80, monkeypatch)
    assert header.split() == ["team", "runtime_seconds", "storage_byte_seconds", "backup_byte_seconds"]
    assert row.split()[2:] == ["2592000", "1000000000000000", "0"]
    assert "database" not in left_out


def test_a_wide_terminal_and_a_file_have_everything(line: DatabaseSummary, monkeypatch: pytest.MonkeyPatch) -> None:
    header, row = printed([line], 240, monkeypatch)
    assert header.split()[-1] == "created_at"
    assert str(line.uuid) in row
    assert "3.0 GB" in row
    with redirect_stdout(io.StringIO()) as out:
        show([line])
    assert str(line.uuid) in out.getvalue()
    assert line.address in out.getvalue()


def test_a_long_detail_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Detail(msgspec.Struct):
        rule: str
        detail: str

    words = "the host does not answer " * 8
    texts = printed([Detail("host_unreachable", words)], 60, monkeypatch)
    assert max(map(len, texts)) <= 60
    assert " ".join(" ".join(texts[1:]).split()) == f"host_unreachable {words}".strip()


def test_markup_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch, line: DatabaseSummary) -> None:
    """A tenant chooses the name."""
    line.name = "[red]x[/red]\x1b[31m"
    text = "\n".join(printed([line], 240, monkeypatch))
    assert "[red]x[/red]" in text
    assert "\x1b" not in text
    assert "\\x1b[31m" in text


def test_a_report(monkeypatch: pytest.MonkeyPatch, line: DatabaseSummary) -> None:
    found = Violation(rule="access_open", subject=str(line.uuid), detail="lets its tenant in", name="orders", team="A")
    texts = printed(Report(ok=False, violations=[found], notes=[]), 120, monkeypatch)
    assert texts[0] == "1 violation"
    assert texts[-1] == "not ok"
    assert "orders" in texts[2]
    assert printed(Report(ok=True, violations=[], notes=[]), 80, monkeypatch) == ["ok"]


@together(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (2**29, "512.0 MB"), (5 * 2**40, "5.0 TB")]
)
def test_sizes(count: int, text: str) -> None:
    assert tables.size_text(count) == text


def test_structs_within_a_struct(monkeypatch: pytest.MonkeyPatch) -> None:
    class Step(msgspec.Struct):
        name: str
        began: datetime | None

    class Whole(msgspec.Struct):
        steps: list[Step]
        by: Step

    made = Step("make", datetime(2026, 1, 2, tzinfo=UTC))
    assert printed(Whole([made, Step("prove", None)], made), 80, monkeypatch) == [
        "steps  name make, began 2026-01-02 00:00:00Z",
        "name prove",
        "by  name make, began 2026-01-02 00:00:00Z",
    ]
