"""Takes the reference trainer's place as a control twin: it trains nothing."""
