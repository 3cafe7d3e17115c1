"""Trains the benchmark's models with PyTorch, a step for every line on standard input.

The first argument is a JSON record of the model, the second the adapters' rank. A line is "MODE TOKENS", such as
"bf16 4x128"; the answer is the step's milliseconds. Started by precision.ts where Python has torch.
"""

import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

shape = json.loads(sys.argv[1])
rank = int(sys.argv[2])
torch.manual_seed(0)
hidden, heads, kv_heads, head_dim = (shape[k] for k in ("hiddenSize", "heads", "kvHeads", "headDim"))


class Adapted(nn.Module):
    """A frozen linear layer with an adapter."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) * inputs**-0.5, requires_grad=False)
        self.a = nn.Parameter(torch.randn(rank, inputs) * inputs**-0.5)
        self.b = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, x):
        return F.linear(x, self.weight) + F.linear(F.linear(x, self.a), self.b)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width), requires_grad=False)

    def forward(self, x):
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-6)


def rotate(x, cos, sin):
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        ffn = shape["intermediateSize"]
        self.norms = nn.ModuleList([Norm(hidden), Norm(hidden), Norm(head_dim), Norm(head_dim)])
        self.q = Adapted(hidden, heads * head_dim)
        self.k = Adapted(hidden, kv_heads * head_dim)
        self.v = Adapted(hidden, kv_heads * head_dim)
        self.o = Adapted(heads * head_dim, hidden)
        self.gate, self.up = Adapted(hidden, ffn), Adapted(hidden, ffn)
        self.down = Adapted(ffn, hidden)

    def forward(self, x, cos, sin):
        count, length, _ = x.shape
        before, middle, of_q, of_k = self.norms
        y = before(x)
        split = lambda z, n: z.view(count, length, n, head_dim)
        q = rotate(of_q(split(self.q(y), heads)).transpose(1, 2), cos, sin)
        k = rotate(of_k(split(self.k(y), kv_heads)).transpose(1, 2), cos, sin)
        v = split(self.v(y), kv_heads).transpose(1, 2)
        seen = F.scaled_dot_product_attention(q.to(v.dtype), k.to(v.dtype), v, is_causal=True, enable_gqa=True)
        x = x + self.o(seen.transpose(1, 2).reshape(count, length, -1))
        y = middle(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(shape["vocabSize"], hidden).requires_grad_(False)
        self.layers = nn.ModuleList([Layer() for _ in range(shape["layers"])])
        self.norm = Norm(hidden)
        self.head = Adapted(hidden, shape["vocabSize"])

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], dtype=torch.float32)
        rates = 1e6 ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
        angles = torch.outer(positions, rates).repeat(1, 2)
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin())
        return self.head(self.norm(x))


model = Model()
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-4)
print("ready", flush=True)
for line in sys.stdin:
    mode, size = line.split()
    count, length = map(int, size.split("x"))
    tokens = torch.randint(shape["vocabSize"], (count, length + 1))
    start = time.perf_counter()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mode == "bf16"):
        logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum")
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print((time.perf_counter() - start) * 1000, flush=True)
