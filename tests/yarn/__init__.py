"""`make yarn`: jobs submitted to Hadoop's own MiniYARNCluster on this machine."""
