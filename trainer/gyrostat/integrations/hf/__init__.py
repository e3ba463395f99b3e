"""The parts of ``gyrostat.integrations.transformers``. Hugging Face's objects come in; nothing is imported."""
