"""Networks that are watched: awkward ones, and those of torchvision, timm and transformers."""
