"""An OTLP collector is told here: where it is, what waits for it, the post, and the threads that send."""
