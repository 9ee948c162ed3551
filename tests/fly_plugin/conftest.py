from plugins import example, hello, here, site  # noqa: F401
