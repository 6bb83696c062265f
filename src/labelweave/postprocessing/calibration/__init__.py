"""From scores to probabilities: logistic curves and isotonic maps, with shrinkage for rare labels."""
