#!/usr/bin/env python3
# Writes a Llama that a GGUF file holds as a Hugging Face folder: config.json, model.safetensors and its tokenizer.
# SPDX-License-Identifier: MIT
#
#   gguf_to_hugging_face.py GGUF FOLDER      needs gguf and safetensors, from PyPI
#
# Quantized tensors are widened to float32: a code times its 16-bit scale plus its offset has more bits than 16-bit
# types hold. Of SmolLM2-135M in Q4_1, float32 keeps every value, float16 would keep 58 % and bfloat16 21 %. What a
# field or a tensor's name says that is not known here is a failure, not left out.
import json
import os
import signal
import sys

import gguf
import numpy
from safetensors import SafetensorError
from safetensors.numpy import save_file
from tqdm import tqdm

# The tensors of layer N by what follows `blk.N.` there and `model.layers.N.` here.
OF_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OF_MODEL = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}

# How text is cut before its bytes are merged, by the name that the file has for it.
PRE_TOKENIZERS = {
    "smollm": [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ],
}


class Failure(Exception):
    """Says what of the file cannot be used."""


class Fields:
    """The file's fields by name."""

    def __init__(self, reader):
        self.fields = reader.fields

    def get(self, name, otherwise=None):
        return self.fields[name].contents() if name in self.fields else otherwise

    def need(self, name):
        if name not in self.fields:
            raise Failure(f"{name} is missing")
        return self.fields[name].contents()

    def expect(self, name, known, otherwise=None):
        value = self.get(name, otherwise)
        if value not in known:
            raise Failure(f"{name} is {value!r}; known here: {', '.join(map(repr, known))}")
        return value


def shortest(value):
    """A float32 as the shortest decimal that means it: 1e-05, not 9.999999747378752e-06."""
    return float(str(numpy.float32(value)))


def config_of(fields, tied):
    fields.expect("general.architecture", ["llama"])
    fields.expect("llama.rope.scaling.type", ["none"], "none")
    fields.expect("llama.expert_count", [0], 0)
    heads = fields.need("llama.attention.head_count")
    hidden = fields.need("llama.embedding_length")
    head_dim = fields.get("llama.attention.key_length", hidden // heads)
    for name in ("llama.rope.dimension_count", "llama.attention.value_length"):
        fields.expect(name, [head_dim], head_dim)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": fields.need("llama.vocab_size"),
        "hidden_size": hidden,
        "intermediate_size": fields.need("llama.feed_forward_length"),
        "num_hidden_layers": fields.need("llama.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": fields.get("llama.attention.head_count_kv", heads),
        "head_dim": head_dim,
        "max_position_embeddings": fields.need("llama.context_length"),
        "rms_norm_eps": shortest(fields.need("llama.attention.layer_norm_rms_epsilon")),
        "rope_theta": shortest(fields.get("llama.rope.freq_base", 10000)),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": tied,
        "bos_token_id": fields.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": fields.get("tokenizer.ggml.eos_token_id"),
        "pad_token_id": fields.get("tokenizer.ggml.padding_token_id"),
        "torch_dtype": "float32",
    }


def tensor_name(name):
    stem, _, suffix = name.rpartition(".")
    parts = stem.split(".")
    if suffix == "weight" and stem in OF_MODEL:
        return f"{OF_MODEL[stem]}.weight"
    if suffix == "weight" and len(parts) == 3 and parts[0] == "blk" and parts[2] in OF_LAYER:
        return f"model.layers.{parts[1]}.{OF_LAYER[parts[2]]}.weight"
    raise Failure(f"tensor {name} has no place in a Llama")


def halves_apart(weight, heads):
    """The rows of q_proj or k_proj in Hugging Face's order.

    Rotary pairs are rows 2i and 2i + 1 of a head in a GGUF, and rows i and i + head_dim / 2 here.
    """
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).swapaxes(1, 2).reshape(rows, columns)


def tensors_of(reader, config):
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    tensors = {}
    for stored in tqdm(reader.tensors, unit=" tensors", disable=None):
        name = tensor_name(stored.name)
        weight = gguf.dequantize(stored.data, stored.tensor_type).astype(numpy.float32)
        projection = name.split(".")[-2]
        if projection in heads:
            weight = halves_apart(weight, heads[projection])
        tensors[name] = numpy.ascontiguousarray(weight)
    return tensors


def tokenizer_of(fields):
    """tokenizer.json: merges of pairs over a text's bytes."""
    fields.expect("tokenizer.ggml.model", ["gpt2"])
    for name in ("add_bos_token", "add_eos_token", "add_space_prefix"):
        fields.expect(f"tokenizer.ggml.{name}", [False], False)
    tokens = fields.need("tokenizer.ggml.tokens")
    types = fields.need("tokenizer.ggml.token_type")
    if set(types) - {gguf.TokenType.NORMAL, gguf.TokenType.CONTROL}:
        raise Failure("tokenizer.ggml.token_type holds others than normal and control tokens")
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": index,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for index, (token, kind) in enumerate(zip(tokens, types))
            if kind == gguf.TokenType.CONTROL
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": PRE_TOKENIZERS[fields.expect("tokenizer.ggml.pre", list(PRE_TOKENIZERS))],
        },
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": fields.need("tokenizer.ggml.merges"),
        },
    }


def tokenizer_config_of(fields, config):
    """tokenizer_config.json: without it transformers takes the tokenizer for that of Llama 2."""
    tokens = fields.need("tokenizer.ggml.tokens")
    special = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    ids = {name: fields.get(f"tokenizer.ggml.{stored}_token_id") for name, stored in special.items()}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config["max_position_embeddings"],
        "clean_up_tokenization_spaces": False,
        **{f"{name}_token": tokens[index] for name, index in ids.items() if index is not None},
        "chat_template": fields.get("tokenizer.chat_template"),
    }


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=1)
        file.write("\n")


def convert(path, folder):
    reader = gguf.GGUFReader(path)
    fields = Fields(reader)
    config = config_of(fields, tied=all(stored.name != "output.weight" for stored in reader.tensors))
    tokenizer = tokenizer_of(fields)
    save_file(tensors_of(reader, config), os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    write_json(folder, "config.json", config)
    write_json(folder, "tokenizer.json", tokenizer)
    write_json(folder, "tokenizer_config.json", tokenizer_config_of(fields, config))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("gguf_to_hugging_face.py: takes a GGUF file and a folder")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt ends it without a word
    try:
        convert(sys.argv[1], sys.argv[2])
    except (Failure, OSError, ValueError, MemoryError, SafetensorError) as error:
        sys.exit(f"gguf_to_hugging_face.py: {sys.argv[1]}: {error}")
