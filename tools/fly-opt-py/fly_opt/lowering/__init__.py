"""The interface between the passes and a backend; `fly_opt.backends` implements it."""
