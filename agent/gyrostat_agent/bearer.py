"""Bearer tokens: what a token file holds, and whether a request bears it. Below the servers that want one."""

import hmac
from email.message import Message

MOST_BYTES = 16 << 10


def only(raw: bytes, path: str) -> bytes:
    """The token that the file at ``path`` holds, as read to one byte more than the most; raises ValueError."""
    token = raw.strip()
    if not token or len(token) > MOST_BYTES:
        raise ValueError(f"{path} must hold a token and nothing else, at most {MOST_BYTES} bytes")
    return token


def bears(headers: "Message[str, str]", token: bytes) -> bool:
    """Whether the one Authorization header bears it; how long that takes tells nothing of the token."""
    said = headers.get_all("Authorization", [])
    shown = said[0] if len(said) == 1 else ""
    return hmac.compare_digest(shown.encode("utf-8", "replace"), b"Bearer " + token)
