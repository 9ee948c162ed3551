from plugins import checks, hello, here, site  # noqa: F401
