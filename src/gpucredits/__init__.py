"""gpucredits: metering, budgeting and admission for GPU fleets."""

from gpucredits import compiled, timeline
from gpucredits.arguments import ArgumentTypeError, ArgumentValueError
from gpucredits.credit_tracker import CreditTracker, IrreconcilableError
from gpucredits.dump import DumpError
from gpucredits.gpu_credit import GPUCredit
from gpucredits.tenants import TenantCredits
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
