# Choices for the toy model's texts that come out the same on every Python.
# SPDX-License-Identifier: MIT
import random


class Draws:
    """Made from random() alone: Python promises its sequence for a seed, and promises it for no other method."""

    def __init__(self, seed):
        self.uniform = random.Random(seed).random

    def below(self, count):
        return int(self.uniform() * count)

    def chance(self, probability):
        return self.uniform() < probability

    def one(self, options):
        return options[self.below(len(options))]

    def some(self, options, count):
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in range(count)]
