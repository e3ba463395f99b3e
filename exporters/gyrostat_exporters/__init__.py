"""Shows what the engine decided: metrics for Prometheus, alerts for Alertmanager, all of it for OTLP."""
