#!/usr/bin/env python3
"""What eager PyTorch moves where this core runs one op: `kernels.ops` of the profiles of software.

Counts, for each element of the op, the bytes that PyTorch's dispatched ops read and write, and the
ops, forward and backward: of norms with the residual addition and the casts around them, of
activations, of the loss and of rotary positions, as torch_memory.py and as transformers have them. Tensors are
fake; nothing is computed. Views, and tensors of a thousandth of the largest, count nothing.

    tests/parity/torch_work.py
"""

import contextlib

import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import torch_memory

ROWS, WIDTH, HEAD = 4096, 1024, 128
SMALL = ROWS * WIDTH // 1000
# On a GPU sums over rows are kernels of their own, which read both operands again.
ONES_MORE = {"aten.native_layer_norm_backward.default": 2}


def bytes_of(tensor):
    """Of its storage's part: what is broadcast is read once."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride()):
        count *= size if stride != 0 else 1
    return count * tensor.element_size() if count > SMALL else 0


class Counter(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.bytes = self.kernels = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        schema = func._schema
        aliases = any(each.alias_info and not each.alias_info.is_write for each in schema.returns)
        made = [each for each in tree_leaves(out) if isinstance(each, torch.Tensor)]
        if aliases or "empty" in str(func) or not made:
            return out
        given = {id(each): each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)}
        read = sum(bytes_of(each) for each in given.values())
        written = sum(bytes_of(each) for each in made)
        if "zeros" in str(func) or "ones" in str(func) or "fill" in str(func) or "zero_" in str(func):
            read = 0
        self.bytes += read + written
        self.kernels += 1
        if str(func) in ONES_MORE:
            self.bytes += read
            self.kernels += ONES_MORE[str(func)] - 1
        return out


def counted(program, inputs, autocast):
    """((bytes, kernels) forward, backward) of program(*inputs), a tuple of tensors."""
    forward, backward = Counter(), Counter()
    context = torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext()
    with forward, context:
        outputs = program(*inputs)
    gradients = [torch.empty_like(each) for each in outputs]
    wanted = [each for each in inputs if each.requires_grad]
    with backward:
        torch.autograd.grad(outputs, wanted, gradients)
    return forward, backward


def tensor(*shape, dtype=torch.bfloat16, grad=True):
    return torch.empty(*shape, dtype=dtype, requires_grad=grad)


def norms(norm, stream, readers):
    """The stream plus what a branch gave, its norm, and the cast of that for each product that reads it."""
    def program(x, branch):
        total = x + branch
        normed = norm(total)
        if normed.dtype == torch.bfloat16:
            return total, normed
        return (total, *(normed.to(torch.bfloat16) for _ in range(readers)))
    return program, [tensor(ROWS, WIDTH, dtype=stream), tensor(ROWS, WIDTH)]


def programs():
    from transformers.activations import NewGELUActivation
    from transformers.models.llama.modeling_llama import LlamaRMSNorm, apply_rotary_pos_emb
    f32, bf16 = torch.float32, torch.bfloat16

    def in_16_bit(module, *arguments):
        torch.set_default_dtype(bf16)
        made = module(*arguments)
        torch.set_default_dtype(f32)
        return made
    yield "torch-ddp norm layer_norm", True, *norms(torch_memory.LayerNorm(WIDTH, True), f32, 1)
    yield "torch-ddp norm rms_norm, read by 3", True, *norms(torch_memory.RmsNorm(WIDTH), f32, 3)
    yield "torch-ddp norm rms_norm, read by 2", True, *norms(torch_memory.RmsNorm(WIDTH), f32, 2)
    yield "torch-fsdp2 norm layer_norm", False, *norms(in_16_bit(torch_memory.LayerNorm, WIDTH, False), bf16, 1)
    yield "torch-fsdp2 norm rms_norm", False, *norms(in_16_bit(torch_memory.RmsNorm, WIDTH), bf16, 1)
    yield "deepspeed norm rms_norm", False, *norms(in_16_bit(LlamaRMSNorm, WIDTH), bf16, 1)
    one, two = [tensor(ROWS, WIDTH)], [tensor(ROWS, WIDTH), tensor(ROWS, WIDTH)]
    yield "torch activation gelu", False, lambda x: (F.gelu(x, approximate="tanh"),), one
    yield "torch activation swiglu", False, lambda gate, up: (F.silu(gate) * up,), two
    yield "deepspeed activation gelu_new", False, lambda x: (NewGELUActivation()(x),), one
    targets = torch.empty(ROWS, dtype=torch.long)
    yield "torch and deepspeed cross_entropy", False, lambda x: (F.cross_entropy(x.float(), targets),), one
    heads = WIDTH // HEAD
    pairs = torch.empty(1, ROWS, 1, HEAD // 2, dtype=torch.complex64)
    yield "torch rope", False, lambda q: (torch_memory.rotate(q, pairs),), [tensor(1, ROWS, heads, HEAD)]
    angle = torch.empty(1, ROWS, HEAD, dtype=bf16)

    def transformers_rope(q):
        return apply_rotary_pos_emb(q.transpose(1, 2), q.transpose(1, 2)[:, :1], angle, angle)[:1]
    yield "deepspeed rope (and of one key head)", False, transformers_rope, [tensor(1, ROWS, heads, HEAD)]


def main():
    print(f"PyTorch {torch.__version__}; for each element: bytes and kernels, forward and backward")
    with FakeTensorMode():
        for name, autocast, program, inputs in programs():
            passes = counted(program, inputs, autocast)
            each = [f"{one.bytes / (ROWS * WIDTH):6.1f} B {one.kernels:3}" for one in passes]
            print(f"{name:42} {'   '.join(each)}")


if __name__ == "__main__":
    main()
