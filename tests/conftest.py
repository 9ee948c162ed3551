"""What all the tests share."""

from hypothesis import settings

# A slow machine is not a failure. Examples are the same in each run: a failure that comes and goes
# teaches nobody; `--hypothesis-seed=random` looks further.
settings.register_profile("fly", deadline=None, derandomize=True)
settings.load_profile("fly")
