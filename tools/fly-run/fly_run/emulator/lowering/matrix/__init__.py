"""Lowers matrix instructions: MFMA of waves of 64, WMMA of waves of 32."""
