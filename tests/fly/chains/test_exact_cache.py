"""What reruns when what LLVM is told, or LLVM itself, changes: exactly what depends on it.

`FLY_CACHE=explain` says which stages had to run, and why.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fly_common.errors import InputError
from fly_common.programs import toolchain

import fly

from .scaling import made, scale


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


SED = (
    "import sys; text = sys.stdin.read();"
    " sys.stdout.write(text.replace('S_ENDPGM', 'S_NOP {}\\n    S_ENDPGM'))"
)


@pytest.fixture
def rerun(monkeypatch, capfd):
    """Compiles with these options, and tells the stages that had to run, with the reasons."""
    monkeypatch.setenv("FLY_CACHE", "explain")

    def compiled(**options) -> dict[str, str]:
        capfd.readouterr()
        made(**options)
        lines = [line for line in capfd.readouterr().err.splitlines() if ": miss " in line]
        told = (line.removeprefix("fly: cache: ").partition(": miss ") for line in lines)
        return {stage: why.partition(": ")[2] for stage, _, why in told}

    return compiled


ALL = ["trace", "opt-py", "opt", "llc", "link"]


def test_one_byte_of_a_filter(tmp_path, rerun):
    """Code generation and what is behind it, nothing else; touching it reruns nothing."""
    filter = script(tmp_path / "filter.py", SED.format(1))
    insert = [f"pre-emit={filter}"]
    assert list(rerun(insert=insert)) == ALL
    assert rerun(insert=insert) == {}
    later = time.time() + 100
    os.utime(filter, (later, later))
    assert rerun(insert=insert) == {}
    script(filter, SED.format(2))
    again = rerun(insert=insert)
    assert list(again) == ["llc", "link"]
    assert again["llc"].startswith("changed: ")
    assert again["link"] == "its input is new"
    # A filter that changes, and makes the same: the stages behind it are found.
    script(filter, "# another\n" + SED.format(2))
    assert list(rerun(insert=insert)) == ["llc"]
    # As it was at first: everything is found.
    script(filter, SED.format(1))
    assert rerun(insert=insert) == {}


def test_a_file_that_a_filter_s_words_name(tmp_path, rerun):
    (tmp_path / "edit.sed").write_text("s/S_ENDPGM/S_NOP 1\\n    S_ENDPGM/")
    insert = [f"pre-emit=sed -f {tmp_path / 'edit.sed'}"]
    assert list(rerun(insert=insert)) == ALL
    (tmp_path / "edit.sed").write_text("s/S_ENDPGM/S_NOP 2\\n    S_ENDPGM/")
    assert list(rerun(insert=insert)) == ["llc", "link"]


def test_one_byte_of_an_option(rerun):
    """Of the pipeline, of opt's `cl::opt`, of code generation's."""
    assert list(rerun(llc_options=["-amdgpu-waitcnt-forcezero=0"])) == ALL
    again = rerun(llc_options=["-amdgpu-waitcnt-forcezero=1"])
    assert list(again) == ["llc", "link"]
    assert "-amdgpu-waitcnt-forcezero=0" in again["llc"]
    # This one changes nothing that opt makes: what is behind it is found.
    said = ["-amdgpu-waitcnt-forcezero=0"]
    assert list(rerun(llc_options=said, opt_options=["-unroll-threshold=1"])) == ["opt"]
    assert list(rerun(llc_options=said, opt_options=["-unroll-threshold=2"])) == ["opt"]
    assert list(rerun(llc_options=said, opt_level=0)) == ["opt", "llc", "link"]
    assert rerun(llc_options=said) == {}


@pytest.fixture
def prefix(tmp_path, monkeypatch) -> Path:
    """An LLVM of the test's own: its programs, and a copy of its library that they load."""
    folder = tmp_path / "llvm"
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    for name in ("opt", "llc", "ld.lld"):
        shutil.copy(os.path.realpath(toolchain.find_program(name)), folder / "bin" / name)
        os.utime(folder / "bin" / name, (1e9, 1e9))  # not just changed
    library = Path(toolchain.find_library())
    shutil.copy(library, folder / "lib" / library.name)
    for other in library.parent.glob("liblld*.so*"):
        (folder / "lib" / other.name).symlink_to(other)
    monkeypatch.setenv("FLY_LLVM_DIR", str(folder))
    return folder


def test_one_byte_of_llvm_s_library(prefix, rerun):
    """Whatever runs LLVM; not what comes before it."""
    (library,) = (path for path in (prefix / "lib").iterdir() if path.name.startswith("libLLVM"))
    assert list(rerun()) == ALL
    loaded = subprocess.run(["ldd", prefix / "bin" / "llc"], capture_output=True, text=True).stdout
    assert str(library) in loaded.replace("bin/../", "")
    os.utime(library, (1e9, 1e9))  # its time is a part of its identity, so that it is not read
    assert list(rerun()) == ["opt", "llc", "link"]
    assert rerun() == {}
    size = library.stat().st_size
    with library.open("ab") as file:
        file.write(b"\0")  # behind the sections: the same code
    again = rerun()
    assert list(again) == ["opt", "llc", "link"]
    assert all(why.startswith("changed: ") for why in again.values())
    os.truncate(library, size)
    os.utime(library, (1e9, 1e9))
    assert rerun() == {}


def test_the_order_of_insertions_matters_and_of_variables_does_not():
    first = ["pre-emit=nop-sled --count 1", "pre-emit=nop-sled --cycles 2"]
    assert made(insert=first).hsaco != made(insert=first[::-1]).hsaco
    digests = set()
    said = {"FLY_LLC_INSERT": "pre-emit=nop-sled", "FLY_OPT_LEVEL": "2"}
    for names in (list(said), list(said)[::-1]):
        with pytest.MonkeyPatch.context() as patch:
            for name in names:
                patch.setenv(name, said[name])
            digests.add(fly.jit(scale)._chain(None).identity())
    assert len(digests) == 1


def test_a_bad_filter_leaves_nothing_in_the_store(tmp_path, rerun):
    filter = script(tmp_path / "bad.py", "import sys; sys.exit('no')")
    for _ in range(2):
        with pytest.raises(InputError, match=r"the filter .*bad\.py .*failed \(exit status 1\)"):
            made(insert=[f"pre-emit={filter}"])
    script(filter, "import sys; sys.stdout.write(sys.stdin.read())")
    assert list(rerun(insert=[f"pre-emit={filter}"])) == ["llc", "link"]


AT_ONCE = """
import sys
sys.path.insert(0, {folder!r})
import scaling
print("ready", flush=True)
sys.stdin.readline()
print(scaling.made(insert=[{insert!r}]).hsaco.hex())
"""


def test_two_processes_at_once_compile_once(tmp_path):
    """The filter counts its runs, and takes long enough for both to want it."""
    log = tmp_path / "log"
    body = f"import time; open({str(log)!r}, 'a').write('run\\n'); time.sleep(1)\n"
    filter = script(tmp_path / "filter.py", body + SED.format(1))
    text = AT_ONCE.format(folder=str(Path(__file__).parent), insert=f"pre-emit={filter}")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([sys.executable, "-c", text], **pipes) for _ in range(2)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    results = {process.communicate(timeout=120)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0]
    assert len(results) == 1
    assert log.read_text() == "run\n"
