"""What boards are built from: lessons make it, later lessons use it."""
