"""From scores to probabilities: logistic curves and isotonic maps, with pooling for rare labels."""
