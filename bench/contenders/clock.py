# Times the contenders in turn on a noisy machine: batches one after the other, medians, and ratios within a round.
# SPDX-License-Identifier: MIT
import statistics
import time


def seconds(call, calls):
    """Of this process on its processor: while other programs have it, this clock stands still."""
    begin = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - begin) / calls


class Clock:
    """batch: seconds that a batch should take. rounds: how often each contender's turn comes. patience: seconds after
    which a slow one's turns end, though not before the third."""

    def __init__(self, batch, rounds, patience):
        self.batch, self.rounds, self.patience = batch, rounds, patience

    def calls(self, call):
        once = seconds(call, 1)  # cold
        if once < self.batch:
            once = seconds(call, 1)
        if once < self.batch / 10:
            once = seconds(call, 10)
        return max(1, int(self.batch / max(once, 1e-9)))

    def fastest(self, variants):
        """The best of (name, call) by its least of three times; those far behind drop out after the first."""
        if len(variants) == 1:
            return variants[0]
        calls = [self.calls(call) for _, call in variants]
        least = [seconds(call, n) for (_, call), n in zip(variants, calls)]
        for i in [i for i, t in enumerate(least) if t < 1.5 * min(least)] * 2:
            least[i] = min(least[i], seconds(variants[i][1], calls[i]))
        return variants[least.index(min(least))]

    def race(self, calls_by_name, first):
        """Medians of seconds a call by name, and medians of the ratios to `first`, each within a round."""
        calls = {name: self.calls(call) for name, call in calls_by_name.items()}
        taken = {name: [] for name in calls}
        for turn in range(self.rounds):
            for name, call in calls_by_name.items():
                if turn < 3 or sum(taken[name]) * calls[name] < self.patience:
                    taken[name].append(seconds(call, calls[name]))
        medians = {name: statistics.median(times) for name, times in taken.items()}
        ratios = {
            name: statistics.median(mine / theirs for mine, theirs in zip(times, taken[first]))
            for name, times in taken.items()
        }
        return medians, ratios
