from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st
from packages import DIST_INFO, METADATA, RECORD, WHEEL, record, release

from ctxlock.errors import CtxlockError
from ctxlock.wheels.record import Row, is_installers_own, parse_record

FILES = release()
TEXT = record(FILES, RECORD).decode()


def test_lists_what_the_published_wheel_holds() -> None:
    parsed = parse_record(TEXT)
    assert parsed.dist_info == DIST_INFO
    assert [row.path for row in parsed.rows] == list(FILES)
    assert all(row.mismatch(FILES[row.path]) is None for row in parsed.rows)


@pytest.mark.parametrize("added", ["INSTALLER", "REQUESTED", "direct_url.json", "RECORD.jws"])
def test_leaves_out_what_installers_add(added: str) -> None:
    assert parse_record(TEXT + f"{DIST_INFO}/{added},,\n") == parse_record(TEXT)
    assert is_installers_own(f"{DIST_INFO}/{added}", DIST_INFO)
    assert not is_installers_own(f"livekit/agents/{added}", DIST_INFO)


@pytest.mark.parametrize("bytecode", ["livekit/__pycache__/a.cpython-311.pyc", "livekit/a.pyo"])
def test_leaves_out_bytecode(bytecode: str) -> None:
    assert parse_record(TEXT + f"{bytecode},,\n") == parse_record(TEXT)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(TEXT.replace("/", "\\"), id="backslashes"),
        pytest.param(TEXT.replace("\n", "\r\n"), id="CRLF"),
        pytest.param(TEXT.replace("\n", "\n\n"), id="empty lines"),
        pytest.param(re.sub("^([^,]+)", r'"\1"', TEXT, flags=re.MULTILINE), id="quoted"),
    ],
)
def test_is_read_however_it_is_written(changed: str) -> None:
    assert changed != TEXT
    assert parse_record(changed) == parse_record(TEXT)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("livekit/agents/__init__.py,,\n", id="itself missing"),
        pytest.param(TEXT + "other-1.dist-info/RECORD,,\n", id="two"),
    ],
)
def test_must_list_itself(text: str) -> None:
    with pytest.raises(CtxlockError, match=r"does not list itself; install .* again\.$"):
        parse_record(text)


def test_refuses_what_is_no_table() -> None:
    with pytest.raises(CtxlockError, match=r"RECORD .* cannot be read; install .* again\.$"):
        parse_record(TEXT + '"livekit/agents/__init__.py" ,x\n')


@given(st.text())
def test_any_text_is_a_record_or_an_error(text: str) -> None:
    for attempt in (text, TEXT + text):
        try:
            rows = parse_record(attempt).rows
        except CtxlockError:
            continue
        assert all(row.mismatch(b"") is None or row.mismatch(b"") for row in rows)


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("livekit/agents/__init__.py", True),
        ("livekit/agents/a b/ü.py", True),
        ("livekit/agents/..py", True),
        ("../x.py", False),
        ("livekit/../../x.py", False),
        ("/etc/x", False),
        ("//host/share/x", False),
        ("C:/x", False),
        ("C:x", False),
        ("./livekit/agents/__init__.py", False),
        ("livekit//agents/__init__.py", False),
        ("", False),
    ],
)
def test_where_a_path_leads(path: str, inside: bool) -> None:
    assert Row(path, "", "").is_inside is inside


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
def test_hashes_that_are_trusted(algorithm: str) -> None:
    text = record(FILES, RECORD, algorithm).decode()
    for row in parse_record(text).rows:
        assert row.mismatch(FILES[row.path]) is None
        assert row.mismatch(FILES[row.path] + b" ") is not None


@pytest.mark.parametrize("digest", ["", "md5=1B2M2Y8AsgTpgAmY7PhCfg", "sha1=x", "shake_128=x", "x"])
def test_hashes_that_are_not(digest: str) -> None:
    assert Row("a", digest, "0").mismatch(b"") == "has no hash in RECORD that can be trusted"


def test_what_a_row_reports() -> None:
    rows = {row.path: row for row in parse_record(TEXT).rows}
    row, content = rows[WHEEL], FILES[WHEEL]
    assert row.mismatch(content[::-1]) == "has another sha256 than RECORD says"
    size = len(content)
    assert row.mismatch(content[1:]) == f"has {size - 1} bytes where RECORD says {size}"
    assert Row(row.path, row.digest, "").mismatch(content) is None
    assert Row(row.path, row.digest, "many").mismatch(content) == (
        f"has {size} bytes where RECORD says many"
    )
    assert rows[METADATA].mismatch(content) is not None
