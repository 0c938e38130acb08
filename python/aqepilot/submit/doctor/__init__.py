"""Says what stands in the way of aqepilot: `driver` asks a session, `links` reads jars."""
