"""Where candidates come from: without training, from a diffusion model, or from actors."""
