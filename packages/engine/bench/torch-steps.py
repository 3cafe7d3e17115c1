"""Trains and samples the benchmark's models with PyTorch, a measurement for every line on standard input.

The first argument is a JSON record of the model, the second the adapters' rank. A line is "WHAT PRECISION COUNTxLENGTH":
"step bf16 4x128" answers with the milliseconds of a training step on 4 sequences of 128 tokens, "decode f32 8x12" with
those of a token of each of 8 sequences, the mean of 12. Started by torch.ts where Python has torch; a model with
layers of the gated delta rule needs transformers too, of which the model is then.
"""

import copy
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
prompt_length = 4


class Adapted(nn.Module):
    """A frozen linear layer with an adapter."""

    def __init__(self, inputs, outputs, weight=None):
        super().__init__()
        weight = torch.randn(outputs, inputs) * inputs**-0.5 if weight is None else weight
        self.weight = nn.Parameter(weight, requires_grad=False)
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

    def forward(self, x, cos, sin, cache=None, start=0):
        count, length, _ = x.shape
        before, middle, of_q, of_k = self.norms
        y = before(x)
        split = lambda z, n: z.view(count, length, n, head_dim)
        q = rotate(of_q(split(self.q(y), heads)).transpose(1, 2), cos, sin)
        k = rotate(of_k(split(self.k(y), kv_heads)).transpose(1, 2), cos, sin)
        v = split(self.v(y), kv_heads).transpose(1, 2)
        q, k = q.to(v.dtype), k.to(v.dtype)
        if cache is not None:
            cache[0, :, :, start : start + length] = k
            cache[1, :, :, start : start + length] = v
            k, v = cache[:, :, :, : start + length]
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1, enable_gqa=True)
        x = x + self.o(seen.transpose(1, 2).reshape(count, length, -1))
        y = middle(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        vocabulary = shape["vocabSize"]
        self.embedding = nn.Embedding(vocabulary, hidden).requires_grad_(False)
        self.layers = nn.ModuleList([Layer() for _ in range(shape["layers"])])
        self.norm = Norm(hidden)
        tied = self.embedding.weight.mul_(hidden**-0.5) if shape["tiedEmbeddings"] else None
        self.head = Adapted(hidden, vocabulary, tied)

    def new_caches(self, count, length, dtype):
        size = (shape["layers"], 2, count, kv_heads, length, head_dim)
        return torch.zeros(size, dtype=dtype)

    def forward(self, tokens, caches=None, start=0):
        positions = torch.arange(start, start + tokens.shape[1], dtype=torch.float32)
        rates = 1e6 ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
        angles = torch.outer(positions, rates).repeat(1, 2)
        x = self.embedding(tokens)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for index, layer in enumerate(self.layers):
            x = layer(x, cos, sin, None if caches is None else caches[index], start)
        x = x if caches is None else x[:, -1:]
        return self.head(self.norm(x))


class Hybrid(nn.Module):
    """Qwen3.5 as transformers computes it without kernels of others, with adapters."""

    def __init__(self):
        super().__init__()
        from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

        rule, rope = shape["deltaRule"], shape["rope"]
        mixers = [kind.get("mixer") for kind in shape["layerKinds"]]
        config = Qwen3_5TextConfig(
            vocab_size=shape["vocabSize"],
            hidden_size=hidden,
            intermediate_size=shape["intermediateSize"],
            num_hidden_layers=shape["layers"],
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            head_dim=head_dim,
            tie_word_embeddings=shape["tiedEmbeddings"],
            layer_types=["linear_attention" if mixer else "full_attention" for mixer in mixers],
            linear_num_key_heads=rule["keyHeads"],
            linear_num_value_heads=rule["valueHeads"],
            linear_key_head_dim=rule["keyDim"],
            linear_value_head_dim=rule["valueDim"],
            linear_conv_kernel_dim=rule["kernel"],
            rope_parameters={
                "rope_type": "default",
                "rope_theta": rope["theta"],
                "partial_rotary_factor": rope["rotaryDim"] / head_dim,
            },
        )
        self.inner = Qwen3_5ForCausalLM(config).requires_grad_(False)
        self.embedding = self.inner.model.embed_tokens
        for name, module in list(self.inner.named_modules()):
            part = name.rsplit(".", 1)[-1]
            if not isinstance(module, nn.Linear) or part in ("in_proj_a", "in_proj_b"):
                continue
            parent = self.inner.get_submodule(name.rsplit(".", 1)[0]) if "." in name else self.inner
            inputs, outputs = module.in_features, module.out_features
            setattr(parent, part, Adapted(inputs, outputs, module.weight.data))

    def new_caches(self, *_):
        return {}

    def forward(self, tokens, caches=None, start=0):
        if caches is None:
            return self.inner(input_ids=tokens, use_cache=False).logits
        past = caches.get("past")
        result = self.inner(
            input_ids=tokens, past_key_values=past, use_cache=True, logits_to_keep=1
        )
        caches["past"] = result.past_key_values
        return result.logits


model = Hybrid() if "deltaRule" in shape else Model()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
of_precision = {"f32": model}


def step(precision, count, length):
    tokens = torch.randint(shape["vocabSize"], (count, length + 1))
    start = time.perf_counter()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
        logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum")
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return time.perf_counter() - start


@torch.inference_mode()
def decode(precision, count, length):
    if precision not in of_precision:
        # Weights in 16 bits: autocast would round them again for every token.
        of_precision[precision] = copy.deepcopy(model).to(torch.bfloat16)
    chosen = of_precision[precision]
    dtype = chosen.embedding.weight.dtype
    caches = chosen.new_caches(count, prompt_length + length, dtype)
    tokens = torch.arange(prompt_length).repeat(count, 1)
    start = 0
    for place in [0, *range(prompt_length, prompt_length + length)]:
        if place == prompt_length:
            start = time.perf_counter()
        logits = chosen(tokens, caches, place)[:, -1].float()
        tokens = torch.multinomial(torch.softmax(logits, dim=-1), 1)
    return (time.perf_counter() - start) / length


print("ready", flush=True)
for line in sys.stdin:
    what, precision, size = line.split()
    measure = {"step": step, "decode": decode}[what]
    print(measure(precision, *map(int, size.split("x"))) * 1000, flush=True)
