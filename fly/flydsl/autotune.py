"""`flydsl.autotune`: one of several configurations for each kind of call.

Without FLYDSL_AUTOTUNE=1 a call uses the winner that is known, else `default`, else the first
configuration. With it, the first call of a kind measures all of them. Winners are kept in
FLYDSL_AUTOTUNE_CACHE_DIR, one file for each function.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from fly_common import paths
from fly_common.errors import FlyError, UsageError

from fly.call.arrays.views import is_array
from fly.flydsl.compiler import hints
from fly.flydsl.runtime.device import get_rocm_arch

OPTIONS = ("num_warps", "waves_per_eu", "maxnreg")


class Config:
    """Values for the function's parameters, and compile hints."""

    def __init__(
        self,
        *,
        num_warps: int | None = None,
        waves_per_eu: int | None = None,
        maxnreg: int | None = None,
        pre_hook: Callable[[Mapping[str, Any]], None] | None = None,
        **kwargs: Any,
    ):
        self.num_warps, self.waves_per_eu, self.maxnreg = num_warps, waves_per_eu, maxnreg
        self.pre_hook, self.kwargs = pre_hook, kwargs

    def all_kwargs(self) -> dict[str, Any]:
        """The parameters' values."""
        more = {} if self.num_warps is None else {"num_warps": self.num_warps}
        return {**self.kwargs, **more}

    def compiler_opts(self) -> dict[str, Any]:
        """The compile hints."""
        given = {"waves_per_eu": self.waves_per_eu, "maxnreg": self.maxnreg}
        return {name: value for name, value in given.items() if value is not None}

    def to_dict(self) -> dict[str, Any]:
        """All values by name."""
        return {**self.all_kwargs(), **self.compiler_opts()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Config:
        return cls(**values)

    def __repr__(self) -> str:
        return f"Config({', '.join(f'{name}={value}' for name, value in self.to_dict().items())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self))


def do_bench(
    fn: Callable[[], Any], warmup: int = 5, rep: int = 25, quantiles: Sequence[float] | None = None
) -> Any:
    """The median time of a call in milliseconds, of `rep` calls after `warmup` others; or the
    quantiles that are asked for."""
    for _ in range(warmup):
        fn()
    times = []
    for _ in range(rep):
        start = time.perf_counter()
        fn()
        times.append((time.perf_counter() - start) * 1e3)
    if quantiles is None:
        return statistics.median(times)
    times.sort()
    return [times[min(len(times) - 1, int(one * len(times)))] for one in quantiles]


class Autotuner:
    """The result of `@autotune`."""

    def __init__(
        self,
        fn: Callable[..., Any],
        configs: Sequence[Config] | Callable[..., Sequence[Config]],
        key: Sequence[str] | None = (),
        warmup: int = 5,
        rep: int = 25,
        prune_configs_by: Mapping[str, Any] | Callable[..., Any] | None = None,
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        do_bench_fn: Callable[..., Any] | None = None,
        default: Config | Callable[..., Config] | None = None,
        artifact_name: str | None = None,
    ):
        self.fn, self.configs, self.key, self.default = fn, configs, tuple(key or ()), default
        self.warmup, self.rep, self.prune = warmup, rep, prune_configs_by
        self.reset_to_zero = tuple(reset_to_zero or ())
        self.restore_value = tuple(restore_value or ())
        self.pre_hook, self.post_hook, self._bench = pre_hook, post_hook, do_bench_fn
        self.artifact_name = artifact_name
        self.name = artifact_name or getattr(fn, "__name__", "function")
        self.cache: dict[str, Config] = {}
        functools.update_wrapper(self, fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        named = self._named(args, kwargs)
        key = self._make_key(args, kwargs)
        config = self.cache.get(key) or self._read(key)
        if config is None:
            config = self._load_artifact(self._artifact_ref(args, kwargs), args, kwargs)
        if config is None and os.environ.get("FLYDSL_AUTOTUNE") == "1":
            config = self._tuned(args, kwargs, named)
            self._write(key, config)
        if config is None:
            config = self._fallback(args, kwargs)
        self.cache[key] = config
        return self._run(config, args, kwargs)

    def _named(self, args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        plain = getattr(self.fn, "function", self.fn)
        bound = inspect.signature(plain).bind_partial(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _make_key(self, args: Any, kwargs: Mapping[str, Any]) -> str:
        """What calls share that have one winner: the chip, the key, the types of tensors."""
        named = self._named(args, kwargs)
        parts = {name: repr(named.get(name)) for name in self.key}
        types = {name: str(one.dtype) for name, one in named.items() if is_array(one)}
        return json.dumps([get_rocm_arch(), parts, types], sort_keys=True)

    def _listed(self, args: Any, kwargs: Mapping[str, Any]) -> list[Config]:
        given = self.configs(*args, **kwargs) if callable(self.configs) else self.configs
        found = list(given)
        if not found:
            raise UsageError(f"{self.name} has no configurations")
        return found

    def _fallback(self, args: Any, kwargs: Mapping[str, Any]) -> Config:
        if callable(self.default):
            return self.default(*args, **kwargs)
        return self.default or self._listed(args, kwargs)[0]

    def _pruned(self, configs: list[Config], named: Mapping[str, Any]) -> list[Config]:
        if self.prune is None:
            return configs
        choose = self.prune if callable(self.prune) else self.prune.get("early_config_prune")
        return list(choose(configs, named)) if choose is not None else configs

    def _run(self, config: Config, args: Any, kwargs: Mapping[str, Any]) -> Any:
        if config.pre_hook is not None:
            config.pre_hook(self._named(args, kwargs))
        with hints.using(config.compiler_opts()):
            return self.fn(*args, **{**kwargs, **config.all_kwargs()})

    @contextlib.contextmanager
    def _restored(self, named: Mapping[str, Any]) -> Iterator[None]:
        """Gives the tensors that measurements change their contents again."""
        held = {name: named[name].clone() for name in self.restore_value}
        yield
        for name, value in held.items():
            named[name].copy_(value)
        for name in self.reset_to_zero:
            named[name].zero_()

    def _tuned(self, args: Any, kwargs: Mapping[str, Any], named: Mapping[str, Any]) -> Config:
        bench = self._bench or do_bench
        times: dict[Config, float] = {}
        failed: FlyError | None = None
        for config in self._pruned(self._listed(args, kwargs), named):
            with self._restored(named):
                try:
                    run = functools.partial(self._run, config, args, kwargs)
                    times[config] = bench(run, warmup=self.warmup, rep=self.rep)
                except FlyError as error:
                    failed = error
        if not times:
            raise failed or UsageError(f"no configuration of {self.name} is left to measure")
        return min(times, key=lambda config: times[config])

    def _artifact_ref(
        self, args: Any, kwargs: Mapping[str, Any], *, required: bool = False
    ) -> tuple[Path, str] | None:
        """The file of winners that is shipped with a program, and the call's key in it; None
        without FLYDSL_AUTOTUNE_CONFIG_DIR or a name."""
        folder = os.environ.get("FLYDSL_AUTOTUNE_CONFIG_DIR")
        if folder is None or self.artifact_name is None:
            if required:
                raise UsageError(
                    "FLYDSL_AUTOTUNE_CONFIG_DIR and artifact_name say where winners are"
                )
            return None
        return Path(folder) / f"{self.artifact_name}.json", self._make_key(args, kwargs)

    def _load_artifact(
        self, ref: tuple[Path, str] | None, args: Any, kwargs: Mapping[str, Any]
    ) -> Config | None:
        if ref is None:
            return None
        found = _json_of(ref[0]).get(ref[1])
        return Config.from_dict(found) if isinstance(found, dict) else None

    @property
    def _cache_file(self) -> Path:
        folder = os.environ.get("FLYDSL_AUTOTUNE_CACHE_DIR")
        return Path(folder or Path(paths.cache_dir()) / "flydsl-autotune") / f"{self.name}.json"

    def _read(self, key: str) -> Config | None:
        found = _json_of(self._cache_file).get(key)
        return Config.from_dict(found) if isinstance(found, dict) else None

    def _write(self, key: str, config: Config) -> None:
        from fly_common.filter import write_atomically

        self._cache_file.parent.mkdir(parents=True, exist_ok=True)
        made = {**_json_of(self._cache_file), key: config.to_dict()}
        write_atomically(self._cache_file, json.dumps(made, indent=1).encode())


def _json_of(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def autotune(
    configs: Any, key: Sequence[str] | None = None, *, do_bench: Any = None, **options: Any
) -> Any:
    """Above `@flyc.jit`: selects a configuration. `options` are those of Autotuner."""
    return lambda fn: Autotuner(fn, configs, key, do_bench_fn=do_bench, **options)


class _Callable(ModuleType):
    """`flydsl.autotune(…)` is the decorator, and `flydsl.autotune` also the module's name."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return autotune(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
