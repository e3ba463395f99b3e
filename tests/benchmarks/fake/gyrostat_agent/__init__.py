"""Takes the product's place where a test is about the campaign around it: it says what it is told."""
