"""The folders for this project's files on a user's machine, and checks of who may write there.

Files in the cache folder are executed later: compiled kernels, the emulator's handlers, a library
that llc loads. The folder must therefore be private to the user. It is created with mode 0700, and
not used if others can write to it. That is the case if

- the folder, or a parent, belongs to a user other than this one and root;
- the folder is writable by its group or by everyone, or a parent is, without the sticky bit that
  prevents users from renaming other users' files (as in /tmp).
"""

from __future__ import annotations

import contextlib
import os
import stat

from fly_common.errors import MissingError, UsageError

PRIVATE = 0o700
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
CHOOSE = "set FLY_CACHE_DIR to a directory of your own"

_private: set[str] = set()  # folders that were checked and found private


def cache_dir() -> str:
    """Returns the absolute path of the folder for the content store, the handler library and saved
    inputs.

    It is `FLY_CACHE_DIR` if set, otherwise `fly` in `XDG_CACHE_HOME`, `.cache/fly` in the home
    folder, or, for a user without one, `fly-UID` in the folder for temporary files. Raises
    UsageError if a variable holds a relative path, because the result would depend on the current
    folder. Does not create the folder.
    """
    if chosen := _absolute("FLY_CACHE_DIR"):
        return chosen
    # platformdirs' rules for Linux, without its import time of 20 ms.
    if base := _absolute("XDG_CACHE_HOME"):
        return os.path.join(base, "fly")
    if home := _home():
        return os.path.join(home, ".cache", "fly")
    temporary = os.environ.get("TMPDIR", "")
    folder = temporary if os.path.isabs(temporary) else "/tmp"
    return os.path.join(folder, f"fly-{os.geteuid()}")


def private_cache_dir() -> str:
    """Returns the cache folder, and creates it with mode 0700 if it is missing.

    Raises MissingError, which says who else could write there. A folder is checked once per
    process.
    """
    folder = cache_dir()
    if folder in _private:
        return folder
    with contextlib.suppress(OSError):  # the error is reported when something is written there
        make_private(folder)
    if reason := why_not_private(folder):
        raise MissingError(
            f"the cache directory {folder} is not private: {reason[0]}", hint=reason[1]
        )
    if os.path.isdir(folder):
        _private.add(folder)
    return folder


def make_private(folder: str) -> None:
    """Creates a folder and its missing parents with mode 0700."""
    if not os.path.isdir(above := os.path.dirname(folder)) and above != folder:
        make_private(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, PRIVATE)


def why_not_private(folder: str) -> tuple[str, str] | None:
    """Returns who else could put files into `folder` and a hint, or None if nobody could."""
    real = os.path.realpath(folder)
    for path in dict.fromkeys((*_with_parents(folder), *_with_parents(real))):
        try:
            status = os.lstat(path)
        except OSError:
            continue  # a folder that is missing or inaccessible cannot be written to
        itself = path in (folder, real)
        if status.st_uid not in (0, os.geteuid()) and (itself or not _is_unmapped(status.st_uid)):
            return f"{path} belongs to {_user(status.st_uid)}", CHOOSE
        open_to_others = stat.S_ISDIR(status.st_mode) and status.st_mode & OTHERS_WRITE
        if open_to_others and (itself or not status.st_mode & stat.S_ISVTX):
            who = "everyone" if status.st_mode & stat.S_IWOTH else "its group"
            mend = "" if path in _TEMPORARY else f"chmod {'-R ' * itself}go-w {path}, or "
            return f"{path} can be written by {who}", f"{mend}{CHOOSE}"
    return None


def is_own(status: os.stat_result) -> bool:
    """Whether only the user or root can have written an open file."""
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid in (0, os.geteuid())
        and not status.st_mode & OTHERS_WRITE
    )


_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # folders whose mode is expected


def _with_parents(path: str) -> list[str]:
    found = [path]
    while (above := os.path.dirname(found[-1])) != found[-1]:
        found.append(above)
    return found


def _absolute(variable: str) -> str:
    value = os.environ.get(variable, "").strip()
    if value and not os.path.isabs(value):
        from fly_common.quoting import shortened

        raise UsageError(
            f"{variable}={shortened(value)}: is a relative path",
            hint="the cache directory must be an absolute path:"
            f" {variable}=$PWD/{shortened(value)}",
        )
    return os.path.normpath(value) if value else ""


def _home() -> str | None:
    """Returns the user's home folder, or None if it has no absolute path."""
    home = os.environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    import pwd

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a user without an entry, as in many containers
        return None
    return home if os.path.isabs(home) and os.path.isdir(home) else None


def _is_unmapped(owner: int) -> bool:
    """Whether `owner` is the overflow user, to whom the files of all unmapped users, including
    root, belong in a container that maps only a few users."""
    try:
        with open("/proc/self/uid_map") as file:
            mapped = sum(int(line.split()[2]) for line in file)
        with open("/proc/sys/kernel/overflowuid") as file:
            return mapped < (1 << 32) - 1 and owner == int(file.read())
    except (OSError, ValueError, IndexError):
        return False


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
