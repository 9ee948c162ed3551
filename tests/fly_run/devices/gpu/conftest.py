"""Fixtures of tests of GPUs."""

from __future__ import annotations

import pytest
from fly_run.devices.gpu.cuda import Cuda
from fly_run.devices.gpu.hip import Hip


@pytest.fixture(params=[Cuda, Hip], ids=["cuda", "hip"])
def kind(request):
    return request.param
