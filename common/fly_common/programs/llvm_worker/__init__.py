"""Runs `opt` and `llc` in one process that stays, for applications that compile again and again.

Most of the time of a small module in `opt` and `llc` goes into starting them: each loads LLVM's
library. The worker is a process of ours that has loaded the library once, and executes the plain
command lines (`opt -S -O3`, `llc -mcpu=gfx942 -O2 -filetype=obj`) by LLVM's C API. It is another
process, so that an abort within LLVM is no abort of the application.

The result is the program's, byte for byte. After anything but plain success (an error, a warning,
an abort, a lost worker) the program itself is started for the input, and its messages are shown.

requests    which command lines the worker executes
client      the worker of this process: started, asked, ended
program     the program that the worker executes; it imports nothing of ours
"""
