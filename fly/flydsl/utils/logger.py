"""`flydsl.utils.logger`: Python's logger "flydsl"."""

from __future__ import annotations

import logging

from fly.flydsl.utils import env


def log() -> logging.Logger:
    """The logger, which writes where FLYDSL_DEBUG_LOG_TO_FILE and …_TO_CONSOLE say."""
    logger = logging.getLogger("flydsl")
    if not logger.handlers:
        logger.setLevel(env.debug.log_level)
        if env.debug.log_to_file:
            logger.addHandler(logging.FileHandler(env.debug.log_to_file, mode="w"))
        if env.debug.log_to_console:
            logger.addHandler(logging.StreamHandler())
        logger.addHandler(logging.NullHandler())
    return logger
