"""Mattes: layouts and ranges by hand, FaceFusion's tail against OpenCV, regions that grow."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch

from faceplate.errors import ModelError, SettingError
from faceplate.models.random.mattes import MATTES
from faceplate.nets.mattes.face import FaceMatte, pulled_in
from faceplate.nets.mattes.regions import FACE, REGIONS, RegionMatte, grown
from tests.support.random_nets import WIDTH, net_of
from tests.unit.core.nets.given import Given, picture

CROP = torch.stack([torch.full((256, 256), value) for value in (0.1, 0.5, 0.9)])[None]


def test_xseg_takes_rows_of_bgr_pixels():
    matte = FaceMatte(Given("xseg_1"))
    given = matte.pre(CROP)["input"]
    assert given.shape == (1, 256, 256, 3)
    assert given[0, 7, 9].tolist() == pytest.approx([0.9, 0.5, 0.1])
    out = torch.tensor([-0.5, 0.25, 1.5]).view(1, 1, 3, 1)
    assert matte.post({"output": out})[0, 0].tolist() == [0.0, 0.25, 1.0]


def test_the_occluder_gives_logits():
    matte = FaceMatte(Given("occluder"))
    given = matte.pre(CROP)["input"]
    assert given.shape == (1, 3, 256, 256)
    assert given[0, :, 7, 9].tolist() == pytest.approx([0.1, 0.5, 0.9])
    out = matte.post({"output": torch.tensor([-100.0, 0.0, np.log(3.0)]).view(1, 1, 1, 3)})
    assert out[0, 0].tolist() == pytest.approx([0.0, 0.5, 0.75])


def test_bisenet_takes_imagenets_mean_and_gives_shares():
    matte = RegionMatte(Given("bisenet_resnet_34"))
    given = matte.pre(CROP)["input"]
    assert given.shape == (1, 3, 512, 512)
    expected = [(0.1 - 0.485) / 0.229, (0.5 - 0.456) / 0.224, (0.9 - 0.406) / 0.225]
    assert given[0, :, 100, 100].tolist() == pytest.approx(expected, rel=1e-4)
    logits = torch.zeros(1, 19, 1, 2)
    logits[0, REGIONS["nose"], 0, 1] = np.log(18.0)
    shares = matte.post({"output": logits})
    assert shares[0, :, 0, 0].tolist() == pytest.approx([1 / 19] * 19)
    assert float(shares[0, REGIONS["nose"], 0, 1]) == pytest.approx(0.5)


def test_pulled_in_is_facefusions_tail():
    drawn = np.zeros((128, 128), np.float32)
    cv2.ellipse(drawn, (60, 66), (30, 44), 10, 0, 360, 1.0, -1)
    expected = (cv2.GaussianBlur(drawn, (0, 0), 5).clip(0.5, 1) - 0.5) * 2
    np.testing.assert_allclose(pulled_in(torch.from_numpy(drawn)[None])[0].numpy(), expected, atol=1e-5)


def labelled(*discs: tuple[str, tuple[int, int], int], size: int = 512) -> torch.Tensor:
    classes = np.zeros((size, size), np.int32)
    for name, centre, radius in discs:
        cv2.circle(classes, centre, radius, REGIONS[name], -1)
    return torch.nn.functional.one_hot(torch.from_numpy(classes).long(), 19).permute(2, 0, 1)[None].float()


@pytest.mark.parametrize("by", [12, -12])
def test_a_region_grows_as_opencv_says(by):
    shares = labelled(("nose", (250, 250), 60))
    plane = shares[0, REGIONS["nose"]].numpy()
    reach = np.arange(-12, 13)
    disc = ((reach[:, None] ** 2 + reach[None, :] ** 2) <= 144).astype(np.uint8)
    expected = cv2.dilate(plane, disc) if by > 0 else cv2.erode(plane, disc)
    found = grown(shares, {REGIONS["nose"]: by / 512})
    assert np.array_equal(found[0].numpy(), expected)


def test_each_region_grows_by_its_own_measure():
    shares = labelled(("nose", (150, 256), 40), ("left_eye", (350, 256), 40))
    found = grown(shares, {REGIONS["nose"]: 0.02, REGIONS["left_eye"]: 0.0})[0]
    assert (found[256, :] > 0.5).sum() == (40 + 10) * 2 + 1 + 40 * 2 + 1
    assert found[256, 150 - 45] == 1
    assert found[256, 350 - 45] == 0


def test_neighbours_that_are_unsure_leave_no_gap():
    shares = torch.zeros(1, 19, 4, 4)
    shares[:, REGIONS["skin"]] = 0.5
    shares[:, REGIONS["nose"]] = 0.5
    assert torch.equal(grown(shares, {REGIONS["skin"]: 0.0, REGIONS["nose"]: 0.0}), torch.ones(1, 4, 4))
    assert torch.equal(grown(shares, {}), torch.zeros(1, 4, 4))


def test_the_matte_of_a_crop_of_any_size():
    logits = (labelled(("skin", (256, 256), 150), ("hair", (256, 60), 50)) - 0.5) * 40
    net = Given("bisenet_resnet_18", lambda inputs: {"output": logits.expand(len(inputs["input"]), -1, -1, -1)})
    for size in (128, 512, 900):
        matte = RegionMatte(net).matte(picture(size))
        assert matte.shape == (1, size, size)
        assert matte[0, size // 2, size // 2] > 0.99
        assert matte[0, int(size * 0.1), size // 2] < 0.01  # hair is no face
        # area of the disc of radius 150 / 512
        assert float(matte.mean()) == pytest.approx(np.pi * (150 / 512) ** 2, rel=0.01)
    hair = RegionMatte(net).matte(picture(512), {"hair": 0.0})
    assert hair[0, 60, 256] > 0.99
    assert set(FACE) < set(REGIONS)


def test_an_unknown_region_is_named():
    with pytest.raises(SettingError, match="moustache") as caught:
        RegionMatte(Given("bisenet_resnet_18")).matte(picture(64), {"moustache": 0.0})
    assert "upper_lip" in str(caught.value)


@pytest.mark.parametrize("model_id", sorted(MATTES))
def test_a_batch_is_its_crops_one_by_one(model_id):
    net = net_of(model_id, MATTES[model_id](WIDTH))
    matte = RegionMatte(net) if net.card.kind == "regions" else FaceMatte(net)
    crops = torch.cat([picture(200, 1), picture(200, 2)])
    both = matte.matte(crops)
    assert both.shape == (2, 200, 200)
    assert torch.equal(both, torch.cat([matte.matte(crops[:1]), matte.matte(crops[1:])]))
    assert 0 <= both.min() <= both.max() <= 1


def test_other_kinds_are_refused():
    for adapter in (FaceMatte, RegionMatte):
        with pytest.raises(ModelError, match="gfpgan_1_4"):
            adapter(Given("gfpgan_1_4"))
