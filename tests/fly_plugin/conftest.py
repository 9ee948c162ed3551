from plugins import checks, example, hello, here, site  # noqa: F401
