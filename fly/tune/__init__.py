"""`@fly.autotune`: a function is compiled in several configurations, and the fastest is used."""
