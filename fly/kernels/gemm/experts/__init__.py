"""Mixtures of experts: which rows go to which matrices, and back."""
