"""Images that a network was not trained on: photographs, ImageNet's made small, and noise.

Pixels are uint8, `[n, 3, size, size]`; noise like a data set is float32, as a network takes it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fathometer.errors import InputError, MissingExtraError
from papers.images.pictures import Pictures

_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".tif", ".tiff", ".gif")
_SHRUNK = (2, 4)  # times that a photograph is made smaller before it is cut


def photographs(count: int, size: int) -> Tensor:
    """Cut pieces at random places of scikit-learn's two photographs, reduced in size.

    Example:
        >>> photographs(8, 16).shape
        torch.Size([8, 3, 16, 16])
    """
    try:
        from sklearn.datasets import load_sample_images
    except ImportError as error:
        raise MissingExtraError("scikit-learn", "papers", "two photographs") from error
    generator = np.random.default_rng(0)
    large = [torch.from_numpy(np.array(image)).permute(2, 0, 1) for image in load_sample_images().images]
    sources = [F.avg_pool2d(image.float(), by) for image in large for by in _SHRUNK]
    pieces = []
    for number in range(count):
        source = sources[number % len(sources)]
        top, left = (int(generator.integers(side - size + 1)) for side in source.shape[1:])
        pieces.append(source[:, top : top + size, left : left + size])
    return torch.stack(pieces).round().to(torch.uint8)


def shrunk_images(folder: Path, count: int, size: int) -> Tensor:
    """Read at most `count` images of a folder, evenly from all of them: the centre, reduced in size."""
    from PIL import Image, UnidentifiedImageError

    def crop(image: Image.Image) -> Tensor:
        side = min(image.size)
        left, top = ((length - side) // 2 for length in image.size)
        centre = image.crop((left, top, left + side, top + side))
        return torch.from_numpy(np.array(centre.resize((size, size), Image.Resampling.BICUBIC))).permute(
            2, 0, 1
        )

    files = sorted(file for file in folder.rglob("*") if file.suffix.lower() in _SUFFIXES)
    chosen = np.unique(np.linspace(0, len(files) - 1, min(count, len(files))).round().astype(int))
    read = []
    for place in chosen:
        with suppress(OSError, UnidentifiedImageError), Image.open(files[place]) as image:
            read.append(crop(image.convert("RGB")))
    if not read:
        raise InputError(f"{folder}: expected images, none of {len(chosen)} can be read")
    return torch.stack(read)


def noise_like(data: Pictures, count: int) -> Tensor:
    """Draw Gaussian noise with the mean and standard deviation of each channel."""
    images = data.normalised()
    mean, std = (images.mean((0, 2, 3)), images.std((0, 2, 3)))
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn((count, *images.shape[1:]), generator=generator)
    return noise * std[:, None, None] + mean[:, None, None]


def uniform_pixels(count: int, size: int) -> Tensor:
    """Draw every pixel uniformly and independently."""
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, 3, size, size), generator=generator, dtype=torch.uint8)
