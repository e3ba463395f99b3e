"""In Kubernetes: the job of this pod as something that can be held, restarted and told of.

``owner`` finds the job, ``jobs`` says how each kind is stopped and begun again, ``course`` which request comes next
(pure), ``turn`` sends it, ``process`` is the thread that obeys directives, ``finisher`` what goes on when the pod is
gone. The official client is imported in ``api`` alone, and only where Kubernetes is asked for: it costs 35 MB.
"""
