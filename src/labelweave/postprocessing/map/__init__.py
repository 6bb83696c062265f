"""Best labelings of clique graphs (MAP inference), with a bound for every example."""

from labelweave.postprocessing.map.map_inference import MapInference, MapResult

__all__ = ["MapInference", "MapResult"]
