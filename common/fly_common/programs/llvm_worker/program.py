"""The worker: `python -I -S program.py LIBRARY` executes requests of `requests` until its standard
input ends, or nothing was asked for `IDLE` seconds.

    request     the lengths of the words, of the next words and of the data (3 x u32), these three;
                words have NUL between them
    READY       one byte, once the library is loaded
    reply       whether all went well (u32), the length of the result (u32), the result

The next words are those of the request that will most likely follow, with this one's result as its
data. It is executed as soon as this one is answered, and answered when it is asked for.

It uses LLVM's C API (llvm-c/{Core,IRReader,Analysis,Target,TargetMachine}.h and
llvm-c/Transforms/PassBuilder.h) as opt and llc use the C++ API. With an error or a warning, which
they would print, the result is empty.
"""

import os
import struct
import sys
from ctypes import (
    CDLL,
    CFUNCTYPE,
    POINTER,
    byref,
    c_char_p,
    c_int,
    c_size_t,
    c_uint,
    c_void_p,
    memset,
    string_at,
)
from select import POLLIN, poll

IDLE = 600.0
MOST_AHEAD = 4  # results that nobody has asked for yet
MOST_ENDED = 4  # modules whose memory is not freed yet
READY = b"!"
FUNCTION_INDEX = 0xFFFFFFFF  # LLVMAttributeFunctionIndex
RETURN_STATUS = 2  # LLVMReturnStatusAction
WARNING = 1  # LLVMDSWarning; LLVMDSError is 0
BACKENDS = ("AMDGPU", "NVPTX")
PARTS = ("TargetInfo", "Target", "TargetMC", "AsmPrinter", "AsmParser")
KINDS = {"asm": 0, "obj": 1}  # LLVMCodeGenFileType

# The heap stays between two requests. glibc would give it back to the system after each one, and
# the next would take a thousand page faults, as long as a tenth of llc. (M_TRIM_THRESHOLD,
# M_MMAP_THRESHOLD and their values; malloc.h.)
HEAP = ((-1, 64 << 20), (-3, 4 << 20))
TOUCHED = (4, 2 << 20)  # as many blocks of as many bytes are touched before the first request

DiagnosticHandler = CFUNCTYPE(None, c_void_p, c_void_p)


class Failed(Exception):
    """A request was not a plain success: the program has to be started for it."""


class Api:
    """The functions of the library, by their names without `LLVM`."""

    def __init__(self, path: str) -> None:
        self.library = CDLL(path)
        for backend in BACKENDS:
            for part in PARTS:
                initialize = getattr(self.library, f"LLVMInitialize{backend}{part}", None)
                if initialize is not None:
                    initialize()

        def function(name: str, result, *arguments):
            made = getattr(self.library, f"LLVM{name}")
            made.restype, made.argtypes = result, arguments
            return made

        P, S = c_void_p, c_char_p
        self.context = function("ContextCreate", P)
        self.dispose_context = function("ContextDispose", None, P)
        self.on_diagnostic = function("ContextSetDiagnosticHandler", None, P, DiagnosticHandler, P)
        self.severity = function("GetDiagInfoSeverity", c_int, P)
        self.buffer = function("CreateMemoryBufferWithMemoryRangeCopy", P, S, c_size_t, S)
        self.dispose_buffer = function("DisposeMemoryBuffer", None, P)
        self.start = function("GetBufferStart", P, P)
        self.size = function("GetBufferSize", c_size_t, P)
        self.parse = function("ParseIRInContext", c_int, P, P, POINTER(P), POINTER(P))
        self.verify = function("VerifyModule", c_int, P, c_int, POINTER(P))
        self.triple = function("GetTarget", S, P)
        self.layout = function("GetDataLayoutStr", S, P)
        self.target = function("GetTargetFromTriple", c_int, S, POINTER(P), POINTER(P))
        self.machine = function("CreateTargetMachine", P, P, S, S, S, c_int, c_int, c_int)
        self.own_layout = function("CreateTargetDataLayout", P, P)
        self.layout_text = function("CopyStringRepOfTargetData", P, P)
        self.dispose_layout = function("DisposeTargetData", None, P)
        self.verbose = function("SetTargetMachineAsmVerbosity", None, P, c_int)
        self.dispose_machine = function("DisposeTargetMachine", None, P)
        self.pass_options = function("CreatePassBuilderOptions", P)
        self.run_passes = function("RunPasses", P, P, S, P, P)
        self.emit = function(
            "TargetMachineEmitToMemoryBuffer", c_int, P, P, c_int, POINTER(P), POINTER(P)
        )
        self.print = function("PrintModuleToString", P, P)
        self.dispose_message = function("DisposeMessage", None, P)
        self.first = function("GetFirstFunction", P, P)
        self.next = function("GetNextFunction", P, P)
        self.attribute = function("GetStringAttributeAtIndex", P, P, c_uint, S, c_uint)
        self.value = function("GetStringAttributeValue", P, P, POINTER(c_uint))
        self.new_attribute = function("CreateStringAttribute", P, P, S, c_uint, S, c_uint)
        self.add_attribute = function("AddAttributeAtIndex", None, P, c_uint, P)
        self.options = self.pass_options()
        self.ended: list[Module] = []  # their memory is freed when no request waits

    def free(self) -> None:
        while self.ended:
            self.ended.pop().free()


class Module:
    """A module in a context of its own. `with Module(api, data) as module:`"""

    def __init__(self, api: Api, data: bytes) -> None:
        self.api, self.told = api, 0
        self.context = api.context()
        self.machines: list[int] = []

        def diagnostic(info, _context) -> None:
            # The handler also receives remarks, which opt and llc do not print.
            self.told += api.severity(info) <= WARNING

        self.handler = DiagnosticHandler(diagnostic)
        api.on_diagnostic(self.context, self.handler, None)
        self.module = c_void_p()
        # The module's name, which opt prints, is that of the buffer. Parsing consumes the buffer.
        buffer = api.buffer(data, len(data), b"<stdin>")
        self.check(api.parse(self.context, buffer, byref(self.module), byref(c_void_p())))
        self.check(api.verify(self.module, RETURN_STATUS, byref(c_void_p())))

    def __enter__(self) -> "Module":
        return self

    def __exit__(self, *_) -> None:
        self.api.ended.append(self)

    def free(self) -> None:
        for machine in self.machines:
            self.api.dispose_machine(machine)
        self.api.dispose_context(self.context)  # with its modules

    def check(self, failed: object) -> None:
        if failed or self.told:
            raise Failed

    def machine(self, cpu: bytes, features: bytes, level: int) -> int:
        api, target = self.api, c_void_p()
        triple = api.triple(self.module)
        self.check(api.target(triple, byref(target), byref(c_void_p())))
        # The default relocation model and code model (0), as without options.
        made = api.machine(target, triple, cpu, features, level, 0, 0)
        self.check(not made)
        self.machines.append(made)
        return made

    def check_layout(self, machine: int) -> None:
        """The module has the data layout of the machine. opt and llc parse any other, and one
        without, as if it had the machine's."""
        api = self.api
        own = api.own_layout(machine)
        text = api.layout_text(own)
        same = string_at(text) == api.layout(self.module)
        api.dispose_message(text)
        api.dispose_layout(own)
        self.check(not same)

    def set_attributes(self, cpu: bytes, features: bytes) -> None:
        """What llc's -mcpu and -mattr do to functions (codegen::setFunctionAttributes)."""
        api, function = self.api, self.api.first(self.module)
        while function:
            if not self.text(function, b"target-cpu"):
                self.set_text(function, b"target-cpu", cpu)
            if features:
                old = self.text(function, b"target-features")
                both = old + b"," + features if old else features
                self.set_text(function, b"target-features", both)
            function = api.next(function)

    def text(self, function: int, name: bytes) -> bytes:
        found = self.api.attribute(function, FUNCTION_INDEX, name, len(name))
        if not found:
            return b""
        length = c_uint()
        return string_at(self.api.value(found, byref(length)), length.value)

    def set_text(self, function: int, name: bytes, value: bytes) -> None:
        made = self.api.new_attribute(self.context, name, len(name), value, len(value))
        self.api.add_attribute(function, FUNCTION_INDEX, made)


def opt(api: Api, data: bytes, level: str) -> bytes:
    with Module(api, data) as module:
        machine = module.machine(b"", b"", int(level))
        module.check_layout(machine)
        passes = f"default<O{level}>".encode()
        module.check(api.run_passes(module.module, passes, machine, api.options))
        printed = api.print(module.module)
        made = string_at(printed)
        api.dispose_message(printed)
        return made


def llc(api: Api, data: bytes, level: str, cpu: str, features: str, kind: str) -> bytes:
    with Module(api, data) as module:
        words = cpu.encode(), features.encode()
        machine = module.machine(*words, int(level))
        module.check_layout(machine)
        api.verbose(machine, 1)
        module.set_attributes(*words)
        out = c_void_p()
        module.check(api.emit(machine, module.module, KINDS[kind], byref(c_void_p()), byref(out)))
        made = string_at(api.start(out), api.size(out))
        api.dispose_buffer(out)
        return made


def read(count: int) -> bytes:
    parts = []
    while count:
        part = os.read(0, count)
        if not part:
            sys.exit(0)
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def reply(done: bool, data: bytes) -> None:
    view = memoryview(struct.pack("<II", done, len(data)) + data)
    while view:
        view = view[os.write(1, view) :]


class Work:
    """Executes requests, and what will most likely be asked next."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.ahead: dict[tuple[bytes, bytes], tuple[bool, bytes]] = {}

    def answer(self, words: bytes, following: bytes, data: bytes) -> None:
        if len(self.api.ended) > MOST_ENDED:
            self.api.free()
        done, made = self.ahead.pop((words, data), None) or self.execute(words, data)
        reply(done, made)
        if done and following:
            while len(self.ahead) >= MOST_AHEAD:
                del self.ahead[next(iter(self.ahead))]
            self.ahead[following, made] = self.execute(following, made)

    def execute(self, words: bytes, data: bytes) -> tuple[bool, bytes]:
        name, *rest = words.decode().split("\0")
        try:
            return True, {"opt": opt, "llc": llc}[name](self.api, data, *rest)
        except Failed:
            return False, b""


def keep_heap() -> None:
    """Lets malloc keep memory, and have some. Other C libraries than glibc are left as they are."""
    library = CDLL(None)
    if not hasattr(library, "mallopt"):
        return
    for parameter, value in HEAP:
        library.mallopt(parameter, value)
    library.malloc.restype, library.malloc.argtypes = c_void_p, (c_size_t,)
    library.free.restype, library.free.argtypes = None, (c_void_p,)
    count, size = TOUCHED
    blocks = [library.malloc(size) for _ in range(count)]
    for block in filter(None, blocks):
        memset(block, 1, size)
    for block in blocks:
        library.free(block)


def main() -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the application
    work = Work(Api(sys.argv[1]))
    os.write(1, READY)
    keep_heap()
    waiting = poll()
    waiting.register(0, POLLIN)
    while True:
        if not waiting.poll(0):
            work.api.free()
            if not waiting.poll(IDLE * 1000):
                break
        sizes = struct.unpack("<III", read(12))
        work.answer(*map(read, sizes))


if __name__ == "__main__":
    main()
