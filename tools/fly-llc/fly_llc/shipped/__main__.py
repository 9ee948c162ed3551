"""`python -m fly_llc.shipped NAME [OPTION]... < in.mir > out.mir`"""

from __future__ import annotations

import sys

from fly_common.errors import FlyError, UsageError

from fly_llc.insertion import filters


def main() -> int:
    try:
        if len(sys.argv) < 2 or sys.argv[1] not in filters.SHIPPED:
            raise UsageError(
                "no filter given", hint=f"the filters are {', '.join(filters.SHIPPED)}"
            )
        made = filters.shipped(sys.argv[1])(sys.stdin.read(), sys.argv[2:])
        sys.stdout.write(made)
    except FlyError as error:
        print(error.render("fly_llc.shipped"), file=sys.stderr)
        return error.exit_code
    return 0


sys.exit(main())
