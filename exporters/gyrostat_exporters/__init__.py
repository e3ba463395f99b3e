"""Shows what the engine decided: metrics for Prometheus now; OTLP, Alertmanager and Kubernetes Events later."""
