"""Images that a network was not trained on: photographs, printed digits, and noise.

Pixels are uint8, `[n, 3, size, size]`; noise like a data set is float32, as a network takes it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fathometer.errors import MissingExtraError
from papers.images.pictures import Pictures

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


def printed_digits(count: int, size: int) -> Tensor:
    """Print digits in the fonts that come with matplotlib, white on black, turned and shifted at random.

    Example:
        >>> printed_digits(8, 16).shape
        torch.Size([8, 3, 16, 16])
    """
    from matplotlib import get_data_path
    from PIL import Image, ImageDraw, ImageFont

    generator, large = np.random.default_rng(0), 4 * size
    fonts = [
        ImageFont.truetype(str(file), int(0.9 * large))
        for file in sorted(Path(get_data_path(), "fonts", "ttf").glob("DejaVu*.ttf"))
        if "Display" not in file.name
    ]
    images = []
    for number in range(count):
        image = Image.new("L", (large, large))
        place = large / 2 + generator.uniform(-large / 16, large / 16, 2)
        text, font = str(number % 10), fonts[generator.integers(len(fonts))]
        ImageDraw.Draw(image).text((place[0], place[1]), text, 255, font, anchor="mm")
        turned = image.rotate(generator.uniform(-15, 15), Image.Resampling.BILINEAR)
        images.append(np.array(turned.resize((size, size), Image.Resampling.BOX)))
    return torch.from_numpy(np.stack(images))[:, None].expand(-1, 3, -1, -1).contiguous()


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
