"""PyTorch's operators that programs of other people may use: arithmetic, and nothing else.

None of them opens a file, talks to a network, prints, loads code, or returns memory that was not
filled; what writes, writes into the program's own tensors. Variants that trust the sizes that they
are given (``as_strided``, ``set_``, ``_native_batch_norm_legit_no_training``) are not among them.
"""

from __future__ import annotations

from typing import Final

_TENSORS: Final = """
abs acos add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax any arange argmax argmin
argsort asin atan atan2 avg_pool1d avg_pool2d baddbmm bilinear bitwise_and bitwise_not bitwise_or
bitwise_xor bmm ceil celu clamp clamp_max clamp_min clip complex constant_pad_nd conv1d conv2d
convolution copysign cos cosh cosine_similarity cross cummax cummin cumprod cumsum diag diagonal
diff dist div divide dot dropout einsum elu embedding eq equal erf erfc erfinv exp exp2 expm1 eye
feature_dropout fill flip float_power floor floor_divide fmax fmin fmod frac full full_like gather
ge gelu glu greater greater_equal group_norm gt hardsigmoid hardswish hardtanh heaviside hypot index
index_add index_fill index_put index_select inner instance_norm isclose isfinite isinf isnan
kthvalue layer_norm le leaky_relu lerp less less_equal linalg_cross linalg_matrix_norm linalg_norm
linalg_vector_norm linear linspace log log10 log1p log2 log_sigmoid log_sigmoid_forward log_softmax
logaddexp logcumsumexp logical_and logical_not logical_or logical_xor logit logsumexp lt masked_fill
masked_scatter masked_select matmul max max_pool1d max_pool2d maximum mean median min minimum mish
mm mode mse_loss mul multiply mv nan_to_num nanmean nansum native_dropout native_layer_norm ne neg
negative nonzero norm one_hot ones ones_like outer pad pairwise_distance pow prelu prod
quantile reciprocal relu relu6 remainder renorm repeat_interleave rms_norm roll round rsqrt rsub
scaled_dot_product_attention scatter scatter_add searchsorted selu sgn sigmoid sign silu sin sinh
smooth_l1_loss softmax softplus softshrink sort sqrt square std std_mean sub subtract sum take
take_along_dim tan tanh tensordot threshold topk trace tril triu true_divide trunc var var_mean vdot
where xlogy zero zeros zeros_like batch_norm cdist _cdist_forward _convolution _log_softmax _softmax
"""
_SHAPES: Final = """
alias atleast_1d atleast_2d broadcast_tensors broadcast_to cat chunk clone column_stack concat
concatenate contiguous copy detach detach_copy dim dstack expand expand_as flatten hstack
is_contiguous is_floating_point item lift_fresh lift_fresh_copy meshgrid movedim narrow new_full
new_ones new_zeros numel permute ravel repeat reshape reshape_as resolve_conj
resolve_neg result_type scalar_tensor select size slice split split_with_sizes squeeze stack stride
swapaxes swapdims sym_numel sym_size t tensor tensor_split tile to transpose type_as unbind
unflatten unsqueeze unsafe_chunk unsafe_split unsafe_split_with_sizes view view_as vstack
_to_copy _unsafe_view _shape_as_tensor _assert_async _assert_scalar
_assert_tensor_metadata sym_constrain_range sym_constrain_range_for_size device cpu data grad
"""
_NUMBERS_AND_LISTS: Final = """
__and__ __contains__ __derive_index __getitem__ __is__ __isnot__ __not__ __or__ __range_length
__xor__ Bool Float FloatImplicit Int IntImplicit ScalarImplicit append as_tensor center clear count
degrees dict extend find floordiv format gamma get index indices insert is_autocast_enabled
is_grad_enabled is_scripting items join keys
len list pop range reverse sorted str update values
"""

OPERATORS: Final = frozenset(f"{_TENSORS} {_SHAPES} {_NUMBERS_AND_LISTS}".split())
"""Names of operators that are let in, with all their overloads."""


def is_allowed(name: str) -> bool:
    """Whether an operator, ``add``, or what does the same in place, ``add_``, is let in."""
    return name in OPERATORS or (name.endswith("_") and name[:-1] in OPERATORS)
