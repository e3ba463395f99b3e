"""The sidecar: listens, has the rules decide, writes it down, acts. One process, one loop, no callbacks upward."""
