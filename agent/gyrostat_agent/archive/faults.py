"""What the client of an object storage says went wrong, as a sentence that says what to do.

Nothing of the store's own answer is shown but its code: it may hold the name of a key, and what a URL asks for.
Called by ``store``. Not promised: that every store words its errors as those that are known here.
"""

import re
from typing import NamedTuple

from gyrostat.wire.fields import clean

_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_STATUS = re.compile(r"status code: (\d{3})")
_URL = re.compile(r"\w+://\S+")
_SHOWN = 160  # characters of an error that is not known here
_CREDENTIALS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or your cloud's own), or give the machine a role"


class _Fault(NamedTuple):
    """Codes of an answer and phrases of the client by which a fault is known, and what is told of it."""

    marks: tuple[str, ...]
    told: str


_METADATA = ("169.254.169.254", "169.254.170.", "metadata.google.internal")  # asked where no credentials are set
_FAULTS = (
    _Fault(("NoSuchBucket", "NoSuchContainer", "ContainerNotFound"), "there is no bucket of that name; make it, or "
           "correct the URL"),
    _Fault(("InvalidObjectState",), "it lies in a cold storage class; have it brought back first (S3: "
           "restore-object), which takes hours, and run this again"),
    _Fault(("RequestTimeTooSkewed", "RequestExpired"), "this machine's clock is too far from the store's; set it "
           "(NTP), and run this again"),
    _Fault(("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired",
            "InvalidClientTokenId", "401"), f"the credentials are refused; renew them: {_CREDENTIALS}"),
    _Fault(("PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"),
           "the bucket is in another region; set AWS_REGION to it"),
    _Fault(("InvalidStorageClass",), "it knows no such storage class; see what your store calls them"),
    _Fault(("No space left", "Disk quota exceeded", "QuotaExceeded", "XMinioStorageFull"), "the store is full; make "
           "room there, and run this again"),
    _Fault(("AccessDenied", "AccountProblem", "AllAccessDisabled", "403"), "these credentials lack the right; they "
           "need to read, write and list below that URL (S3: GetObject, PutObject, ListBucket)"),
    _Fault(("Permission denied", "Read-only file system"), "it may not be written or read there; see its rights"),
    _Fault(("PutMode::Update",), "this store cannot change an index once it is written; tag it when it is archived"),
    _Fault(("opts.attributes",), "this store has no storage classes; leave --storage-class out"),
    _Fault(("SlowDown", "ServiceUnavailable", "TooManyRequests", "503", "429"), "it is too busy; run this again "
           "later, or give a lower --bandwidth"),
    _Fault(("InternalError", "500", "502", "504"), "it failed by itself; run this again"),
    _Fault(("NotImplemented", "501"), "it lacks a conditional create, without which two uploads would overwrite each "
           "other; use a store that has it"),
    _Fault(("error sending request", "dns error", "timed out", "Connection refused", "error decoding response body",
            "connection closed"), "it does not answer; see network, proxy and AWS_ENDPOINT_URL, and run this again "
           "(on a slow line give AWS_TIMEOUT=5m)"),
)  # fmt: skip


def sentence(error: BaseException) -> str:
    """Why ``error`` came and what to do, in one line; of what is not known, its first words, without URLs."""
    text = str(error)
    if any(place in text for place in _METADATA):
        return f"no credentials were found; {_CREDENTIALS}"
    code, status = _CODE.search(text), _STATUS.search(text)
    said = _URL.sub("", text.partition("\n")[0])
    marks = {found[1] for found in (code, status) if found}
    for fault in _FAULTS:
        if any(mark in marks or ((" " in mark or ":" in mark or "." in mark) and mark in text) for mark in fault.marks):
            return fault.told + (f" ({code[1]})" if code else "")
    return f"it answered {code[1]}" if code else clean(said.strip())[:_SHOWN] or type(error).__name__
