import gc
import subprocess
import sys

from fly_common import code_tables


def made():
    return compile("a = 1", "<test>", "exec")


def test_an_entry_goes_with_its_code():
    table: dict[int, str] = {}
    code, other = made(), made()
    assert code_tables.keep(table, code, "x") == "x"
    code_tables.keep(table, other, "y")
    assert table == {id(code): "x", id(other): "y"}
    del code
    gc.collect()
    assert list(table.values()) == ["y"]


def test_a_second_value_replaces_the_first():
    table: dict[int, str] = {}
    code = made()
    code_tables.keep(table, code, "x")
    code_tables.keep(table, code, "y")
    assert table == {id(code): "y"}
    del code
    gc.collect()
    assert not table


END = """
import sys
from fly_common import code_tables

def made():
    return compile("a = 1", "<test>", "exec")

table, other, code, inner = {}, {}, made(), made()
code_tables.keep(table, code, inner)  # frees `inner` with the table
code_tables.keep(other, inner, "x")
del table, inner
sys.unraisablehook = lambda error: print(error.exc_value)
code_tables._references = None  # as Python does at the end
"""


def test_the_end_of_the_process_says_nothing():
    done = subprocess.run([sys.executable, "-c", END], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
