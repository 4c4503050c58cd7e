# Writes what the toy model learns from and is judged by: training text, held-out text and cloze questions.
# SPDX-License-Identifier: MIT
"""
    generate.py --held-out FOLDER           text.txt and questions.jsonl
    generate.py --training FILE             text to learn from, short stories first; no story of text.txt is among it

The same words come out on every Python from 3.9 on.
"""

import argparse
import json
import pathlib

from draws import Draws
from story import NUMBERS, Story, capital, tell_story

SEPARATOR = "<|endoftext|>"
TRAINING_SEED, TEXT_SEED, QUESTION_SEED = 1, 2, 3
TEXT_BYTES, QUESTIONS, CHOICES = 60_000, 171, 4


def document(draws, short=False):
    return tell_story(draws, short) + f"\n{SEPARATOR}\n"


def held_out_documents():
    draws, documents, size = Draws(TEXT_SEED), [], 0
    while True:
        documents.append(document(draws))
        size += len(documents[-1])
        if size > TEXT_BYTES:
            return documents[:-1]


def question(draws, kind):
    """A story broken off before an answer. The choices other than number words all occur in it."""
    while True:
        story = Story(draws, 4, 4)
        length = 110 + draws.below(50)
        while story.words() < length:
            story.happen()
        posed = kind(story)
        if posed is None:
            continue
        before, answer, _, possible = posed
        query = " ".join(story.told + [capital(before)])
        others = [choice for choice in possible if choice != answer and (choice in NUMBERS or f" {choice}" in query)]
        if len(others) >= CHOICES - 1:
            choices = draws.some([answer] + draws.some(others, CHOICES - 1), CHOICES)
            return {"query": query, "choices": choices, "gold": choices.index(answer)}


def main():
    parser = argparse.ArgumentParser(description="Writes the toy model's texts and questions.")
    parser.add_argument("--held-out", type=pathlib.Path, metavar="FOLDER", help="write text.txt and questions.jsonl into FOLDER")
    parser.add_argument("--training", type=pathlib.Path, metavar="FILE", help="write text to learn from to FILE")
    parser.add_argument("--stories", type=int, default=150_000, help="how many stories to learn from (%(default)s)")
    parser.add_argument("--short", type=int, default=40_000, help="how many of them, the first, are short (%(default)s)")
    options = parser.parse_args()
    if options.held_out:
        (options.held_out / "text.txt").write_text("".join(held_out_documents()), encoding="utf-8")
        draws = Draws(QUESTION_SEED)
        asked = [question(draws, Story.KINDS[number % len(Story.KINDS)]) for number in range(QUESTIONS)]
        (options.held_out / "questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf-8")
    if options.training:
        draws, unseen = Draws(TRAINING_SEED), set(held_out_documents())
        with options.training.open("w", encoding="utf-8") as file:
            for number in range(options.stories):
                told = document(draws, number < options.short)
                if told not in unseen:
                    file.write(told)


if __name__ == "__main__":
    main()
