"""Label sets whose mistakes are bounded at a stated level."""

from labelweave.inference.conformal.risk_control import ConformalThreshold, control_mistakes

__all__ = ["ConformalThreshold", "control_mistakes"]
