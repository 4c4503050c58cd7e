# Trains the toy model: a tokenizer and a small Qwen2 on the stories of generate.py, then judges what was saved.
# SPDX-License-Identifier: MIT
"""
    train.py --training FILE --work FOLDER         learn, and save tokenizer.json, config.json and model.safetensors beside this file
    train.py --judge                               perplexity, questions, and the K and V channels of the saved model

FOLDER keeps the tokens and a checkpoint; a run that was broken off goes on from it. One thread; README.md names the versions.
"""

import argparse
import json
import math
import pathlib
import time

import numpy as np
import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import Qwen2Config, Qwen2ForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
SEPARATOR = "<|endoftext|>"
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
VOCABULARY, CONTEXT, SEED = 1024, 1024, 1
SHAPE = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2)
# Rows and their length: short while the stories are short, then longer, and the whole context in the last steps.
FIRST_ROWS, ROWS, LAST_ROWS, FIRST_TOKENS, LAST_STEPS = (16, 128), (8, 256), (4, 1024), 3_000_000, 0.1
PEAK_RATE, WARM_UP, FALL, CHECKPOINT_EVERY = 1.5e-3, 150, 0.3, 200


def learn_tokenizer(stories):
    """Qwen2's tokenizer with a small vocabulary of its own, written without spaces."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    byte_level = dict(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(**byte_level)])
    tokenizer.decoder = decoders.ByteLevel(**byte_level)
    tokenizer.post_processor = processors.ByteLevel(**byte_level)
    tokenizer.train_from_iterator(stories[::20], trainers.BpeTrainer(
        vocab_size=VOCABULARY - 1, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_special_tokens([AddedToken(SEPARATOR, normalized=False, special=True)])
    text = json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":"))
    (HERE / "tokenizer.json").write_text(text + "\n", encoding="utf-8")
    return tokenizer


def prepare(training, work):
    """The tokenizer, and the training text as token numbers, kept in the work folder for the next run."""
    kept = work / "tokens.npy"
    if not kept.exists():
        stories = training.read_text(encoding="utf-8").split(SEPARATOR + "\n")[:-1]
        tokenizer = learn_tokenizer(stories)
        np.save(kept, np.concatenate([np.array(tokenizer.encode(story + SEPARATOR + "\n").ids, np.uint16) for story in stories]))
    return Tokenizer.from_file(str(HERE / "tokenizer.json")), np.load(kept)


def batch_of(tokens, beginnings, seen, rows, length):
    """The next rows of the stream, read once from its start; every second row is moved on to where a story begins."""
    starts = (seen + np.arange(rows) * length) % (len(tokens) - 2 * length)
    starts[::2] = beginnings[np.searchsorted(beginnings, starts[::2])]
    return torch.from_numpy(np.stack([tokens[start:start + length + 1] for start in starts]).astype(np.int64))


def rate_at(step, steps):
    """Warm-up, a plateau, and half a cosine down to nothing."""
    falling = max(0.0, (step / steps - 1 + FALL) / FALL)
    return PEAK_RATE * min(1.0, (step + 1) / WARM_UP) * 0.5 * (1 + math.cos(math.pi * falling))


def new_model(vocabulary):
    torch.manual_seed(SEED)
    return Qwen2ForCausalLM(Qwen2Config(
        vocab_size=vocabulary, max_position_embeddings=CONTEXT, rope_theta=10000.0, tie_word_embeddings=True, initializer_range=0.06,
        bos_token_id=vocabulary - 1, eos_token_id=vocabulary - 1, **SHAPE))


def learn(vocabulary, tokens, beginnings, work, steps):
    model = new_model(vocabulary)
    plain = [weight for weight in model.parameters() if weight.dim() < 2]
    decayed = [weight for weight in model.parameters() if weight.dim() >= 2]
    optimizer = torch.optim.AdamW([dict(params=decayed, weight_decay=0.1), dict(params=plain, weight_decay=0.0)], lr=PEAK_RATE,
                                  betas=(0.9, 0.99), fused=True)
    checkpoint, first, seen, spent = work / "checkpoint.pt", 0, 0, 0.0
    if checkpoint.exists():
        kept = torch.load(checkpoint)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first, seen, spent = kept["step"], kept["seen"], kept["spent"]
    clock, losses = time.process_time() - spent, []
    for step in range(first, steps):
        shape = LAST_ROWS if step >= (1 - LAST_STEPS) * steps else ROWS if seen >= FIRST_TOKENS else FIRST_ROWS
        batch = batch_of(tokens, beginnings, seen, *shape)
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, steps)
        logits = model(input_ids=batch[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        seen += batch[:, 1:].numel()
        losses.append(loss.item())
        if (step + 1) % CHECKPOINT_EVERY == 0 or step + 1 == steps:
            spent = time.process_time() - clock
            torch.save(dict(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step + 1, seen=seen, spent=spent),
                       checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").replace(checkpoint)
            print(f"step {step + 1} of {steps}, {seen} tokens, loss {np.mean(losses):.4f}, {spent:.0f} s of processor", flush=True)
            losses = []
    return model


def perplexity(model, ids):
    """Windows of the whole context, none carried over, the first token of each not scored: (perplexity, tokens scored)."""
    total, scored = 0.0, 0
    for start in range(0, len(ids), CONTEXT):
        window = torch.tensor([ids[start:start + CONTEXT]])
        logits = model(input_ids=window).logits[0, :-1]
        total += torch.nn.functional.cross_entropy(logits, window[0, 1:], reduction="none").double().sum().item()
        scored += window.shape[1] - 1
    return math.exp(total / scored), scored


def chosen(model, tokenizer, question):
    scores = []
    prefix = len(tokenizer.encode(question["query"]).ids)
    for choice in question["choices"]:
        ids = tokenizer.encode(question["query"] + " " + choice).ids
        logs = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
        scores.append(sum(logs[at - 1, ids[at]].item() for at in range(prefix, len(ids))))
    return scores.index(max(scores))


def wilson(right, count, z=1.96):
    share = right / count
    middle, half = share + z * z / 2 / count, z * math.sqrt(share * (1 - share) / count + z * z / 4 / count**2)
    return (middle - half) / (1 + z * z / count), (middle + half) / (1 + z * z / count)


def describe_channels(model, ids):
    """K as it enters the cache (after RoPE) and V, one line a layer: what an FP8 format would have to hold."""
    windows = [ids[start:start + CONTEXT] for start in range(0, len(ids), CONTEXT)]
    caches = [model(input_ids=torch.tensor([window]), use_cache=True).past_key_values for window in windows]
    for layer in range(SHAPE["num_hidden_layers"]):
        for name in ("keys", "values"):
            values = torch.cat([getattr(cache.layers[layer], name)[0] for cache in caches], 1)  # (head, token, dimension)
            largest = values.abs().amax(1).flatten()
            mean, deviation = values.mean(1).flatten(), values.std(1).flatten()
            print(f"layer {layer} {name}: amax {largest.max():.2f}, largest |mean|/deviation {(mean.abs() / deviation).max():.2f}, "
                  f"median {(mean.abs() / deviation).median():.2f}, largest channel amax / median channel amax "
                  f"{largest.max() / largest.median():.2f}, deviations {deviation.min():.3f} to {deviation.max():.3f}")


@torch.no_grad()
def judge():
    """The saved files, as anybody would load them: bf16 weights widened to float32."""
    from story import Story
    model = Qwen2ForCausalLM.from_pretrained(HERE, dtype=torch.float32).eval()
    tokenizer = Tokenizer.from_file(str(HERE / "tokenizer.json"))
    ids = tokenizer.encode((HERE / "text.txt").read_text(encoding="utf-8")).ids
    for count in (8192, len(ids)):
        value, scored = perplexity(model, ids[:count])
        print(f"text.txt, first {count} of {len(ids)} tokens: perplexity {value:.4f} over {scored} scored")
    questions = [json.loads(line) for line in (HERE / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    right = [chosen(model, tokenizer, question) == question["gold"] for question in questions]
    low, high = wilson(sum(right), len(right))
    print(f"questions: {sum(right)} of {len(right)} right, {100 * np.mean(right):.1f} %, interval {100 * low:.1f} to {100 * high:.1f} %")
    for number, kind in enumerate(Story.KINDS):
        print(f"  {kind.__name__}: {sum(right[number::len(Story.KINDS)])} of {len(right[number::len(Story.KINDS)])}")
    describe_channels(model, ids)


def main():
    parser = argparse.ArgumentParser(description="Trains and judges the toy model.")
    parser.add_argument("--training", type=pathlib.Path, metavar="FILE", help="text written by generate.py --training")
    parser.add_argument("--work", type=pathlib.Path, metavar="FOLDER", help="where tokens and checkpoint are kept")
    parser.add_argument("--steps", type=int, default=3700, help="optimizer steps (%(default)s)")
    parser.add_argument("--judge", action="store_true", help="judge the files that are saved")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.training:
        options.work.mkdir(parents=True, exist_ok=True)
        tokenizer, tokens = prepare(options.training, options.work)
        # A story begins two tokens after a separator: a line break stands between.
        beginnings = np.flatnonzero(tokens == tokenizer.token_to_id(SEPARATOR))[:-1] + 2
        model = learn(tokenizer.get_vocab_size(), tokens, beginnings, options.work, options.steps)
        model.to(torch.bfloat16).save_pretrained(HERE)
        (HERE / "generation_config.json").unlink(missing_ok=True)
    if options.judge:
        judge()


if __name__ == "__main__":
    main()
