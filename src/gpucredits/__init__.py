"""gpucredits: metering, budgeting and admission for GPU fleets."""

from gpucredits import compiled, timeline
from gpucredits.library.arguments import ArgumentTypeError, ArgumentValueError
from gpucredits.library.credit_tracker import CreditTracker, IrreconcilableError
from gpucredits.library.dump import DumpError
from gpucredits.library.gpu_credit import GPUCredit
from gpucredits.library.tenants import TenantCredits
from gpucredits.version import __version__

compiled.require_fresh()

__all__ = [
    "ArgumentTypeError",
    "ArgumentValueError",
    "CreditTracker",
    "DumpError",
    "GPUCredit",
    "IrreconcilableError",
    "TenantCredits",
    "__version__",
    "timeline",
]
