"""robotrials: evaluate robot policies on simulation benchmarks, exactly, fast, and with error bars."""

__version__ = "0.1.0"
