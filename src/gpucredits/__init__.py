"""gpucredits: metering, budgeting and admission for GPU fleets."""

from gpucredits import timeline
from gpucredits.arguments import ArgumentTypeError, ArgumentValueError
from gpucredits.credit_tracker import CreditTracker, IrreconcilableError
from gpucredits.dump import DumpError
from gpucredits.gpu_credit import GPUCredit
from gpucredits.tenants import TenantCredits
from gpucredits.version import __version__

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
