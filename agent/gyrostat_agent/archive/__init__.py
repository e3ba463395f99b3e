"""Archive of checkpoints in object storage: sent in parts, proven by digests, restored whole or not at all.

An archive is a folder of objects: parts named by their place and digest, and ``index.json``, written last and only
where there is none. Without an index there is no archive. Called by ``gyrostat checkpoints archive`` and ``restore``,
never by the loop. Needs the extra ``archive``.
"""
