"""The element-wise part of a full-size network as two kernels, and the contrastive pass as one.

Between two matrix products a hidden layer adds a bias, applies GELU and a LayerNorm. Left to
the compiler this becomes dozens of small kernels forward and backward (row statistics, their
gradients, sums over the batch for three vectors), which cost more than the products. Here each
direction is one kernel that reads its inputs once. Off the GPU, and for sizes the kernels do not
take, the same arithmetic runs as plain JAX; the tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

Vectors: TypeAlias = tuple[jax.Array, jax.Array, jax.Array]
"""Bias before the GELU, scale and shift of the LayerNorm; each [n, d] float32."""

Saved: TypeAlias = tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]
"""What the gradient needs: h, bias, scale, and the moments of the activated rows [n, B]."""

EPSILON = 1e-6
"""Added to the variance, as Flax's LayerNorm does."""

FORWARD_ROWS, FORWARD_WARPS = 4, 2
BACKWARD_ROWS, BACKWARD_WARPS, CHUNK = 16, 2, 2
"""Rows per program and warps that share them; CHUNK rows per turn of the backward loop."""

Tanh: TypeAlias = Callable[[jax.Array], jax.Array]
"""The kernels use the GPU's own approximation, whose error is below bfloat16's rounding."""

_INNER, _CUBE = 0.7978845608028654, 0.044715  # gelu(x) = x (1 + tanh(_INNER (x + _CUBE x^3))) / 2


def _gelu(x: jax.Array, tanh: Tanh) -> tuple[jax.Array, jax.Array]:
    """GELU in its tanh form, and its derivative."""
    square = x * x
    gate = 0.5 + 0.5 * tanh(x * (_INNER + _INNER * _CUBE * square))
    slope = gate + x * gate * (1.0 - gate) * (2 * _INNER + 6 * _INNER * _CUBE * square)
    return x * gate, slope


def _moments(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean of each row, and one over its standard deviation: [..., 1]."""
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean((x - mean) * (x - mean), axis=-1, keepdims=True)
    return mean, jax.lax.rsqrt(variance + EPSILON)


def _forward_rows(
    h: jax.Array, bias: jax.Array, scale: jax.Array, shift: jax.Array, tanh: Tanh = jnp.tanh
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """LayerNorm(gelu(h + bias)) of rows [..., d] in float32, and the rows' moments."""
    activated, _ = _gelu(h.astype(jnp.float32) + bias, tanh)
    mean, inverse = _moments(activated)
    return (activated - mean) * inverse * scale + shift, mean, inverse


def _backward_rows(
    h: jax.Array,
    bias: jax.Array,
    scale: jax.Array,
    mean: jax.Array,
    inverse: jax.Array,
    dy: jax.Array,
    tanh: Tanh = jnp.tanh,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Gradient with respect to h, the normalized rows, and dy in float32."""
    activated, slope = _gelu(h.astype(jnp.float32) + bias, tanh)
    normal = (activated - mean) * inverse
    dy = dy.astype(jnp.float32)
    dn = dy * scale
    along = jnp.mean(dn * normal, axis=-1, keepdims=True)
    dx = inverse * (dn - jnp.mean(dn, axis=-1, keepdims=True) - normal * along)
    return dx * slope, normal, dy


def _forward_kernel(*refs: jax.Ref, tanh: Tanh) -> None:
    h_ref, bias_ref, scale_ref, shift_ref, y_ref, mean_ref, inverse_ref = refs
    bias, scale, shift = (ref[...][None, :] for ref in (bias_ref, scale_ref, shift_ref))
    y, mean, inverse = _forward_rows(h_ref[...], bias, scale, shift, tanh)
    y_ref[...] = y.astype(y_ref.dtype)
    mean_ref[...] = mean[:, 0]
    inverse_ref[...] = inverse[:, 0]


def _backward_kernel(*refs: jax.Ref, tanh: Tanh) -> None:
    """Rows in turns; the sums over rows for bias, scale and shift stay in registers."""
    h_ref, bias_ref, scale_ref, mean_ref, inverse_ref, dy_ref, dh_ref, sums_ref = refs
    bias, scale = bias_ref[...][None, :], scale_ref[...][None, :]

    def turn(i: jax.Array, sums: Vectors) -> Vectors:
        rows = pl.ds(i * CHUNK, CHUNK)
        mean, inverse = mean_ref[rows][:, None], inverse_ref[rows][:, None]
        h, dy = h_ref[rows, :], dy_ref[rows, :]
        dx, normal, dy = _backward_rows(h, bias, scale, mean, inverse, dy, tanh)
        dh_ref[rows, :] = dx.astype(dh_ref.dtype)
        return (
            sums[0] + jnp.sum(dx, axis=0),
            sums[1] + jnp.sum(dy * normal, axis=0),
            sums[2] + jnp.sum(dy, axis=0),
        )

    zero = jnp.zeros((h_ref.shape[-1],), jnp.float32)
    sums = jax.lax.fori_loop(0, h_ref.shape[0] // CHUNK, turn, (zero, zero, zero))
    for i, total in enumerate(sums):
        sums_ref[i, :] = total


def _blocks(rows: int, d: int) -> tuple[pl.BlockSpec, pl.BlockSpec, pl.BlockSpec]:
    """How arrays ``[n, d]``, ``[n, B]`` and ``[n, B, d]`` are cut for one program of a kernel.

    A program works on ``rows`` of the B rows of one of the n networks.
    """
    return (
        pl.BlockSpec((None, d), lambda i, _: (i, 0)),
        pl.BlockSpec((None, rows), lambda i, j: (i, j)),
        pl.BlockSpec((None, rows, d), lambda i, j: (i, j, 0)),
    )


def _forward_gpu(
    h: jax.Array, bias: jax.Array, scale: jax.Array, shift: jax.Array, *, interpret: bool = False
) -> tuple[jax.Array, jax.Array, jax.Array]:
    n, rows, d = h.shape
    vector, column, matrix = _blocks(FORWARD_ROWS, d)
    moment = jax.ShapeDtypeStruct((n, rows), jnp.float32)
    call = pl.pallas_call(
        partial(_forward_kernel, tanh=jnp.tanh if interpret else triton.approx_tanh),
        out_shape=[jax.ShapeDtypeStruct(h.shape, h.dtype), moment, moment],
        grid=(n, rows // FORWARD_ROWS),
        in_specs=[matrix, vector, vector, vector],
        out_specs=[matrix, column, column],
        compiler_params=triton.CompilerParams(num_warps=FORWARD_WARPS, num_stages=1),
        interpret=interpret,
        name="bias_gelu_norm",
    )
    y, mean, inverse = call(h, bias, scale, shift)
    return y, mean, inverse


def _backward_gpu(
    *saved_and_dy: jax.Array, interpret: bool = False
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    h = saved_and_dy[0]
    n, rows, d = h.shape
    blocks = rows // BACKWARD_ROWS
    vector, column, matrix = _blocks(BACKWARD_ROWS, d)
    # Three sums per block of rows, padded to four: Triton wants powers of two.
    sums = pl.BlockSpec((None, None, 4, d), lambda i, j: (i, j, 0, 0))
    call = pl.pallas_call(
        partial(_backward_kernel, tanh=jnp.tanh if interpret else triton.approx_tanh),
        out_shape=[
            jax.ShapeDtypeStruct(h.shape, h.dtype),
            jax.ShapeDtypeStruct((n, blocks, 4, d), jnp.float32),
        ],
        grid=(n, blocks),
        in_specs=[matrix, vector, vector, column, column, matrix],
        out_specs=[matrix, sums],
        compiler_params=triton.CompilerParams(num_warps=BACKWARD_WARPS, num_stages=1),
        interpret=interpret,
        name="bias_gelu_norm_gradient",
    )
    dh, partial_sums = call(*saved_and_dy)
    total = jnp.sum(partial_sums, axis=1)
    return dh, total[:, 0], total[:, 1], total[:, 2]


def _fits(h: jax.Array) -> bool:
    """Whether the kernels take this: bfloat16 on a GPU, whole blocks of rows, d a power of two."""
    _, rows, d = h.shape
    shape = rows % BACKWARD_ROWS == 0 and d >= 16 and d & (d - 1) == 0
    return jax.default_backend() == "gpu" and h.dtype == jnp.bfloat16 and shape


@jax.custom_vjp
def bias_gelu_norm(h: jax.Array, bias: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    """LayerNorm(gelu(h + bias)) for n networks at once.

    The pre-activations h [n, B, d] are bfloat16 or float32, and so is the result; bias, scale and
    shift [n, d] are float32.
    """
    return _forward(h, bias, scale, shift)[0]


def _forward(
    h: jax.Array, bias: jax.Array, scale: jax.Array, shift: jax.Array
) -> tuple[jax.Array, Saved]:
    if _fits(h):
        y, mean, inverse = _forward_gpu(h, bias, scale, shift)
    else:
        y, *moments = _forward_rows(h, bias[:, None], scale[:, None], shift[:, None])
        mean, inverse = (x[..., 0] for x in moments)
    return y.astype(h.dtype), (h, bias, scale, mean, inverse)


def _backward(saved: Saved, dy: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    h, bias, scale, mean, inverse = saved
    if _fits(h):
        return _backward_gpu(*saved, dy)
    moments = (mean[..., None], inverse[..., None])
    dx, normal, dy = _backward_rows(h, bias[:, None], scale[:, None], *moments, dy)
    sums = [jnp.sum(term, axis=1) for term in (dx, dy * normal, dy)]
    return dx.astype(h.dtype), sums[0], sums[1], sums[2]


bias_gelu_norm.defvjp(_forward, _backward)


@jax.custom_vjp
def add_bias(h: jax.Array, bias: jax.Array) -> jax.Array:
    """Add to rows [n, B, d] each network's bias [n, d], in the rows' type.

    The gradient's sum over the batch is a matrix product with rows of ones: the compiler's own
    column sums take several times as long as the products around them.
    """
    return h + bias[:, None].astype(h.dtype)


def _bias_backward(_: None, dy: jax.Array) -> tuple[jax.Array, jax.Array]:
    ones = jnp.ones((dy.shape[0], 8, dy.shape[1]), dy.dtype)  # one row would become a slow sum
    sums = jnp.einsum("nkb,nbd->nkd", ones, dy, preferred_element_type=jnp.float32)
    return dy, sums[:, 0]


add_bias.defvjp(lambda h, bias: (add_bias(h, bias), None), _bias_backward)


@jax.custom_vjp
def binary_nce_pairs(phi: jax.Array, psi: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Binary NCE of all B x B pairs: the loss, the mean logit, and the mean positive logit.

    The same number as ``binary_nce`` of the logits phi . psi, for bfloat16 embeddings [n, B, d].
    One pass over the logits gives the loss and their gradient, which is kept in bfloat16; the
    other two results are for logging and carry no gradient.
    """
    return _nce_forward(phi, psi)[0]


_NCE_SCALE = 2.0**20  # keeps the gradient of a mean over B x B pairs in bfloat16's middle range


def _nce_forward(
    phi: jax.Array, psi: jax.Array
) -> tuple[tuple[jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array, jax.Array]]:
    logits = jnp.einsum("nbd,ncd->nbc", phi, psi, preferred_element_type=phi.dtype)
    x = logits.astype(jnp.float32)
    own = jnp.eye(x.shape[-1], dtype=jnp.float32)[None]
    softplus = jnp.maximum(x, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(x)))
    positive = jnp.mean(jnp.diagonal(x, axis1=1, axis2=2))
    loss = jnp.mean(softplus) - positive / x.shape[-1]
    slope = (jax.nn.sigmoid(x) - own) * (_NCE_SCALE / x.size)
    return (loss, jnp.mean(x), positive), (phi, psi, slope.astype(phi.dtype))


def _nce_backward(
    saved: tuple[jax.Array, jax.Array, jax.Array], ct: tuple[jax.Array, jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    phi, psi, slope = saved
    back = ct[0] / _NCE_SCALE

    def product(form: str, x: jax.Array, y: jax.Array) -> jax.Array:
        out = jnp.einsum(form, x, y, preferred_element_type=jnp.float32)
        return (out * back).astype(phi.dtype)

    return product("nbc,ncd->nbd", slope, psi), product("nbc,nbd->ncd", slope, phi)


binary_nce_pairs.defvjp(_nce_forward, _nce_backward)
