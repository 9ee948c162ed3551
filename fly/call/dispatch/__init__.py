"""Native code that takes a call: it checks that nothing has changed, and selects a launcher."""
