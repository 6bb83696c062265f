"""Best labelings of clique graphs (MAP inference), with a bound for every example."""

from labelweave.inference.map.costs import shift_by_costs
from labelweave.inference.map.map_inference import MapInference, MapResult

__all__ = ["MapInference", "MapResult", "shift_by_costs"]
