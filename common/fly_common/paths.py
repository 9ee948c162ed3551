"""Where this project keeps things of its own on a user's machine, and who may write there.

What lies in the cache folder is run later: compiled kernels, the emulator's handlers, a library
that llc loads. So the folder belongs to the user alone. It is made with mode 0700, and one that
others can write to is not used. Others can where

- the folder, or one above it, belongs to somebody else than the user and root;
- the folder may be written by its group or by everyone; or one above it may, without the sticky bit
  that keeps people from renaming what is not theirs (as in /tmp).
"""

from __future__ import annotations

import contextlib
import os
import stat

from fly_common.errors import MissingError, UsageError

PRIVATE = 0o700
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
CHOOSE = "set FLY_CACHE_DIR to a directory of your own"

_private: set[str] = set()  # folders that were looked at and found private


def cache_dir() -> str:
    """The folder of the content store, the handler library and kept inputs: an absolute path.

    `FLY_CACHE_DIR` if set, else `fly` in `XDG_CACHE_HOME`, else `.cache/fly` in the home folder,
    else, for a user without one, `fly-UID` in the folder for temporary files. UsageError where a
    variable holds a relative path: results would be found from one folder and not from the next.
    It is not created here.
    """
    if chosen := _absolute("FLY_CACHE_DIR"):
        return chosen
    # What platformdirs says for Linux, without the 20 ms that importing it takes.
    if base := _absolute("XDG_CACHE_HOME"):
        return os.path.join(base, "fly")
    if home := _home():
        return os.path.join(home, ".cache", "fly")
    temporary = os.environ.get("TMPDIR", "")
    folder = temporary if os.path.isabs(temporary) else "/tmp"
    return os.path.join(folder, f"fly-{os.geteuid()}")


def private_cache_dir() -> str:
    """The cache folder, made with mode 0700 where it is missing and can be made.

    MissingError says who else could write there. A folder that was found private is not looked at
    again by this process.
    """
    folder = cache_dir()
    if folder in _private:
        return folder
    with contextlib.suppress(OSError):  # whoever writes there says why it can't be made
        make_private(folder)
    if reason := why_not_private(folder):
        raise MissingError(
            f"the cache directory {folder} is not private: {reason[0]}", hint=reason[1]
        )
    if os.path.isdir(folder):
        _private.add(folder)
    return folder


def make_private(folder: str) -> None:
    """Makes a folder and those above it that are missing, each for the user alone (0700)."""
    if not os.path.isdir(above := os.path.dirname(folder)) and above != folder:
        make_private(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, PRIVATE)


def why_not_private(folder: str) -> tuple[str, str] | None:
    """Who else could put files into `folder`, and what to do about it; None where nobody could."""
    real = os.path.realpath(folder)
    for path in dict.fromkeys((*_and_above(folder), *_and_above(real))):
        try:
            status = os.lstat(path)
        except OSError:
            continue  # what is not there yet, or can't be reached, can't be written to either
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
    """Whether an open file is one that only the user, or root, can have written."""
    return (
        stat.S_ISREG(status.st_mode)
        and status.st_uid in (0, os.geteuid())
        and not status.st_mode & OTHERS_WRITE
    )


_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # folders whose mode is as it should be


def _and_above(path: str) -> list[str]:
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
    """The user's home folder; None where there is none that a path could begin with."""
    home = os.environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    import pwd

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a user that only has a number, as in many containers
        return None
    return home if os.path.isabs(home) and os.path.isdir(home) else None


def _is_unmapped(owner: int) -> bool:
    """Whether that is nobody in particular: in a container that knows a few users only, all others'
    files, root's among them, belong to this one."""
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
