"""The backend `rocm`: its pipeline, passes, emitters and device libraries."""
