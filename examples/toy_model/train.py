# Trains the toy model: a tokenizer and a small Qwen2 on the stories of generate.py, then judges what was saved.
# SPDX-License-Identifier: MIT
"""
    train.py --training FOLDER --practice FILE --work FOLDER    learn, and save tokenizer.json, config.json and model.safetensors here
    train.py --judge                                            perplexity, questions, and the K and V channels of the saved model

The work FOLDER keeps the weights after every course; a run that was broken off goes on from the last. One thread; README.md names
the versions.
"""

import argparse
import json
import math
import pathlib
import typing
import time

import numpy as np
import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import Qwen2Config, Qwen2ForCausalLM

from story import Story
from transformer import Decoder

HERE = pathlib.Path(__file__).resolve().parent
SEPARATOR = "<|endoftext|>"
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
VOCABULARY, CONTEXT, THETA, SEED = 624, 1024, 10000.0, 1
SHAPE = dict(hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2)


class Course(typing.NamedTuple):
    lesson: str  # the file, in the folder of training text
    steps: int
    rows: int
    length: int
    weight: float  # of a token that follows from the story, where others count 1
    matrix_rate: float  # Muon's, for the layers' matrices
    rate: float  # AdamW's, for embeddings, biases and norms
    warm_up: int
    fall: float  # over which last part of the course the rates fall to nothing
    first: int = 0  # the document to begin with


COURSES = (
    Course("echo", 300, 16, 128, 20, 0.02, 0.003, 100, 0),
    Course("echo", 200, 16, 128, 20, 0.02, 0.003, 1, 0, 9000),
    Course("first_pairs", 300, 16, 128, 10, 0.015, 0.002, 20, 0),
    Course("first_stories", 1300, 16, 128, 10, 0.015, 0.002, 20, 0),
    Course("stories", 1800, 8, 256, 5, 0.015, 0.002, 20, 0.6),
    Course("last_stories", 90, 4, 1024, 2, 0.006, 0.0008, 10, 1),
)


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


def documents_of(training, lesson):
    return (training / f"{lesson}.txt").read_text(encoding="utf-8").split(SEPARATOR + "\n")[:-1]


def plain(document):
    return document.replace("{", "").replace("}", "")


def answer_spans(document):
    """Where in the plain document the answers stand that are in braces."""
    spans, at = [], 0
    for number, piece in enumerate(document.split("{")):
        answer, brace, rest = piece.partition("}")
        if number:
            spans.append((at, at + len(answer)))
        at += len(answer) + len(rest)
    return spans


def prepare(training, lesson, tokenizer):
    """The lesson as token numbers, which of them belong to an answer, and where its documents begin."""
    tokens, answers, beginnings, count = [], [], [], 0
    for document in documents_of(training, lesson):
        encoded = tokenizer.encode(plain(document) + SEPARATOR + "\n")
        answer, spans, number = np.zeros(len(encoded.ids), bool), answer_spans(document), 0
        for token, (start, end) in enumerate(encoded.offsets):
            while number < len(spans) and spans[number][1] <= start:
                number += 1
            answer[token] = number < len(spans) and end > spans[number][0]
        beginnings.append(count)
        count += len(encoded.ids)
        tokens.append(np.array(encoded.ids, np.uint16))
        answers.append(answer)
    return np.concatenate(tokens), np.concatenate(answers), np.array(beginnings)


def rows_of(beginnings, total, course):
    """For every step where its rows start: each with a document, the next with the one that the last was cut off in."""
    at = course.first
    while True:
        starts = []
        for _ in range(course.rows):
            starts.append(beginnings[at])
            end = beginnings[at] + course.length + 1
            at = max(np.searchsorted(beginnings, end, "right") - 1, at + 1)
            if beginnings[at] + course.length + 1 >= total - course.length:
                at = 0
        yield np.array(starts)[:, None] + np.arange(course.length + 1)


def rate_at(step, course):
    falling = min(1.0, (1 - step / course.steps) / course.fall) if course.fall else 1.0
    return min(1.0, (step + 1) / course.warm_up) * falling


@torch.no_grad()
def practised(model, tokenizer, practice):
    """Shares of the practice questions that are answered right: all, and by kind. The first token of a choice decides."""
    right = []
    for question in practice:
        prefix = tokenizer.encode(question["query"]).ids
        firsts = [tokenizer.encode(question["query"] + " " + choice).ids[len(prefix)] for choice in question["choices"]]
        right.append(model(torch.tensor([prefix]))[0, -1, firsts].argmax().item() == question["gold"])
    return np.mean(right), [np.mean(right[number::len(Story.KINDS)]) for number in range(len(Story.KINDS))]


def loss_of(model, ids, weights):
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(ids[:, :-1], torch.bfloat16)
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten(), reduction="none")
    return (losses * weights[:, 1:].flatten()).sum() / weights[:, 1:].sum()


def learn(training, practice, work):
    tokenizer = learn_tokenizer([plain(document) for document in documents_of(training, COURSES[-1].lesson)])
    torch.manual_seed(SEED)
    config = Qwen2Config(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=CONTEXT, rope_theta=THETA,
                         tie_word_embeddings=True, bos_token_id=VOCABULARY - 1, eos_token_id=VOCABULARY - 1, **SHAPE)
    model = Decoder(config, THETA)
    matrices = [weight for name, weight in model.named_parameters() if weight.dim() == 2 and "embed" not in name]
    others = [weight for name, weight in model.named_parameters() if weight.dim() < 2 or "embed" in name]
    optimizers = [torch.optim.Muon(matrices, momentum=0.95, nesterov=True, weight_decay=0.0),
                  torch.optim.AdamW(others, betas=(0.9, 0.99), weight_decay=0.0, fused=True)]
    compiled, seen = torch.compile(loss_of, dynamic=False), 0
    for number, course in enumerate(COURSES):
        kept = work / f"course{number}.pt"
        if kept.exists():
            state = torch.load(kept)
            model.load_state_dict(state["model"])
            for optimizer, held in zip(optimizers, state["optimizers"]):
                optimizer.load_state_dict(held)
            seen = state["seen"]
            continue
        tokens, answers, beginnings = prepare(training, course.lesson, tokenizer)
        clock, rows, losses = time.process_time(), rows_of(beginnings, len(tokens), course), []
        for step in range(course.steps):
            places = next(rows)
            weights = torch.from_numpy(np.where(answers[places], course.weight, 1.0).astype(np.float32))
            for optimizer, peak in zip(optimizers, (course.matrix_rate, course.rate)):
                for group in optimizer.param_groups:
                    group["lr"] = peak * rate_at(step, course)
            loss = compiled(model, torch.from_numpy(tokens[places].astype(np.int64)), weights)
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
            seen += course.rows * course.length
            losses.append(loss.item())
        spent = time.process_time() - clock
        share, kinds = practised(model, tokenizer, practice)
        print(f"{course.lesson}: {course.steps} steps, {seen} tokens so far, {spent:.0f} s of processor, weighted loss of the last 100 "
              f"steps {np.mean(losses[-100:]):.4f}, practice {100 * share:.1f} % right, by kind "
              + " ".join(f"{kind.__name__} {100 * right:.0f}" for kind, right in zip(Story.KINDS, kinds)), flush=True)
        torch.save(dict(model=model.state_dict(), optimizers=[optimizer.state_dict() for optimizer in optimizers], seen=seen), kept)
    save(config, model.state_dict())


def save(config, weights):
    """As transformers writes a Qwen2, in bf16."""
    model = Qwen2ForCausalLM(config)
    missing = model.load_state_dict(weights, strict=False)
    if missing.unexpected_keys or set(missing.missing_keys) - {"lm_head.weight"}:
        raise SystemExit(f"the weights do not fit Qwen2: {missing}")
    model.tie_weights()
    model.to(torch.bfloat16).save_pretrained(HERE)
    (HERE / "generation_config.json").unlink(missing_ok=True)


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
        scores.append(sum(logs[at - 1, ids[at]].item() for at in range(prefix, len(ids))) / len(choice.encode()))
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
    parser.add_argument("--training", type=pathlib.Path, metavar="FOLDER", help="text written by generate.py --training")
    parser.add_argument("--practice", type=pathlib.Path, metavar="FILE", help="questions written by generate.py --practice")
    parser.add_argument("--work", type=pathlib.Path, metavar="FOLDER", help="where the weights are kept after every course")
    parser.add_argument("--judge", action="store_true", help="judge the files that are saved")
    options = parser.parse_args()
    if options.training and not (options.practice and options.work):
        parser.error("--training needs --practice and --work")
    torch.set_num_threads(1)
    if options.training:
        options.work.mkdir(parents=True, exist_ok=True)
        practice = [json.loads(line) for line in options.practice.read_text(encoding="utf-8").splitlines()]
        learn(options.training, practice, options.work)
    if options.judge:
        judge()


if __name__ == "__main__":
    main()
