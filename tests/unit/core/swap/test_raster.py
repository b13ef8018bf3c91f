"""Drawing the mesh: against a plain rasteriser, and coarse against fine."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from faceplate.faces import topology
from faceplate.swap.mesh.fields import (
    Enlarger,
    blur,
    blur_on_any_device,
    halved_on_any_device,
    mean_around,
    sample,
    shrink,
    uv_grid,
)
from faceplate.swap.mesh.raster import (
    draw,
    draw_on_any_device,
    ring_triangles,
    spill,
    spill_on_any_device,
    with_ring,
)

TRIANGLES = torch.tensor(topology.triangles(), dtype=torch.int64)


def plain(points: np.ndarray, values: np.ndarray, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """One triangle after the other with a depth buffer, in double precision."""
    fields, depth = np.zeros((values.shape[1], height, width)), np.full((height, width), np.inf)
    y, x = np.mgrid[0:height, 0:width] + 0.5
    for corners in topology.triangles():
        (ax, ay, az), (bx, by, bz), (cx, cy, cz) = points[corners].astype(np.float64)
        area = (by - cy) * (ax - cx) + (cx - bx) * (ay - cy)
        if (bx - ax) * (cy - ay) - (by - ay) * (cx - ax) >= 0:
            continue
        u = ((by - cy) * (x - cx) + (cx - bx) * (y - cy)) / area
        v = ((cy - ay) * (x - cx) + (ax - cx) * (y - cy)) / area
        w = 1 - u - v
        z = u * az + v * bz + w * cz
        hit = (np.minimum(np.minimum(u, v), w) >= 0) & (z < depth)
        depth[hit] = z[hit]
        mix = np.stack([u[hit], v[hit], w[hit]])
        fields[:, hit] = values[corners].T.astype(np.float64) @ mix
    return fields, np.isfinite(depth)


def posed(yaw: float, size: float) -> np.ndarray:
    angle = np.deg2rad(yaw)
    turn = np.array([[np.cos(angle), 0, -np.sin(angle)], [0, 1, 0], [np.sin(angle), 0, np.cos(angle)]])
    points = topology.canonical().astype(np.float64)
    points = (points - (points.min(0) + points.max(0)) / 2) @ turn.T * size
    return (points + np.array([0.8 * size, 0.8 * size, 0])).astype(np.float32)


@pytest.mark.parametrize("yaw", [0.0, -35.0, 60.0])
def test_agrees_with_a_plain_rasteriser(yaw: float) -> None:
    points = posed(yaw, 70.0)
    fields, inside = draw(torch.from_numpy(points), TRIANGLES, torch.tensor(topology.uv()), 112, 112)
    expected, covered = plain(points, topology.uv(), 112, 112)
    both = inside.numpy() & covered
    assert (inside.numpy() != covered).sum() <= 3  # samples that lie on an edge
    difference = np.abs(fields.numpy() - expected).max(0)[both]
    # where two sheets of the mesh touch, depth decides within its resolution
    assert np.quantile(difference, 0.995) < 2e-4


@pytest.mark.parametrize("yaw", [0.0, 25.0, 70.0])
@pytest.mark.parametrize("cut", [0.0, 60.0])
def test_the_cpus_twin_draws_what_every_device_draws(yaw: float, cut: float) -> None:
    points = with_ring(posed(yaw, 300.0) - np.float32([cut, cut, 0]))
    triangles = torch.tensor(ring_triangles(), dtype=torch.int64)
    values = with_ring(np.concatenate([topology.uv(), posed(0.0, 1.0)], 1))
    arguments = torch.from_numpy(points), triangles, torch.from_numpy(values), 400, 390, 4
    (fields, inside), (reference, covered) = draw(*arguments), draw_on_any_device(*arguments)
    assert inside.float().mean() > 0.1
    assert (inside != covered).sum() <= 2  # samples that lie on an edge
    both = inside & covered
    difference = (fields - reference).abs().amax(0)
    assert (difference[both] > 2e-4).float().mean() < 0.002  # where two sheets of the mesh touch
    assert difference[both].quantile(0.99) < 5e-5
    spilled = spill_on_any_device(fields.clone(), inside)
    torch.testing.assert_close(spill(fields, inside), spilled, atol=1e-6, rtol=1e-5)


def test_the_coarse_grid_enlarged_stays_close_to_every_pixel_drawn() -> None:
    size = 380.0
    points = with_ring(posed(0.0, size))
    triangles = torch.tensor(ring_triangles(), dtype=torch.int64)
    values = torch.from_numpy(with_ring(posed(0.0, 1.0)[:, :2]))
    height = width = round(1.6 * size)
    exact, inside = draw(torch.from_numpy(points), triangles, values, height, width)
    coarse, covered = draw(torch.from_numpy(points), triangles, values, height, width, 4)
    enlarged = Enlarger(height, width)(spill(coarse, covered), 4)
    face = draw(torch.from_numpy(points), TRIANGLES, values, height, width)[1]
    # within a sample of the silhouette the coarse grid can only guess; the matte fades there
    edge = -torch.nn.functional.max_pool2d(-(face & inside).float()[None], 9, 1, 4)[0] > 0
    error = (enlarged - exact).norm(dim=0)[edge] * size
    assert error.mean() < 0.01
    assert error.quantile(0.999) < 0.5


def test_uv_meets_itself_when_the_mesh_is_its_own_uv() -> None:
    points = torch.from_numpy(np.concatenate([topology.uv() * 256, np.zeros((468, 1), np.float32)], 1))
    fields, inside = draw(points, TRIANGLES, torch.tensor(topology.uv()), 256, 256)
    v, u = torch.meshgrid(*[(torch.arange(256) + 0.5) / 256] * 2, indexing="ij")
    assert inside.float().mean() > 0.7
    torch.testing.assert_close(fields[0][inside], u[inside], atol=5e-5, rtol=0)
    torch.testing.assert_close(fields[1][inside], v[inside], atol=5e-5, rtol=0)


def test_a_mesh_outside_the_frame_draws_nothing() -> None:
    points = torch.from_numpy(posed(0.0, 50.0)) + torch.tensor([500.0, 0.0, 0.0])
    assert not draw(points, TRIANGLES, torch.tensor(topology.uv()), 64, 64)[1].any()


def test_shrink_is_the_block_mean_and_enlarge_matches_interpolate() -> None:
    image = torch.rand(2, 13, 22, generator=torch.Generator().manual_seed(0))
    small = shrink(image, 4)
    assert small.shape == (2, 4, 6)
    torch.testing.assert_close(small[:, 1, 1], image[:, 4:8, 4:8].mean((1, 2)))
    large = Enlarger(16, 24)(small, 4)
    expected = torch.nn.functional.interpolate(small[None], scale_factor=4, mode="bilinear", align_corners=False)[0]
    torch.testing.assert_close(large, expected, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(Enlarger(13, 22).on_any_device(small, 4), expected[:, :13, :22], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(Enlarger(13, 22).on_cpu(small, 4), expected[:, :13, :22], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(("height", "width"), [(20, 30), (600, 41), (513, 64)])
def test_shrink_and_strips_of_an_enlargement_are_the_same_on_the_cpu(height: int, width: int) -> None:
    image = torch.rand(3, 2 * height, 2 * width, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(shrink(image, 2), halved_on_any_device(image), atol=1e-6, rtol=1e-6)
    enlarge = Enlarger(height, width)
    for factor in (1, 2, 4, 16):
        small = shrink(image[:, :height, :width], factor)
        pieces = [enlarge.strip(small, factor, rows) for rows in enlarge.strips(image)]
        assert len(pieces) == -(-height // 256)
        assert torch.equal(torch.cat(pieces, 1), enlarge(small, factor))


def test_blur_has_the_given_sigma_and_sample_reads_pixel_centres() -> None:
    image = torch.zeros(1, 41, 41)
    image[0, 20, 20] = 1.0
    soft = blur(image, 3.0, aspect=2.0)[0]
    at = torch.arange(41.0) - 20
    assert soft.sum() == pytest.approx(1.0, abs=1e-3)
    assert (soft.sum(1) * at**2).sum() == pytest.approx(9.0, rel=0.02)
    assert (soft.sum(0) * at**2).sum() == pytest.approx(2.25, rel=0.02)
    v, u = torch.meshgrid(*[(torch.arange(41) + 0.5) / 41] * 2, indexing="ij")
    torch.testing.assert_close(sample(soft[None], uv_grid(u, v))[0], soft, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("aspect", [1.0, 0.5])
@pytest.mark.parametrize("sigma", [0.2, 0.7, 1.5, 3.0, 20.0])
def test_blur_is_the_same_on_the_cpu_as_on_every_device(sigma: float, aspect: float) -> None:
    image = torch.rand(3, 121, 90, generator=torch.Generator().manual_seed(0))
    reference = blur_on_any_device(image, sigma, sigma / aspect)
    torch.testing.assert_close(blur(image, sigma, aspect), reference, atol=2e-6, rtol=1e-5)
    around = reference / blur_on_any_device(torch.ones_like(image), sigma, sigma / aspect)
    torch.testing.assert_close(mean_around(image, sigma, aspect), around, atol=2e-6, rtol=1e-5)
