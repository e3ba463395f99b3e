"""What frameworks need to use the SDK. Each module imports its framework only where it is handed its objects."""
