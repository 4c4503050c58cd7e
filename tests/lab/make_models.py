#!/usr/bin/env python3
# Small models made with transformers and torch, and the logits these compute: what our forward pass is held against.
# SPDX-License-Identifier: MIT
#
#   make_models.py FOLDER      each model as a Hugging Face folder of its own, with its logits.json
#   make_models.py --record    the last position's logits of each, as recorded_logits.hpp has them
#
# The weights are small whole numbers over powers of two, drawn by a generator that the C++ test has too, so that they
# are the same there without a file, and every type of float holds them exactly.
import json
import os
import sys

import numpy
import torch
import transformers

POSITIONS = 48
ROPE_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

# name: class of configuration, its arguments, dtype, largest shard in bytes.
MODELS = {
    "llama": ("LlamaConfig", dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                                  num_key_value_heads=2, rope=dict(ROPE_LLAMA3, rope_theta=10000.0)), "bfloat16", None),
    "smollm2": ("LlamaConfig", dict(hidden_size=72, intermediate_size=96, num_hidden_layers=2, num_attention_heads=9,
                                    num_key_value_heads=3, tie_word_embeddings=True,
                                    rope=dict(rope_type="linear", factor=2.0, rope_theta=100000.0)), "float32", None),
    "llama_biases": ("LlamaConfig", dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, mlp_bias=True,
                                         num_attention_heads=4, num_key_value_heads=4, attention_bias=True,
                                         rope=dict(rope_type="default", rope_theta=10000.0)), "float16", None),
    "mistral": ("MistralConfig", dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=1, head_dim=24, sliding_window=None,
                                      rope=dict(rope_type="default", rope_theta=1000000.0)), "float16", None),
    "qwen2": ("Qwen2Config", dict(hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
                                  num_key_value_heads=2, tie_word_embeddings=True,
                                  rope=dict(rope_type="default", rope_theta=1000000.0)), "float32", 60000),
    "qwen3": ("Qwen3Config", dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                                  num_key_value_heads=2, head_dim=32, tie_word_embeddings=True,
                                  rope=dict(rope_type="default", rope_theta=1000000.0)), "bfloat16", None),
}
COMMON = dict(vocab_size=128, max_position_embeddings=128, rms_norm_eps=1e-5)


def hashed(name):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def draws(name, count):
    """SplitMix64 from the name's hash: whole numbers from -128 to 127."""
    with numpy.errstate(over="ignore"):
        state = numpy.uint64(hashed(name)) + numpy.arange(1, count + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        state = state ^ (state >> numpy.uint64(31))
    return (state >> numpy.uint64(56)).astype(numpy.int64) - 128


def values(name, shape):
    """k / 128 times a power of two near 1 / sqrt(inputs); norms are near 1."""
    count = int(numpy.prod(shape))
    k = draws(name, count)
    if name.endswith("norm.weight"):
        flat = 1 + (k >> 5) / 8
    elif name.endswith("bias"):
        flat = k / 512
    elif name == "model.embed_tokens.weight":
        flat = k / 128
    else:
        flat = k / 128 * 2.0 ** (1 - int(shape[1] - 1).bit_length() // 2)
    return flat.astype(numpy.float32).reshape(shape)


def made(name):
    config_class, arguments, dtype, shard = MODELS[name]
    arguments = dict(COMMON, **arguments)
    rope = arguments.pop("rope")
    if int(transformers.__version__.split(".")[0]) >= 5:
        arguments["rope_parameters"] = rope
    else:
        arguments["rope_theta"] = rope["rope_theta"]
        scaling = {key: value for key, value in rope.items() if key != "rope_theta"}
        arguments["rope_scaling"] = None if scaling["rope_type"] == "default" else scaling
    config = getattr(transformers, config_class)(**arguments)
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(values(parameter_name, tuple(parameter.shape))))
    tokens = [(37 * i + 11) % COMMON["vocab_size"] for i in range(POSITIONS)]
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0]
    return model, tokens, logits, getattr(torch, dtype), shard


def write(folder):
    for name in MODELS:
        model, tokens, logits, dtype, shard = made(name)
        path = os.path.join(folder, name)
        model.to(dtype).save_pretrained(path, **({"max_shard_size": shard} if shard else {}))
        with open(os.path.join(path, "logits.json"), "w") as file:
            json.dump({"tokens": tokens, "logits": logits.tolist()}, file)


def record():
    for name in MODELS:
        _, _, logits, _, _ = made(name)
        print('    {"%s",\n     {%s}},' % (name, ", ".join("%.5ff" % x for x in logits[-1].tolist())))


torch.manual_seed(0)
transformers.logging.set_verbosity_error()
if len(sys.argv) != 2:
    sys.exit("make_models.py: a folder, or --record")
if sys.argv[1] == "--record":
    record()
else:
    write(sys.argv[1])
