"""The device `cuda` on an NVIDIA GPU of compute capability 9.0 or later: `python -m h200_devices`.

It needs the checkout, NumPy, torch and the driver. The kernels are hand-written PTX, which the
driver compiles, so no compiler is needed. Native launchers need llvmlite; without it what they do
is reported as not run. From the root of the checkout:

    PYTHONPATH=.:common:tools/fly-run:tools/fly-trace:tests python -m h200_devices [NAME ...]

Examples that were compiled elsewhere (`python -m h200_devices.carry FOLDER`) are run too if
H200_IMAGES names their folder.

Each check prints a line. The exit status is the number of checks that failed.
"""
