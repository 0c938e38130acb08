"""What an assistant may read of logs and policies, and the little that it may do."""
