# Writes what the toy model learns from and is judged by: training text, held-out text and cloze questions.
# SPDX-License-Identifier: MIT
"""
    generate.py --held-out FOLDER           text.txt and questions.jsonl
    generate.py --practice FILE             540 more questions, to look at while the model learns
    generate.py --training FOLDER           what to learn from, one file a course of lessons.py; no held-out story is in it

The same words come out on every Python from 3.9 on.
"""

import argparse
import json
import pathlib

from draws import Draws
from lessons import COURSES
from story import NUMBERS, Story, capital, tell_story

SEPARATOR = "<|endoftext|>"
TEXT_SEED, QUESTION_SEED, PRACTICE_SEED = 2, 3, 4
TEXT_BYTES, QUESTIONS, PRACTICE_QUESTIONS, CHOICES = 60_000, 171, 540, 4
OPENING = 200  # characters; a story to learn from that begins as a held-out one does is left out


def held_out_documents():
    draws, documents, size = Draws(TEXT_SEED), [], 0
    while True:
        documents.append(tell_story(draws).replace("{", "").replace("}", "") + f"\n{SEPARATOR}\n")
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


def questions(seed, count):
    draws = Draws(seed)
    return [question(draws, Story.KINDS[number % len(Story.KINDS)]) for number in range(count)]


def lines(asked):
    return "".join(json.dumps(one) + "\n" for one in asked)


def main():
    parser = argparse.ArgumentParser(description="Writes the toy model's texts and questions.")
    parser.add_argument("--held-out", type=pathlib.Path, metavar="FOLDER", help="write text.txt and questions.jsonl into FOLDER")
    parser.add_argument("--practice", type=pathlib.Path, metavar="FILE", help="write other questions of the same kinds to FILE")
    parser.add_argument("--training", type=pathlib.Path, metavar="FOLDER", help="write text to learn from into FOLDER")
    options = parser.parse_args()
    if options.held_out:
        (options.held_out / "text.txt").write_text("".join(held_out_documents()), encoding="utf-8")
        (options.held_out / "questions.jsonl").write_text(lines(questions(QUESTION_SEED, QUESTIONS)), encoding="utf-8")
    if options.practice:
        options.practice.write_text(lines(questions(PRACTICE_SEED, PRACTICE_QUESTIONS)), encoding="utf-8")
    if options.training:
        options.training.mkdir(parents=True, exist_ok=True)
        unseen = {told[:OPENING] for told in held_out_documents()}
        unseen |= {asked["query"][:OPENING] for asked in questions(QUESTION_SEED, QUESTIONS)}
        for name, (tell, seed, count) in COURSES.items():
            draws = Draws(seed)
            with (options.training / f"{name}.txt").open("w", encoding="utf-8") as file:
                for told in (tell(draws) for _ in range(count)):
                    if told[:OPENING] not in unseen:
                        file.write(f"{told}\n{SEPARATOR}\n")


if __name__ == "__main__":
    main()
