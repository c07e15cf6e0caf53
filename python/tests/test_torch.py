"""The layers for PyTorch: against compositions of torch, central differences, and torch's own checks."""

import copy
import math
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from circulant import _torch_memory  # noqa: E402
from circulant import functional as F  # noqa: E402
from circulant import torch as ct  # noqa: E402
from circulant._torch_ops import apply, composed  # noqa: E402

DOUBLE = torch.float64


def layers(dtype=DOUBLE):
    torch.manual_seed(0)
    return [
        (ct.SpectralCirculant1d(8, dtype=dtype), (3, 8)),
        (ct.SpectralCirculant1d(7, modes=2, dtype=dtype), (2, 5, 7)),
        (ct.SpectralCirculant1d(1, bias=False, dtype=dtype), (4, 1)),
        (ct.BlockCirculant1d(12, 8, block=4, dtype=dtype), (5, 12)),
        (ct.BlockCirculant1d(10, 7, block=4, dtype=dtype), (3, 10)),
        (ct.BlockCirculant1d(3, 5, block=1, dtype=dtype), (3, 3)),
        (ct.SpectralBccb2d(2, 3, (4, 5), dtype=dtype), (3, 2, 4, 5)),
        (ct.SpectralBccb2d(2, 1, (6, 4), radius=0.6, dtype=dtype), (2, 2, 6, 4)),
        (ct.Circulant1d(9, dtype=dtype), (3, 9)),
        (ct.Bccb2d(2, 2, (3, 4), dtype=dtype), (3, 2, 3, 4)),
    ]


IDS = [f"{type(layer).__name__}-{index}" for index, (layer, _) in enumerate(layers())]
CASES = range(len(IDS))


def case(index, dtype=DOUBLE):
    layer, shape = layers(dtype)[index]
    torch.manual_seed(1)
    for parameter in layer.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    return layer, torch.randn(shape, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("index", CASES, ids=IDS)
def test_forward_is_the_composition_and_gradients_are_right(index):
    layer, x = case(index)
    rows = x.detach().reshape(-1, math.prod(x.shape[1:]) if x.dim() > 3 or len(x.shape) == 2 else x.shape[-1])
    coordinates = layer._coordinates()
    width = layer._key[1] * max(layer._key[0], 1) * layer._key[2]
    rows = torch.nn.functional.pad(rows, (0, width - rows.shape[1]))
    expected = composed(rows, coordinates, None, *layer._key)
    np.testing.assert_allclose(apply(rows, coordinates, None, *layer._key).detach(), expected.detach(), atol=1e-12)
    names = [name for name, _ in layer.named_parameters()]

    def call(x, *values):
        return torch.func.functional_call(layer, dict(zip(names, values)), (x,))

    values = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    assert torch.autograd.gradcheck(call, (x, *values))


@pytest.mark.parametrize("index", CASES, ids=IDS)
def test_opcheck(index):
    layer, x = case(index)
    width = layer._key[1] * max(layer._key[0], 1) * layer._key[2]
    rows = torch.randn(5, width, dtype=DOUBLE, requires_grad=True)
    coordinates = layer._coordinates().detach().requires_grad_()
    torch.library.opcheck(apply, (rows, coordinates, None, *layer._key))
    bias = torch.randn(layer._key[3], dtype=DOUBLE, requires_grad=True)
    torch.library.opcheck(apply, (rows, coordinates, bias, *layer._key))


@pytest.mark.parametrize("index", CASES, ids=IDS)
def test_single_precision_strides_and_states(index):
    layer, x = case(index, torch.float32)
    y = layer(x)
    assert y.dtype == torch.float32
    strided = torch.stack([x, x], dim=-1)[..., 0]
    torch.testing.assert_close(layer(strided), y)
    other, _ = layers(torch.float32)[index]
    other.load_state_dict(layer.state_dict())
    torch.testing.assert_close(other(x), y)
    torch.testing.assert_close(copy.deepcopy(layer)(x), y)
    lower, upper = layer.operator_norm()
    assert 0 < lower <= upper
    with pytest.raises(ValueError, match="expected an input"):
        layer(x[..., :0])
    assert layer(x[:0]).shape[0] == 0


@pytest.mark.parametrize("index", CASES, ids=IDS)
def test_norms_are_those_of_the_matrix(index):
    layer, x = case(index)
    zero = torch.zeros_like(x[:1])
    matrix = torch.autograd.functional.jacobian(lambda v: layer(v.reshape(zero.shape)).reshape(-1), zero.reshape(-1))
    norm = torch.linalg.matrix_norm(matrix, ord=2).item()
    lower, upper = layer.operator_norm()
    assert norm <= upper * (1 + 1e-9)
    padded = isinstance(layer, ct.BlockCirculant1d) and (layer.in_features % layer.block or layer.out_features % layer.block)
    if not padded and x.dim() != 3:
        assert lower <= norm * (1 + 1e-9)


def test_vmap_over_samples():
    layer, x = case(0)
    x = x.detach()
    a = torch.randn(4, 8, dtype=DOUBLE)
    call = lambda a, x: apply(x, a, None, *layer._key)
    both = torch.vmap(call)(a, x.expand(4, 3, 8))
    only = torch.vmap(call, in_dims=(0, None))(a, x)
    inputs = torch.vmap(call, in_dims=(None, 0))(a[0], x.expand(4, 3, 8))
    for index in range(4):
        torch.testing.assert_close(both[index], call(a[index], x))
        torch.testing.assert_close(only[index], call(a[index], x))
        torch.testing.assert_close(inputs[index], call(a[0], x))


def test_export():
    model = torch.nn.Sequential(ct.SpectralCirculant1d(8), torch.nn.Tanh(), ct.BlockCirculant1d(8, 4, block=4))
    x = torch.randn(3, 8)
    exported = torch.export.export(model, (x,))
    torch.testing.assert_close(exported.module()(x), model(x))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile(backend):
    torch._dynamo.reset()
    model = torch.nn.Sequential(ct.SpectralCirculant1d(8), torch.nn.Tanh(), ct.BlockCirculant1d(8, 4, block=4))
    x = torch.randn(3, 8, requires_grad=True)
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    try:
        y = compiled(x)
    except Exception as error:
        if backend == "inductor" and "compiler" in str(error).lower():
            pytest.skip("no C++ compiler here")
        raise
    torch.testing.assert_close(y, model(x))
    (gradient,) = torch.autograd.grad(y.sum(), x)
    (expected,) = torch.autograd.grad(model(x).sum(), x)
    torch.testing.assert_close(gradient, expected)


def _collate(rows):
    layer = ct.SpectralCirculant1d(784)
    with torch.no_grad():
        layer.coordinates.fill_(1.0)
        return layer(torch.stack(rows)).sum().item()


def test_workers_of_a_data_loader():
    _collate([torch.ones(784)] * 64)
    loader = torch.utils.data.DataLoader([torch.ones(784)] * 128, batch_size=64, num_workers=2, collate_fn=_collate)
    assert len(list(loader)) == 2


def test_surgery():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))
    weight = model[0].weight.detach().clone()
    ct.surgery(model, block=4)
    assert isinstance(model[0], ct.BlockCirculant1d) and isinstance(model[2], torch.nn.Linear)
    zero = torch.zeros(20)
    own = torch.autograd.functional.jacobian(lambda v: model[0](v), zero)
    # The nearest: what is left is orthogonal to every matrix of circulant blocks.
    blocks = (weight - own).reshape(8, 4, 5, 4)
    for shift in range(4):
        index = torch.arange(4)
        assert blocks[:, (index + shift) % 4, :, index].mean(dim=0).abs().max() < 1e-5
    circulant = ct.BlockCirculant1d(8, 8, block=4)
    dense = torch.nn.Linear(8, 8)
    with torch.no_grad():
        dense.weight.copy_(torch.autograd.functional.jacobian(lambda v: circulant(v), torch.zeros(8)))
    torch.testing.assert_close(ct.surgery(dense, block=4).coordinates, circulant.coordinates)


def test_lipschitz_bound():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        ct.SpectralCirculant1d(8), torch.nn.Tanh(), ct.BlockCirculant1d(8, 8, 4), torch.nn.ReLU(), torch.nn.Linear(8, 3)
    ).double()
    bound = ct.lipschitz_bound(model)
    x, y = torch.randn(500, 8, dtype=DOUBLE), torch.randn(500, 8, dtype=DOUBLE)
    ratio = (model(x) - model(y)).norm(dim=1) / (x - y).norm(dim=1)
    assert 0 < ratio.max() <= bound
    with pytest.raises(TypeError, match="LSTM"):
        ct.lipschitz_bound(torch.nn.LSTM(3, 3))


def test_bayesian():
    torch.manual_seed(0)
    net = torch.nn.Sequential(ct.SpectralCirculant1d(16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    model = ct.bayesian(net, rank=2)
    site = model.sites["0/coordinates"]
    expected = F.gaussian_kl(
        site.mean.detach(), site.log_deviation.detach(), site.prior_variance, factor=site.factor.detach(), scale=site.scale.detach()
    )
    assert site.kl().item() == pytest.approx(expected, rel=1e-5)
    double = ct.bayesian(copy.deepcopy(net).double(), rank=2).sites["0/coordinates"]
    values = [p.detach().clone().requires_grad_() for p in (double.mean, double.factor, double.scale, double.log_deviation)]
    assert torch.autograd.gradcheck(lambda *v: ct.gaussian_kl(*v, double.prior_variance, 0.0)[0], values)
    x = torch.randn(200, 16)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(300):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y) + model.kl() / 2000
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert sum(losses[-20:]) < 0.8 * sum(losses[:20])
    assert set(model.mean()) == {name for name, _ in net.named_parameters()}
    assert not torch.equal(model(x), model(x))
    other = ct.bayesian(copy.deepcopy(net), rank=2)
    other.load_state_dict(model.state_dict())


def test_memory_is_reused_only_when_nothing_lies_on_it():
    layer = ct.SpectralCirculant1d(512, dtype=torch.float32)
    x = torch.randn(256, 512)
    with torch.no_grad():
        y = layer(x)
        place, expected = y.data_ptr(), y.clone()
        part, array = y[3:5], y.numpy()[7:9]
        del y
        others = [layer(-x) for _ in range(3)]
        assert all(other.data_ptr() != place for other in others)
        assert torch.equal(part, expected[3:5]) and np.array_equal(array, expected[7:9].numpy())
        del part
        assert layer(-x).data_ptr() != place
        del array
        # Nothing lies on it any more: the next output of this size does.
        again = layer(x)
        assert again.data_ptr() == place and torch.equal(again, expected)
        assert again.data_ptr() % 64 == 0


def test_kept_memory_is_bounded():
    kept = lambda: sum(size * len(blocks) for size, blocks in _torch_memory._shelf.blocks.items())
    for sizes in ([1 << 24] * 40, [(1 << 20) + 4 * k for k in range(300)]):
        tensors = [_torch_memory.empty((size // 4,), torch.float32) for size in sizes]
        assert len({tensor.data_ptr() for tensor in tensors}) == len(sizes)
        del tensors
        assert (1 << 27) < kept() <= 1 << 28
    threads = [threading.Thread(target=_many_sizes, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept() <= 1 << 28


def _many_sizes(seed):
    tensors = []
    for k in range(500):
        tensors.append(_torch_memory.empty((50_000 + 1000 * ((k * (seed + 3)) % 7),), torch.float32).fill_(seed))
        if len(tensors) > 5:
            assert (tensors.pop(k % 5) == seed).all()
