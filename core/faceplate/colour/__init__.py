"""Named colour spaces, the model's view of a plate, and the way back."""
