# Qwen2's decoder with the names of its checkpoints, written out so that torch.compile and bf16 make it quick to train on a CPU.
# SPDX-License-Identifier: MIT
import torch
from torch import nn
from torch.nn import functional

LONGEST_PLAIN_ROW = 256  # up to here the whole matrix of scores is quicker than the fused kernel


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return functional.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), 1e-6)


def rotate(x, cosine, sine):
    low, high = x.chunk(2, -1)
    return x * cosine + torch.cat((-high, low), -1) * sine


def attend(q, k, v):
    length = q.shape[2]
    if length > LONGEST_PLAIN_ROW:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    scores = (q * q.shape[-1]**-0.5) @ k.transpose(-1, -2)
    past = torch.ones(length, length, dtype=torch.bool).tril()
    return scores.masked_fill(~past, -1e9).softmax(-1, dtype=torch.float32).to(v.dtype) @ v


class Attention(nn.Module):
    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, kv_heads * self.size)
        self.v_proj = nn.Linear(width, kv_heads * self.size)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, cosine, sine):
        rows, length, width = x.shape
        q = self.q_proj(x).view(rows, length, self.heads, self.size).transpose(1, 2)
        k = self.k_proj(x).view(rows, length, self.kv_heads, self.size).transpose(1, 2)
        v = self.v_proj(x).view(rows, length, self.kv_heads, self.size).transpose(1, 2)
        shared = self.heads // self.kv_heads
        k, v = rotate(k, cosine, sine).repeat_interleave(shared, 1), v.repeat_interleave(shared, 1)
        return self.o_proj(attend(rotate(q, cosine, sine), k, v).transpose(1, 2).reshape(rows, length, width))


class FeedForward(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, width, inner, heads, kv_heads):
        super().__init__()
        self.self_attn = Attention(width, heads, kv_heads)
        self.mlp = FeedForward(width, inner)
        self.input_layernorm, self.post_attention_layernorm = Norm(width), Norm(width)

    def forward(self, x, cosine, sine):
        x = x + self.self_attn(self.input_layernorm(x), cosine, sine)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.hidden_size
        self.embed_tokens = nn.Embedding(config.vocab_size, width)
        self.layers = nn.ModuleList(Layer(width, config.intermediate_size, config.num_attention_heads, config.num_key_value_heads)
                                    for _ in range(config.num_hidden_layers))
        self.norm = Norm(width)


class Decoder(nn.Module):
    """Tied embeddings; hidden matrices start small, those that write to the residual stream at nothing."""

    def __init__(self, config, theta):
        super().__init__()
        self.model = Body(config)
        size = config.hidden_size // config.num_attention_heads
        turns = torch.outer(torch.arange(config.max_position_embeddings).float(), theta**(-torch.arange(0, size, 2).float() / size))
        turns = torch.cat((turns, turns), -1)
        self.cosine, self.sine = turns.cos(), turns.sin()
        for name, weight in self.named_parameters():
            if weight.dim() == 2:
                nn.init.normal_(weight, std=0.02 if "embed" in name else 0.06)
            if name.endswith("bias") or "o_proj" in name or "down_proj" in name:
                nn.init.zeros_(weight)

    def forward(self, ids, dtype=torch.float32):
        length = ids.shape[1]
        cosine, sine = self.cosine[:length].to(dtype), self.sine[:length].to(dtype)
        x = self.model.embed_tokens(ids).to(dtype)
        for layer in self.model.layers:
            x = layer(x, cosine, sine)
        return functional.linear(self.model.norm(x), self.model.embed_tokens.weight.to(x.dtype))
