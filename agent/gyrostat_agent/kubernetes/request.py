"""A request to the API server, as a value: what a plan is made of, and what ``--dry-run`` shows.

Patches are merge patches of objects, also where the client would make strategic ones: of both one knows what comes
out without the server's schemas. A ``resourceVersion`` in the body makes it conditional on nothing having changed.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, urlencode

MERGE, PLAIN = "application/merge-patch+json", "application/json"
METHODS = {"get": "GET", "list": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
Object = Mapping[str, Any]
_PAGE = 500


class Ref(NamedTuple):
    """Where a thing lies. ``api``: v1, batch/v1; ``namespace`` '' for what has none; ``part``: eviction, status."""

    api: str
    plural: str
    name: str = ""
    namespace: str = ""
    part: str = ""

    @property
    def resource(self) -> str:
        """As roles name it: ``pods/eviction``, ``jobs.batch``."""
        group = self.api.rpartition("/")[0]
        return f"{self.plural}{'.' + group if group else ''}{'/' + self.part if self.part else ''}"

    @property
    def path(self) -> str:
        """Of its address."""
        pieces = ["apis" if "/" in self.api else "api", *self.api.split("/")]
        pieces += ["namespaces", self.namespace] if self.namespace else []
        pieces += [piece for piece in (self.plural, self.name, self.part) if piece]
        return "/" + "/".join(quote(piece, safe="") for piece in pieces)


class Request(NamedTuple):
    """``verb`` as roles name it; ``body`` None for none; ``query`` its parameters, in order."""

    verb: str
    ref: Ref
    body: Object | None = None
    query: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str:
        """Address with its parameters."""
        return self.ref.path + (f"?{urlencode(self.query)}" if self.query else "")

    @property
    def content(self) -> str:
        """Type of the body."""
        return MERGE if self.verb == "patch" else PLAIN


class Server(Protocol):
    """Whoever answers: the API server, by ``api``, or one that is asked for nothing but a look."""

    def ask(self, request: Request) -> Any:
        """The answer, as JSON was read; raises KubernetesError. Waits seconds at most."""


def get(ref: Ref) -> Request:
    """Read one."""
    return Request("get", ref)


def every(server: Server, ref: Ref, labels: str = "") -> list[Any]:
    """All that bear the labels, page after page; raises KubernetesError, ConflictError where the pages are too old.

    Whoever counts must not take a first page for the whole: one pod too few, and a job is begun beside its own.
    """
    chosen = (("labelSelector", labels),) if labels else ()
    found: list[Any] = []
    more = ""
    while True:
        page = (*chosen, ("limit", str(_PAGE)), *((("continue", more),) if more else ()))
        told = server.ask(Request("list", ref._replace(name=""), None, page))
        found += told.get("items") or []
        more = str((told.get("metadata") or {}).get("continue") or "")
        if not more:
            return found


def patch(ref: Ref, body: Object) -> Request:
    """Change some of one."""
    return Request("patch", ref, body)


def create(ref: Ref, body: Object) -> Request:
    """Make one."""
    return Request("create", ref._replace(name="") if not ref.part else ref, body)


def dry(request: Request) -> Request:
    """The same, and the server changes nothing."""
    return request._replace(query=(*request.query, ("dryRun", "All")))


def words(request: Request) -> str:
    """``patch trainjobs run1 in ml``."""
    ref = request.ref
    what = f"{request.verb} {ref.plural}{'/' + ref.part if ref.part else ''}"
    return " ".join(filter(None, [what, ref.name, f"in {ref.namespace}" if ref.namespace else ""]))


def shown(request: Request) -> str:
    """What would be sent, for people."""
    head = f"{METHODS[request.verb]} {request.path}\nContent-Type: {request.content}"
    return f"{head}\n{json.dumps(request.body, indent=2, ensure_ascii=False)}" if request.body is not None else head


def version_of(thing: Object) -> str:
    """Its resourceVersion."""
    return str(thing.get("metadata", {}).get("resourceVersion", ""))


def annotations_of(thing: Object) -> Mapping[str, str]:
    """Its annotations, none where it has none."""
    found = thing.get("metadata", {}).get("annotations")
    return found if isinstance(found, dict) else {}
