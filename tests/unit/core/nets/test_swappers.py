"""Each swapper: what goes into its net and what is made of what comes out, by hand; and random nets through it."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from faceplate.errors import ModelError
from faceplate.models.card import ModelCard
from faceplate.models.random import swappers as random
from faceplate.nets.filters import eroded_cross, gaussian
from faceplate.nets.swappers.base import swapped
from faceplate.nets.swappers.dfm import DfmSwapper
from faceplate.nets.swappers.emap import last_initializer
from faceplate.nets.swappers.embedding import EmbeddingSwapper
from faceplate.nets.swappers.make import make_swapper
from faceplate.nets.swappers.picture import PictureSwapper
from tests.support.random_nets import CPU, WIDTH, known, net_of, written


class Given:
    """A net that is only its card."""

    device = CPU

    def __init__(self, card: ModelCard) -> None:
        self.card = card

    def run_tensors(self, inputs):
        raise AssertionError("not run")


def unit(seed: int = 0) -> torch.Tensor:
    vector = torch.from_numpy(np.random.default_rng(seed).standard_normal(512).astype(np.float32))
    return vector / vector.norm()


GREY = torch.full((2, 3, 4, 4), 0.75)

# (card, what 0.75 becomes on its way in, what the net's 0.5 becomes on its way out)
PICTURES = [
    ("inswapper_128", 0.75, 0.5),
    ("instyleswapper_256_a", 0.75, 0.5),
    ("simswap_unofficial_512", 0.75, 0.5),
    ("ghost_1_256", 0.5, 0.75),
    ("ghost_2_256", 0.5, 0.75),
    ("ghost_3_256", 0.5, 0.75),
    ("hififace_unofficial_256", 0.5, 0.75),
    ("hyperswap_1a_256", 0.5, 0.75),
    ("hyperswap_1b_256", 0.5, 0.75),
    ("hyperswap_1c_256", 0.5, 0.75),
]


@pytest.mark.parametrize(("model_id", "into", "out"), PICTURES)
def test_pictures_in_and_out_by_hand(model_id, into, out):
    card = known()[model_id]
    swapper = EmbeddingSwapper(Given(card), torch.eye(512) if card.kind == "inswapper" else None)
    inputs = swapper.pre(GREY, unit()[None])
    assert torch.allclose(inputs["target"], torch.full_like(GREY, into))
    assert torch.equal(inputs["source"], unit()[None].expand(2, 512))
    given = {"output": torch.full_like(GREY, 0.5), "mask": torch.full((2, 1, 4, 4), 0.25)}
    made = swapper.post(given)
    assert torch.allclose(made.pictures, torch.full_like(GREY, out))
    assert (made.mattes is not None) == model_id.startswith("hyperswap")
    if made.mattes is not None:
        assert torch.equal(made.mattes, torch.full((2, 4, 4), 0.25))


def test_simswap_takes_imagenets_mean_and_gives_plain_pictures():
    swapper = EmbeddingSwapper(Given(known()["simswap_256"]))
    target = swapper.pre(GREY, unit()[None])["target"]
    np.testing.assert_allclose(
        target[0, :, 0, 0], [(0.75 - m) / s for m, s in ((0.485, 0.229), (0.456, 0.224), (0.406, 0.225))], rtol=1e-5
    )
    assert torch.equal(swapper.post({"output": GREY}).pictures, GREY)


def test_a_picture_outside_the_range_is_clipped():
    swapper = EmbeddingSwapper(Given(known()["ghost_1_256"]))
    made = swapper.post({"output": torch.tensor([-1.5, 1.5]).view(1, 1, 1, 2).expand(1, 3, 1, 2)})
    assert made.pictures.flatten().tolist() == [0, 1] * 3


def test_who_goes_into_each_kind_of_net():
    raw = unit() * 20
    emap = torch.diag(torch.arange(1.0, 513.0))
    latent = unit() @ emap
    of = {
        "inswapper_128": latent / latent.norm(),
        "simswap_256": unit(),
        "hififace_unofficial_256": unit(),
        "hyperswap_1a_256": unit(),
        "ghost_1_256": raw,
    }
    for model_id, expected in of.items():
        card = known()[model_id]
        swapper = EmbeddingSwapper(Given(card), emap if card.kind == "inswapper" else None)
        assert torch.allclose(swapper.source(raw), expected[None], atol=1e-6), model_id
        assert swapper.source_kind == "embedding"


def test_pictures_of_a_person_go_in_as_they_are():
    for model_id, place, into, out in (
        ("blendswap_256", ("arcface_112_v2", 112), 0.75, 0.5),
        ("uniface_256", ("ffhq_512", 256), 0.5, 0.75),
    ):
        swapper = PictureSwapper(Given(known()[model_id]))
        assert swapper.source_place == place
        person = swapper.source(torch.full((3, place[1], place[1]), 0.25))
        inputs = swapper.pre(GREY, person)
        assert torch.allclose(inputs["target"], torch.full_like(GREY, into))
        assert inputs["source"].shape == (2, 3, place[1], place[1])
        assert torch.all(inputs["source"] == 0.25)  # not centred
        assert torch.allclose(swapper.post({"output": torch.full_like(GREY, 0.5)}).pictures, torch.full_like(GREY, out))


def test_a_dfm_gets_sharpened_bgr_rows_of_pixels():
    y, x = np.mgrid[0:32, 0:32]
    crop = np.stack([0.3 + 0.2 * np.sin(x / 3), 0.5 + 0.2 * np.cos(y / 4), np.full_like(x, 0.25, float)])
    crop = crop.astype(np.float32)
    swapper = DfmSwapper(Given(known()["dfm"]))
    found = swapper.pre(torch.from_numpy(crop)[None], swapper.source(torch.empty(0)))["in_face"][0].numpy()
    planes = np.ascontiguousarray(crop.transpose(1, 2, 0))
    sharp = np.clip(cv2.addWeighted(planes, 1.75, cv2.GaussianBlur(planes, (0, 0), 2), -0.75, 0), 0, 1)
    assert found.shape == (32, 32, 3)
    np.testing.assert_allclose(found, sharp[..., ::-1], atol=1e-5)


def test_a_dfms_masks_become_one_as_facefusion_makes_it():
    random_masks = np.random.default_rng(1).random((2, 48, 48), np.float32)
    masks = np.stack([cv2.GaussianBlur(mask, (0, 0), 4) > 0.5 for mask in random_masks]).astype(np.float32)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (3, 3))
    expected = cv2.GaussianBlur(cv2.erode(masks.min(0), kernel, iterations=2), (0, 0), 6.25)
    face = torch.zeros(1, 48, 48, 3)
    face[..., 0] = 0.9  # blue
    target, source = (torch.from_numpy(mask)[None, ..., None] for mask in masks)
    made = DfmSwapper(Given(known()["dfm"])).post({"target_mask": target, "face": face, "source_mask": source})
    assert made.pictures[0, :, 0, 0].tolist() == pytest.approx([0, 0, 0.9])
    assert made.mattes is not None
    np.testing.assert_allclose(made.mattes[0], expected, atol=1e-5)


def test_filters_are_opencvs():
    plane = np.random.default_rng(2).random((20, 31), np.float32)
    given = torch.from_numpy(plane)[None, None]
    for sigma in (0.8, 2.0, 6.25):  # the last reaches over the edge twice
        np.testing.assert_allclose(gaussian(given, sigma)[0, 0], cv2.GaussianBlur(plane, (0, 0), sigma), atol=1e-5)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (3, 3))
    assert np.array_equal(eroded_cross(given, 3)[0, 0], cv2.erode(plane, kernel, iterations=3))


@pytest.mark.parametrize("model_id", [name for name in random.SWAPPERS])
def test_a_random_net_of_the_true_signature_goes_through(model_id, tmp_path):
    content = random.SWAPPERS[model_id](WIDTH)
    net = net_of(model_id, content)
    inswapper = written(tmp_path, "inswapper_128", random.inswapper(WIDTH))
    swapper = make_swapper(net, written(tmp_path, model_id, content), inswapper)
    crops = torch.rand(1, 3, swapper.size or 224, swapper.size or 224, generator=torch.Generator().manual_seed(3))
    template, side = swapper.source_place
    given = {"embedding": unit(), "picture": torch.rand(3, side, side), "none": torch.empty(0)}[swapper.source_kind]
    made = swapped(swapper, crops, swapper.source(given))
    assert made.pictures.shape == crops.shape
    assert 0 <= made.pictures.min() < made.pictures.max() <= 1
    assert bool(template) == (swapper.source_kind == "picture")
    if made.mattes is not None:
        assert made.mattes.shape == crops[:, 0].shape


def test_two_people_and_two_crops_in_one_batch_are_what_each_is_alone():
    net = net_of("inswapper_128", random.inswapper(WIDTH))
    swapper = EmbeddingSwapper(net, torch.eye(512))
    crops = torch.rand(2, 3, 128, 128, generator=torch.Generator().manual_seed(4))
    who = torch.cat([swapper.source(unit(1)), swapper.source(unit(2))])
    both = swapped(swapper, crops, who).pictures
    for index in range(2):
        alone = swapped(swapper, crops[index : index + 1], who[index : index + 1]).pictures
        assert torch.equal(both[index], alone[0])
    assert not torch.equal(swapped(swapper, crops[:1], who[1:]).pictures[0], both[0])


def test_the_matrix_of_a_file_is_read_without_the_rest(tmp_path):
    path = written(tmp_path, "inswapper_128", random.inswapper(WIDTH, seed=5))
    emap = last_initializer(path)
    assert emap is not None
    assert emap.shape == (512, 512)
    assert torch.allclose(emap @ emap, torch.eye(512), atol=1e-5)
    assert not torch.allclose(emap, torch.eye(512))


def test_a_file_without_its_matrix_is_refused(tmp_path):
    content = random.simswap_256(WIDTH)
    path = tmp_path / "optimised.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="lacks the matrix"):
        make_swapper(net_of("inswapper_128", content), path)


@pytest.mark.parametrize("spoil", [b"", b"\x3a\xff", b"\x3b", b"\xff" * 40, b"no model at all"])
def test_a_broken_file_is_an_error_of_ours(tmp_path, spoil):
    path = tmp_path / "broken.onnx"
    path.write_bytes(spoil)
    with pytest.raises(ModelError, match="cannot be read"):
        last_initializer(path)


def test_no_swapper_is_refused_with_its_role(tmp_path):
    with pytest.raises(ModelError, match="role detector"):
        make_swapper(Given(known()["face_detector"]), tmp_path / "x.onnx")


def test_every_swapper_in_the_catalogue_has_a_template_and_says_what_is_allowed():
    cards = [card for card in known().values() if card.role == "swapper"]
    assert {card.id for card in cards} == set(random.SWAPPERS)
    for card in cards:
        assert card.template
        assert card.commercial is not True  # none is clean
        assert not Path(card.files[0]).is_absolute()
