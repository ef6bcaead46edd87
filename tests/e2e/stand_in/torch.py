"""A stand-in for PyTorch in tests of losses in Python: one-dimensional tensors of 32-bit floats, the operations that
examples/python_loss.py calls, and their gradients. Each operation rounds to 32 bits, as PyTorch's do. The real one is
too large a download for the tests' environment."""
import ctypes
import struct
import types

float32 = "float32"


def rounded(value):
    return struct.unpack("f", struct.pack("f", value))[0]


class Tensor:
    def __init__(self, values, parents=()):
        self.values, self.parents = [rounded(value) for value in values], parents  # [(tensor, its gradient by ours)]
        self.requires_grad = any(parent.requires_grad for parent, _ in parents)
        self.memory = None

    def requires_grad_(self):
        self.requires_grad = True
        return self

    def __mul__(self, other):
        return Tensor([a * b for a, b in zip(self.values, other.values)],
                      [(self, lambda g: [a * b for a, b in zip(g, other.values)]),
                       (other, lambda g: [a * b for a, b in zip(g, self.values)])])

    def sum(self):
        total = 0.0
        for value in self.values:
            total = rounded(total + value)
        return Tensor([total], [(self, lambda g: g * len(self.values))])

    def __truediv__(self, number):
        return Tensor([self.values[0] / number], [(self, lambda g: [rounded(g[0] / number)])])

    def __float__(self):
        return self.values[0]

    def detach(self):
        return Tensor(self.values)

    def numel(self):
        return len(self.values)

    def contiguous(self):
        return self

    def data_ptr(self):
        self.memory = (ctypes.c_float * len(self.values))(*self.values)
        return ctypes.addressof(self.memory)


def frombuffer(data, dtype):
    assert dtype == float32
    return Tensor(struct.unpack(f"{len(data) // 4}f", data))


def zeros(count):
    return Tensor([0.0] * count)


def set_num_threads(count):
    assert count == 1


def gradient(value, leaves, allow_unused):
    found = {}

    def walk(tensor, by):
        if not tensor.parents:
            before = found.get(id(tensor), [0.0] * len(by))
            found[id(tensor)] = [a + b for a, b in zip(before, by)]
        for parent, backward in tensor.parents:
            if parent.requires_grad:
                walk(parent, [rounded(one) for one in backward(by)])

    walk(value, [1.0])
    return [Tensor(found[id(leaf)]) if id(leaf) in found else None for leaf in leaves]


autograd = types.SimpleNamespace(grad=gradient)
