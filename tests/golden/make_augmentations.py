#!/usr/bin/env python3
"""Makes tests/golden/augmentations.txt: changes of pictures by torchvision's transforms.v2.functional for float32, and
of masks by torch's interpolate and grid_sample.

    python -m venv venv && venv/bin/pip install torch torchvision numpy
    venv/bin/python tests/golden/make_augmentations.py tests/golden
"""
import math
import pathlib
import sys
import types

import torch

sys.modules.setdefault("torchvision._meta_registrations", types.ModuleType("none"))  # of operators that are not used here
import torchvision  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402

BILINEAR = v2.InterpolationMode.BILINEAR
torch.set_num_threads(1)


def picture(channels, height, width):
    """Levels of 0 to 255 as the test makes them, too, with all kinds of hues and some gray."""
    count = channels * height * width
    state, values = 12345, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        values.append(state // 65536 % 256)
    made = torch.tensor(values, dtype=torch.float32).reshape(channels, height, width) / 255
    if channels == 3:
        made[:, 0, :2] = made[:1, 0, :2]
    return made


def affine(image, degrees, shift_x, shift_y, scale, shear_x, shear_y):
    return F.affine(image, degrees, [shift_x, shift_y], scale, [shear_x, shear_y], BILINEAR)


def resized_crop(image, top, left, height, width):
    return F.resized_crop(image, int(top), int(left), int(height), int(width), list(image.shape[-2:]), BILINEAR)


def resized_mask(mask, top, left, height, width):
    part = mask[:, int(top):int(top + height), int(left):int(left + width)]
    return torch.nn.functional.interpolate(part[None], mask.shape[-2:], mode="nearest-exact")[0]


def affine_mask(mask, degrees, shift_x, shift_y, scale, shear_x, shear_y):
    return F.affine(mask, degrees, [shift_x, shift_y], scale, [shear_x, shear_y], v2.InterpolationMode.NEAREST)


def policy(transform):
    def apply(image, change, magnitude, sign):
        name = list(transform._AUGMENTATION_SPACE)[int(change)]
        magnitudes, signed = transform._AUGMENTATION_SPACE[name]
        found = magnitudes(31, *image.shape[-2:])
        value = float(found[int(magnitude)]) * (sign if signed else 1) if found is not None else 0.0
        return transform._apply_image_or_video_transform(image, name, value, interpolation=BILINEAR,
                                                         fill={torch.Tensor: None, "others": None})
    return apply


CHANGES = {
    "brightness": F.adjust_brightness, "contrast": F.adjust_contrast, "saturation": F.adjust_saturation,
    "hue": F.adjust_hue, "gray": lambda image: F.rgb_to_grayscale(image, image.shape[0]), "gamma": F.adjust_gamma,
    "sharpness": F.adjust_sharpness, "posterize": lambda image, bits: F.posterize(image, int(bits)),
    "solarize": F.solarize, "invert": F.invert, "autocontrast": F.autocontrast, "equalize": F.equalize,
    "blur": lambda image, kernel, sigma: F.gaussian_blur(image, [int(kernel)] * 2, [sigma] * 2),
    "affine": affine, "resized-crop": resized_crop, "resized-mask": resized_mask, "affine-mask": affine_mask,
    "randaugment": policy(v2.RandAugment()), "trivialaugment": policy(v2.TrivialAugmentWide()),
}
CASES = [
    ("brightness", 0.4), ("brightness", 1.7), ("contrast", 0.3), ("contrast", 1.6), ("saturation", 0.2),
    ("saturation", 1.9), ("hue", 0.1), ("hue", -0.37), ("hue", 0.5), ("gray",), ("gamma", 0.6), ("gamma", 2.2),
    ("sharpness", 0.3), ("sharpness", 1.9), ("posterize", 3), ("posterize", 8), ("solarize", 0.5), ("invert",),
    ("autocontrast",), ("equalize",), ("blur", 3, 0.7), ("blur", 5, 1.9), ("affine", 30, 1, -2, 1.2, 10, 0),
    ("affine", -75, 0, 0, 0.7, 0, 20), ("affine", 0, 2, 1, 1, 0, 0), ("resized-crop", 1, 2, 4, 3),
    ("resized-crop", 0, 0, 6, 7), ("resized-crop", 2, 1, 1, 5), ("resized-mask", 1, 2, 4, 3),
    ("affine-mask", 30, 1, -2, 1.2, 10, 0),
    *(("randaugment", change, 9 + change, 1 - change % 2 * 2) for change in range(14)),
    *(("trivialaugment", change, 20 - change, change % 2 * 2 - 1) for change in range(14)),
]


def main():
    lines = [f"# torchvision {torchvision.__version__}: change channels height width parameters = values"]
    for name, *parameters in CASES:
        for channels, height, width in ((3, 6, 7), (1, 5, 4)):
            if channels == 1 and name in ("resized-crop", "affine", "affine-mask", "resized-mask", "trivialaugment"):
                continue
            if name == "equalize":
                height, width = 24, 25  # fewer values are left as they are
            made = CHANGES[name](picture(channels, height, width), *parameters)
            assert made.shape == (channels, height, width) and not math.isnan(float(made.sum()))
            lines.append(" ".join([name, *(f"{number:.9g}" for number in (channels, height, width, *parameters)), "=",
                                   *(f"{value:.7g}" for value in made.flatten().tolist())]))
    (pathlib.Path(sys.argv[1]) / "augmentations.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
