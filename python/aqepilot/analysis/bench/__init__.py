"""`aqepilot bench`: queries with and without policies, in pairs."""
