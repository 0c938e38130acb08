"""What event logs say: replay, costs, suggestions, reports, and whether policies help."""
