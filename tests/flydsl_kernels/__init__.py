"""Cases of FlyDSL's kernels: small problems against torch. `scripts/flydsl-kernels` runs them."""
