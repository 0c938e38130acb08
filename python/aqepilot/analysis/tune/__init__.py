"""`aqepilot tune`: the best plan of a query, searched for, and measured again before it is kept."""
