import gc

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
