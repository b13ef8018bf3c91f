"""Restorers: what goes in and comes out by hand, and how their change comes back into a crop."""

from __future__ import annotations

import pytest
import torch

from faceplate.errors import ModelError
from faceplate.models.random.restorers import RESTORERS
from faceplate.nets.restorers.restorer import Restorer
from faceplate.nets.through import between, changed, cut_all, fading
from tests.support.random_nets import WIDTH, net_of
from tests.unit.core.nets.given import Given, picture, points_in, turned_points


@pytest.mark.parametrize("model_id", sorted(RESTORERS))
def test_pictures_in_and_out_by_hand(model_id):
    restorer = Restorer(Given(model_id))
    inputs = restorer.pre(torch.full((2, 3, 4, 4), 0.75), fidelity=0.25)
    assert torch.equal(inputs["input"], torch.full((2, 3, 4, 4), 0.5))  # -1..1
    assert restorer.is_weighted == (model_id == "codeformer")
    assert torch.equal(inputs["weight"], torch.full((2, 1), 0.25)) if restorer.is_weighted else "weight" not in inputs
    out = restorer.post({"output": torch.tensor([-1.0, -0.5, 0.0, 2.0]).view(1, 1, 2, 2).expand(1, 3, 2, 2)})
    assert out[0, 0].flatten().tolist() == [0.0, 0.25, 0.5, 1.0]


def test_codeformers_weight_goes_in_as_its_file_wants_it():
    seen = {}

    class Session:
        fixed_batch = True

        def get_providers(self):
            return ["CPUExecutionProvider"]

        def run(self, names, feed):
            seen.update(feed)
            return [feed["input"]]

    net = net_of("codeformer", RESTORERS["codeformer"](WIDTH))
    net._open = Session
    restorer = Restorer(net)
    restorer.run(restorer.pre(picture(512), 0.7))
    assert (seen["weight"].dtype, seen["weight"].shape) == ("float64", (1,))
    assert seen["weight"][0] == pytest.approx(0.7)


def test_its_square_is_its_templates():
    """A face that lies in the crop as the net wants it is not moved."""
    whole = between(points_in(256, "ffhq_512"), "ffhq_512", 512)
    assert torch.allclose(whole[0], torch.tensor([[2.0, 0.0, -0.5], [0.0, 2.0, -0.5]], dtype=torch.float64))


def brighter(inputs):
    return {"output": inputs["input"] + 0.4}  # 0.2 of 0..1


def test_the_change_comes_back_where_the_square_lies():
    crops, points = picture(400), turned_points(400)
    restorer = Restorer(Given("gpen_bfr_256", brighter))
    out = restorer.restore(crops, points, amount=1.0)
    places = between(points, "arcface_128", 256)
    inverse = torch.linalg.inv(torch.cat([places[0], torch.tensor([[0.0, 0.0, 1.0]])]))
    for spot, share in (((128.0, 128.0), 1.0), ((40.0, 200.0), 1.0), ((-6.0, 120.0), 0.0)):
        x, y, _ = (inverse @ torch.tensor([*spot, 1.0], dtype=torch.float64)).tolist()
        column, row = int(x), int(y)
        found = out[0, :, row, column] - crops[0, :, row, column]
        # clipped at 1 on the way back from the net
        expected = (crops[0, :, row, column] + 0.2 * share).clamp(max=1) - crops[0, :, row, column]
        assert torch.allclose(found, expected, atol=0.02), spot
    assert torch.equal(out[0, :, 0, 0], crops[0, :, 0, 0])


def test_what_a_net_leaves_alone_is_exact_and_so_is_no_amount():
    crops, points = picture(200), turned_points(200)
    same = Restorer(Given("gpen_bfr_256", lambda inputs: {"output": inputs["input"]}))
    assert (same.restore(crops, points, amount=1.0) - crops).abs().max() < 1e-6
    never = Restorer(Given("gpen_bfr_256"))
    assert never.restore(crops, points, amount=0.0) is crops
    assert never.net.asked == []


@pytest.mark.parametrize("amount", [0.25, 0.8])
def test_amount_is_linear(amount):
    crops, points = picture(200).clamp(0.3, 0.6), turned_points(200)
    restorer = Restorer(Given("gpen_bfr_256", brighter))
    whole = restorer.restore(crops, points, 1.0) - crops
    assert torch.allclose(restorer.restore(crops, points, amount) - crops, whole * amount, atol=1e-6)


def test_the_edge_fades_without_a_step():
    edge = fading(512)
    assert edge[0, 256] < 1e-3
    assert edge[256, 256] == 1.0
    assert edge.diff(dim=0).abs().max() < 0.04
    assert torch.equal(edge, edge.flip(0))


@pytest.mark.parametrize("model_id", ["gfpgan_1_4", "codeformer", "gpen_bfr_256"])
def test_a_batch_is_its_crops_one_by_one(model_id):
    restorer = Restorer(net_of(model_id, RESTORERS[model_id](WIDTH)))
    crops = torch.cat([picture(160, 1), picture(160, 2)])
    points = torch.cat([turned_points(160), points_in(160)])
    both = restorer.restore(crops, points, 0.8)
    for index in range(2):
        assert torch.equal(
            both[index : index + 1], restorer.restore(crops[index : index + 1], points[index : index + 1])
        )
    assert (both - crops).abs().max() > 0.01


def test_another_kind_is_refused():
    with pytest.raises(ModelError, match="inswapper_128"):
        Restorer(Given("inswapper_128"))


def test_detail_that_the_square_is_too_coarse_for_stays():
    crops = (torch.arange(512)[None, :] % 2).float().expand(1, 3, 512, 512) * 0.5 + 0.25  # one-pixel lines
    places = between(points_in(512), "arcface_128", 64)
    squares = cut_all(crops, places, 64)
    out = changed(crops, places, squares, squares + 0.1)
    middle = slice(200, 300)
    assert torch.allclose(out[..., middle, middle] - crops[..., middle, middle], torch.tensor(0.1), atol=1e-4)
