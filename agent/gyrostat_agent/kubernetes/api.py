"""The API server over HTTP: the one module that imports the official client, for its configuration and its TLS.

Paths and content types are our own: the client sends a list for a custom resource as a merge patch, an object for a
core resource as a strategic one, and its versions differ in how a request is made. Nothing is retried here: whoever
asks knows whether it may be asked again.
"""

import json
import os
from typing import Any

from gyrostat_agent.errors import SetupError
from gyrostat_agent.kubernetes.refusals import AwayError, refusal
from gyrostat_agent.kubernetes.request import METHODS, Request, words

CONNECT_SECONDS, READ_SECONDS = 5.0, 15.0
_MOST = 32 << 20  # bytes of an answer
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


class Api:
    """Asks one API server. ``client`` is one of ``kubernetes.client.Configuration``."""

    def __init__(self, client: Any) -> None:
        from kubernetes.client.rest import RESTClientObject

        self._client = client
        self._pool: Any = RESTClientObject(client).pool_manager
        self._host = str(client.host).rstrip("/")

    def ask(self, request: Request) -> Any:
        """The answer as JSON; raises KubernetesError."""
        import urllib3

        body = None if request.body is None else json.dumps(request.body).encode()
        limits = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
        try:
            answer = self._pool.request(
                METHODS[request.verb], self._host + request.path, body=body, headers=self._headers(request),
                timeout=limits, retries=False, preload_content=True,
            )  # fmt: skip
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise AwayError(
                f"{words(request)}: the API server at {self._host} does not answer: {_short(error)}"
            ) from None
        if not 200 <= answer.status < 300:
            raise refusal(request, answer.status, answer.data, dict(answer.headers))
        try:
            return json.loads(answer.data[:_MOST])
        except ValueError:
            raise AwayError(f"{words(request)}: half an answer came from {self._host}") from None

    def _headers(self, request: Request) -> dict[str, str]:
        from kubernetes.config import ConfigException

        try:  # a token that was rotated is read anew by the client
            token = self._client.get_api_key_with_prefix("BearerToken", alias="authorization")
        except (ConfigException, OSError) as error:
            raise AwayError(f"the service account's token cannot be read: {_short(error)}") from None
        found = {"Accept": "application/json", "User-Agent": "gyrostat", "Content-Type": request.content}
        return {**found, "Authorization": token} if token else found


def connect(kubeconfig: str = "") -> Api:
    """By the pod's service account, else by a kubeconfig; raises SetupError with what is missing."""
    try:
        import kubernetes.client
        import kubernetes.config
    except ModuleNotFoundError:
        raise SetupError("Kubernetes needs its client: pip install 'gyrostat[kubernetes]'") from None
    chosen, config = kubernetes.client.Configuration(), vars(kubernetes)["config"]  # which has no types
    try:
        if kubeconfig or not os.environ.get("KUBERNETES_SERVICE_HOST"):
            config.load_kube_config(kubeconfig or None, client_configuration=chosen)
        else:
            config.load_incluster_config(client_configuration=chosen)
    except (config.ConfigException, OSError, ValueError, TypeError) as error:
        raise SetupError(
            f"no way to the API server: {_short(error)}; in a pod set automountServiceAccountToken: true and a "
            f"serviceAccountName ({_ACCOUNT}), elsewhere KUBECONFIG"
        ) from None
    return Api(chosen)


def _short(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
