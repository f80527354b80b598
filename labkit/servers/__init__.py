"""Where a server comes from and how it ends."""
