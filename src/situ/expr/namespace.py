"""The names that the Python templates of the function table may use: the runtime, and nothing else."""

from __future__ import annotations

import decimal
import inspect
import math
from types import MappingProxyType
from typing import Any

from situ.expr import runtime, runtime_geometry, runtime_text, runtime_time

NAMESPACE: MappingProxyType[str, Any] = MappingProxyType(
    {
        "__builtins__": {
            "abs": abs,
            "float": float,
            "format": format,
            "int": int,
            "len": len,
            "max": max,
            "min": min,
            "str": str,
        },
        **{
            f"_{name}": function
            for module in (runtime, runtime_text, runtime_time, runtime_geometry)
            for name, function in vars(module).items()
            if inspect.isfunction(function) and not name.startswith("_")
        },
        "_Decimal": decimal.Decimal,
        **{f"_{name}": getattr(math, name) for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "atan2")},
    }
)
