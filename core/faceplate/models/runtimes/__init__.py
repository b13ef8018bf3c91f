"""What runs nets: onnxruntime's providers, and torch."""
