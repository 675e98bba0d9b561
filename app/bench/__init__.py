"""`aicr evidence bench`: ratios measured in one run, never absolute times."""
