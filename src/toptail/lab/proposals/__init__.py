"""Where candidates come from: without training, or from a diffusion model."""
