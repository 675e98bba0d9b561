"""The demo: sample recipes and runs, published and submitted over the real parts, and the verdicts they must give."""
