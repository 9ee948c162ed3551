from plugins import hello, here, site  # noqa: F401
