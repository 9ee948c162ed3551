from plugins import checks, example, here, site  # noqa: F401
