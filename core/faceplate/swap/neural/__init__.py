"""The neural engine: swappers, restorers, mattes and editors that a user brings, chained over one crop."""
