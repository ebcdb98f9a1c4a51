"""docs/webhooks.md: its catalogue is the code's, and its snippets verify what Headwater signs, and nothing else."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.core.settings import Settings
from app.outbox.event_types import EventType
from app.webhooks.signing import new_secret, signed_headers
from tests.docs.markdown import ROOT, tables

DOCUMENT = ROOT / "docs/webhooks.md"
BODY = '{"event":"ping","data":{"name":"Zoë\\n\\u0000"}}'.encode()
STALE = 301


def snippet(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_catalogue_is_the_codes() -> None:
    rows = [
        row
        for row in tables(DOCUMENT)
        if row[-1].startswith(("a Database", "a Backup", "the Operation", "the WebhookEndpoint"))
    ]
    assert [(row[0].strip("`"), row[1]) for row in rows] == [(event.value, event.description) for event in EventType]


def test_the_schedule_is_the_default_one() -> None:
    units = {"s": 1, "min": 60, "h": 3600}
    (said,) = re.findall(r"with waits of (.+?) before each", DOCUMENT.read_text(), re.DOTALL)
    waits = [int(number) * units[unit] for number, unit in re.findall(r"(\d+)\s+(s|min|h)\b", said)]
    assert waits == list(Settings().webhook_retry_schedule)


def in_python(body: Path, headers: dict[str, str], secret: str, *, fresh: bool) -> bool:
    call = f"{'is_ours_and_fresh' if fresh else 'is_ours'}(open({str(body)!r}, 'rb').read(), {headers!r}, {secret!r})"
    code = f"{snippet('python')}\nimport sys\nsys.exit(0 if {call} else 1)"
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def in_node(body: Path, headers: dict[str, str], secret: str, *, fresh: bool) -> bool:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node.js on this machine")
    arguments = f'require("node:fs").readFileSync({json.dumps(str(body))}), {json.dumps(headers)}, {json.dumps(secret)}'
    call = f"{'isOursAndFresh' if fresh else 'isOurs'}({arguments})"
    code = f"{snippet('javascript')}\nprocess.exit({call} ? 0 : 1)"
    return subprocess.run([node, "-e", code], check=False).returncode == 0


def in_shell(body: Path, headers: dict[str, str], secret: str, *, fresh: bool) -> bool:
    if shutil.which("openssl") is None:
        pytest.skip("no OpenSSL on this machine")
    standard = [headers[f"webhook-{name}"] for name in ("id", "timestamp", "signature")]
    given = standard if fresh else [headers["x-service-signature"]]
    call = shlex.join(["is_ours_and_fresh" if fresh else "is_ours", str(body), *given, secret])
    code = f"set -u\n{snippet('sh')}\n{call}"
    return subprocess.run(["sh", "-c", code], check=False, env={"PATH": os.environ["PATH"]}).returncode == 0


VERIFIERS: dict[str, Callable[..., bool]] = {"python": in_python, "javascript": in_node, "shell": in_shell}


@pytest.mark.parametrize("language", VERIFIERS)
def test_a_snippet_takes_what_is_ours_and_nothing_else(tmp_path: Path, language: str) -> None:
    verify, secret, other = VERIFIERS[language], new_secret(), new_secret()
    body, changed = tmp_path / "body", tmp_path / "changed"
    body.write_bytes(BODY)
    changed.write_bytes(BODY.replace(b"ping", b"pong"))

    def headers(*secrets: str, age: int = 0) -> dict[str, str]:
        moment = int(time.time()) - age
        signed = signed_headers(secrets, event="ping", webhook_id="msg_1", timestamp=moment, body=BODY)
        return {name.lower(): value for name, value in signed.items()}

    good = headers(secret)
    for fresh in (False, True):
        assert verify(body, good, secret, fresh=fresh)
        assert not verify(changed, good, secret, fresh=fresh)
        assert not verify(body, good, other, fresh=fresh)
    assert not verify(body, good | {"x-service-signature": "sha256=" + "0" * 64}, secret, fresh=False)
    assert not verify(body, good | {"webhook-id": "msg_2"}, secret, fresh=True)
    assert not verify(body, headers(secret, age=STALE), secret, fresh=True)
    rotated = headers(secret, other)
    assert verify(body, rotated, secret, fresh=True)
    assert verify(body, rotated, other, fresh=True)
    assert verify(body, rotated, secret, fresh=False)
