"""On JAX, most of a test's time is compilation: it is kept short."""

import atexit
import functools
import os
import shutil
import tempfile

import jax
from jax._src.interpreters import mlir

_FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    # Those take as long again as all else.
    "--xla_cpu_use_fusion_emitters=false",
)
_CACHE = "JAX_COMPILATION_CACHE_DIR"

os.environ["XLA_FLAGS"] = " ".join(
    [*_FLAGS, os.environ.get("XLA_FLAGS", "")]
).strip()
if _CACHE not in os.environ:
    # Shared by the processes of xdist, which inherit it.
    os.environ[_CACHE] = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, os.environ[_CACHE], ignore_errors=True)
jax.config.update("jax_compilation_cache_dir", os.environ[_CACHE])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
# Each operation outside of a compiled function is compiled for each shape, and
# each time all dialects of its language would be loaded again.
mlir.make_ir_context = functools.cache(mlir.make_ir_context)
