"""Cursors that nobody can change unseen."""

from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from labkit.errors import LabError

SHORTEST = 16  # bytes of a secret: 128 bits
_SIGNED = hashlib.sha256().digest_size
_PURPOSE = b"labkit.boards cursor 1\0"  # what else is signed with this secret is no cursor


def check_secret(secret: object) -> bytes:
    """The secret that cursors are signed with.

    Raises:
        LabError: no bytes, or too few of them to be a secret.
    """
    if not isinstance(secret, bytes) or len(secret) < SHORTEST:
        cure = f"Pass {SHORTEST} bytes or more, such as secrets.token_bytes(32), kept in one place."
        raise LabError("A cursor needs a secret to be signed with.", cure)
    return secret


def seal(secret: bytes, *fields: str | int) -> str:
    """A cursor: fields and their signature (HMAC-SHA256) as base64url, fit for a link.

    It is opaque, not encrypted: whoever decodes it reads the fields, and cannot change them.

    Source: RFC 2104 (HMAC); RFC 4648, section 5 (base64url, here without padding).
    """
    payload = json.dumps(fields, separators=(",", ":")).encode()
    return _text(_signature(secret, payload) + payload)


def unseal(secret: bytes, cursor: object) -> list[Any]:
    """The fields of a cursor that `seal` has made with this secret.

    Raises:
        LabError: anything else, were it one bit.
    """
    try:
        raw = urlsafe_b64decode(f"{cursor}===") if isinstance(cursor, str) else b""
    except ValueError:
        raw = b""
    signature, payload = raw[:_SIGNED], raw[_SIGNED:]
    # base64 has several texts for the same bytes, and ignores what it does not know.
    genuine = hmac.compare_digest(signature, _signature(secret, payload)) and _text(raw) == cursor
    if not genuine:
        raise LabError("This cursor was not made here, or was changed.", "Start at the first page.")
    fields: list[Any] = json.loads(payload)
    return fields


def _signature(secret: bytes, payload: bytes) -> bytes:
    return hmac.new(secret, _PURPOSE + payload, hashlib.sha256).digest()


def _text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode("ascii").rstrip("=")
