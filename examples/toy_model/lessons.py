# What the toy model practises before and beside whole stories: words said again, pairs, small worlds, stories with many questions.
# SPDX-License-Identifier: MIT
"""Each function tells one document; what follows from the words before it stands in braces."""

from story import (COLOURS, INDOORS, MEN, NOUNS, OUTDOORS, TRADES, WOMEN, capital, tell_lesson, tell_story)

WORDS = WOMEN + MEN + TRADES + COLOURS + INDOORS + OUTDOORS + NOUNS
LINKS = " ", " in ", " was in the ", " went to the ", " was now in the ", " had the ", " was with ", " the "


def echo(draws):
    """Words without sense, said again: what comes after a word is what came after it before."""
    words = capital(" ".join(draws.some(WORDS, 6 + draws.below(14))))
    return f"{words}. {{{words}.}} {{{words}.}}"


def pairs(draws):
    """Words in pairs that are asked for again, from either side, and now and then paired anew: the latest holds."""
    count = 2 + draws.below(4)
    keys, values = draws.some(WORDS, count), draws.some(WORDS, count + 2)
    fact = draws.one(LINKS)
    query = fact if draws.chance(0.4) else draws.one(LINKS)
    back = draws.chance(0.3)
    now, told = {}, []

    def pair(key):
        now[key] = draws.one([value for value in values if value not in now.values()] if back else values)
        told.append(f"{key}{fact}{now[key]}.")

    for key in keys:
        pair(key)
    for _ in range(10 + draws.below(8)):
        key = draws.one(keys)
        if draws.chance(0.15):
            pair(key)
        elif back:
            told.append(f"{now[key]}{query}{{{key}}}.")
        else:
            told.append(f"{key}{query}{{{now[key]}}}.")
    return " ".join(told)


def world(draws):
    """People who move and things that change hands, asked about after every other sentence."""
    people, things = draws.some(WOMEN + MEN, 2 + draws.below(3)), draws.some(NOUNS, 1 + draws.below(3))
    trades = dict(zip(people, draws.some(TRADES, len(people))))
    places = draws.some(INDOORS + OUTDOORS, 3 + draws.below(2))
    where, holder, told = {}, {}, []
    for person, trade in trades.items():
        where[person] = draws.one(places)
        told.append(draws.one((f"{person} the {trade} was in the {where[person]}.",
                               f"In the {where[person]} was {person} the {trade}.")))
    for thing in things:
        holder[thing] = draws.one(people)
        told.append(f"{holder[thing]} had the {thing}.")
    for _ in range(8 + draws.below(8)):
        person, thing, lot = draws.one(people), draws.one(things), draws.below(10)
        if lot < 2:
            where[person] = draws.one(places)
            told.append(f"{person} went to the {where[person]}.")
        elif lot == 2:
            holder[thing] = person
            told.append(f"{person} took the {thing}.")
        elif lot < 5:
            told.append(f"{person} was now in the {{{where[person]}}}.")
        elif lot < 7:
            told.append(f"The {thing} now belonged to {{{holder[thing]}}}.")
        elif lot == 7:
            told.append(f"The {thing} was now in the {{{where[holder[thing]]}}}.")
        else:
            told.append(f"The {trades[person]} was {{{person}}}.")
    return " ".join(told)


def first_pairs(draws):
    return echo(draws) if draws.chance(0.25) else pairs(draws) if draws.chance(0.67) else world(draws)


def first_stories(draws):
    if draws.chance(0.08):
        return echo(draws)
    if draws.chance(0.2):
        return pairs(draws)
    if draws.chance(0.4):
        return world(draws)
    return tell_lesson(draws, 2 + draws.below(2), 1 + draws.below(2), 2 * draws.below(2), 8)


def stories(draws):
    return tell_story(draws) if draws.chance(0.2) else tell_lesson(draws, 2 + draws.below(3), 2 + draws.below(3), 9, 10)


def last_stories(draws):
    return tell_story(draws) if draws.chance(0.4) else tell_lesson(draws, 3 + draws.below(2), 3 + draws.below(2), 12, 10)


# name: what tells a document, the seed, how many documents
COURSES = {
    "echo": (echo, 11, 16_000),
    "first_pairs": (first_pairs, 17, 30_000),
    "first_stories": (first_stories, 18, 36_000),
    "stories": (stories, 15, 70_000),
    "last_stories": (last_stories, 16, 40_000),
}
