"""Passes written in Python, in folders by what they transform."""
