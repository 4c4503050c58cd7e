# The toy model's story grammar: a small world that is kept track of, what can happen in it, and what can be asked about it.
# SPDX-License-Identifier: MIT
"""People with a trade and a garment, places, things that are carried about, handed over and stolen, fruit that is counted, rain that
wets whoever is outside. A sentence is told only if the world allows it, and the world changes with it, so a reader who keeps track can
answer whatever the story asks later.
"""

FEWEST_WORDS, MOST_WORDS = 60, 200

WOMEN = "Ann Bea Cleo Dora Eve Flo Ida Joan Kate Lily Mia Nora".split()
MEN = "Adam Ben Carl Dan Erik Fred Gus Hugo Ivan Leo Max Tom".split()
TRADES = "baker cook farmer hunter miller nurse sailor singer smith tailor".split()
COLOURS = "red blue green white black grey brown pink".split()
GARMENTS = "hat coat cap scarf shirt vest".split()
OUTDOORS = "park field yard lane wood garden market".split()
INDOORS = "barn mill shop inn hall attic school cellar kitchen".split()
QUALITIES = "old new small big dusty plain heavy fine".split()
NOUNS = "ball book cup lamp key bell drum flute rope map bowl box coin doll pipe saw jug kite spoon mirror".split()
FRUIT = "apple pear plum egg nut bun".split()
NUMBERS = "no one two three four five six seven".split()
THIEVES = "crow dog cat goat fox".split()
SKIES = "cold warm bright grey windy clear".split()
HOURS = "morning day".split()
ENDINGS = ("That was the end of the day.", "Then the sun went down.", "Then they all went home.", "It had been a good day.",
           "Then it was time for bed.")


class Person:
    def __init__(self, name, trade, garment, place):
        self.name, self.trade, self.garment, self.place = name, trade, garment, place
        self.he, self.him = ("she", "her") if name in WOMEN else ("he", "him")
        self.fruit, self.count = None, 0
        self.cause = None  # why the person feels so: (feeling, words before the answer, answer, what the answer could be)


def a(phrase):
    return ("an " if phrase[0] in "aeiou" else "a ") + phrase


def counted(number, fruit):
    return f"{NUMBERS[number]} {fruit}{'' if number == 1 else 's'}"


def capital(sentence):
    return sentence[0].upper() + sentence[1:]


class Story:
    """The sentences told so far, and the world as they leave it."""

    def __init__(self, draws, people, things):
        self.draws, self.told, self.subject, self.rained = draws, [], None, False
        self.asked = set()  # what has been asked since something happened
        self.places = draws.some(INDOORS, people // 2 + 1) + draws.some(OUTDOORS, (people + 1) // 2)
        women = draws.below(people + 1)
        names = draws.some(draws.some(WOMEN, women) + draws.some(MEN, people - women), people)
        garments = map(" ".join, zip(draws.some(COLOURS, people), draws.some(GARMENTS, people)))
        self.people = [Person(*facts, draws.one(self.places)) for facts in zip(names, draws.some(TRADES, people), garments)]
        self.names = names
        self.things = draws.some(NOUNS, things)
        self.holder = {}  # thing: the person who carries it, or the place where it lies
        self.giver = {}  # thing: the person who handed it to its holder, or None
        self.introduce()

    def words(self):
        return sum(len(sentence.split()) for sentence in self.told)

    def place_of(self, thing):
        return getattr(self.holder[thing], "place", self.holder[thing])

    def carried_by(self, person):
        return [thing for thing in self.things if self.holder[thing] is person]

    def beside(self, person):
        return [other for other in self.people if other is not person and other.place == person.place]

    def elsewhere(self, person):
        return self.draws.one([place for place in self.places if place != person.place])

    def tell(self, subject, *ways):
        """One of several ways to say it; a pronoun in the next sentence means the subject."""
        self.told.append(capital(self.draws.one(ways)))
        self.subject = subject

    def call(self, person):
        if person is self.subject and self.draws.chance(0.6):
            return person.he
        return "the " + person.trade if self.draws.chance(0.12) else person.name

    def move(self, thing, holder, giver=None):
        self.holder[thing], self.giver[thing] = holder, giver

    def introduce(self):
        draws = self.draws
        self.tell(None, f"it was {a(draws.one(SKIES))} {draws.one(HOURS)}.")
        for person in self.people:
            name, trade, garment, place = person.name, person.trade, a(person.garment), person.place
            self.tell(person, f"{name} the {trade}, in {garment}, was in the {place}.",
                      f"in the {place} was {name} the {trade}, who wore {garment}.",
                      f"{name}, {a(trade)} in {garment}, was in the {place}.")
            if draws.chance(0.35):
                person.fruit, person.count = draws.one(FRUIT), 3 + draws.below(4)
                self.tell(person, f"{self.call(person)} had {counted(person.count, person.fruit)}.")
        for thing in self.things:
            self.move(thing, draws.one(self.people if draws.chance(0.5) else self.places))
            seen = a(draws.one(QUALITIES) + " " + thing)
            if self.holder[thing] in self.people:
                who = self.call(self.holder[thing])
                self.tell(self.holder[thing], f"{who} had {seen}.", f"{who} carried {seen}.")
            else:
                self.tell(None, f"there was {seen} in the {self.holder[thing]}.", f"{seen} lay in the {self.holder[thing]}.")

    # What can happen. Each event tells what the world allows now and changes it, or tells nothing.

    def go(self, person):
        load, start, end, who = self.carried_by(person), person.place, self.elsewhere(person), self.call(person)
        person.place = end
        if load and self.draws.chance(0.3):
            thing = self.draws.one(load)
            self.tell(person, f"{who} carried the {thing} to the {end}.", f"{who} took the {thing} along to the {end}.")
        else:
            self.tell(person, f"{who} went to the {end}.", f"then {who} walked to the {end}.", f"soon {who} ran to the {end}.",
                      f"{who} left the {start} and went to the {end}.", f"from the {start}, {who} hurried to the {end}.")
        if self.beside(person) and self.draws.chance(0.3):
            met = self.draws.one(self.beside(person))
            self.tell(met, f"{met.name} was there too.", f"{met.name} was already there.")

    def go_together(self, person):
        if self.beside(person):
            other, end = self.draws.one(self.beside(person)), self.elsewhere(person)
            self.tell(None, f"{self.call(person)} and {other.name} went to the {end} together.")
            person.place = other.place = end

    def take(self, person):
        lying = [thing for thing in self.things if self.holder[thing] == person.place]
        if lying:
            thing, who = self.draws.one(lying), self.call(person)
            self.tell(person, f"{who} picked up the {thing}.", f"{who} saw the {thing} and took it.",
                      f"in the {person.place}, {who} found the {thing} and kept it.")
            self.move(thing, person)

    def put_down(self, person):
        if self.carried_by(person):
            thing, who = self.draws.one(self.carried_by(person)), self.call(person)
            self.tell(person, f"{who} put the {thing} down.", f"{who} left the {thing} in the {person.place}.")
            self.move(thing, person.place)

    def give(self, person):
        if self.carried_by(person) and self.beside(person):
            thing, other, who = self.draws.one(self.carried_by(person)), self.draws.one(self.beside(person)), self.call(person)
            self.tell(person, f"{who} gave the {thing} to {other.name}.", f"{who} handed {other.name} the {thing}.")
            self.move(thing, other, person)
            other.cause = "glad", f"{person.name} had given {other.him} the", thing, self.things

    def share(self, person):
        others = [other for other in self.beside(person) if other.count == 0 or other.fruit == person.fruit and other.count < 5]
        if person.count > 1 and others:
            other, number = self.draws.one(others), 1 + self.draws.below(min(person.count - 1, 2))
            self.tell(person, f"{self.call(person)} gave {counted(number, person.fruit)} to {other.name}.")
            other.fruit, other.count, person.count = person.fruit, other.count + number, person.count - number

    def eat(self, person):
        if person.count > 1:
            number = 1 + self.draws.below(min(person.count - 1, 2))
            self.tell(person, f"{self.call(person)} was hungry and ate {counted(number, person.fruit)}.")
            person.count -= number

    def lose(self, person):
        if self.carried_by(person):
            thing, thief, end = self.draws.one(self.carried_by(person)), self.draws.one(THIEVES), self.elsewhere(person)
            self.tell(None, f"{a(thief)} took the {thing} from {person.name} and dropped it in the {end}.")
            self.move(thing, end)
            person.cause = "sad", f"the {thief} had taken the", thing, self.things

    def rain(self, _):
        outside = [person for person in self.people if person.place in OUTDOORS]
        if outside and not self.rained:
            self.rained = True
            self.tell(None, "it began to rain, but not for long.", "then it rained for a while.")
            for person in outside:
                person.cause = "wet", "it had rained in the", person.place, self.places

    EVENTS = (go,) * 7 + (take,) * 6 + (give,) * 5 + (share,) * 3 + (put_down,) * 2 + (go_together, eat, lose, rain)

    def happen(self):
        self.asked.clear()
        before = len(self.told)
        while len(self.told) == before:
            self.draws.one(self.EVENTS)(self, self.draws.one(self.people))

    # What can be asked: (words before the answer, the answer, words after it, what the answer could be), or None.

    def pose(self, statements, asked, reply, about, answer, choices, after=""):
        """A statement, or now and then the talk of two who stand together and are not the one it is about; nothing twice
        before something happens."""
        if asked in self.asked:
            return None
        self.asked.add(asked)
        talks = [(one, other) for one in self.people for other in self.beside(one) if about not in (one, other)]
        if talks and self.draws.chance(0.4):
            one, other = self.draws.one(talks)
            return f'"{asked}" asked {one.name}. "{reply}', answer, f'{after}," said {other.name}.', choices
        return self.draws.one(statements), answer, after + ".", choices

    def where_person(self):
        person = self.draws.one(self.people)
        return self.pose([f"By now {person.name} was in the", f"{person.name} was now in the"], f"Where is {person.name}?",
                         f"{capital(person.he)} is in the", person, person.place, self.places)

    def where_thing(self, carried):
        things = [thing for thing in self.things if (self.holder[thing] in self.people) == carried]
        if things:
            thing = self.draws.one(things)
            return self.pose([f"By now the {thing} was in the", f"the {thing} was now in the"], f"Where is the {thing}?",
                             "It is in the", self.holder[thing], self.place_of(thing), self.places)

    def where_lying(self):
        return self.where_thing(False)

    def where_carried(self):
        return self.where_thing(True)

    def who_has(self):
        things = [thing for thing in self.things if self.holder[thing] in self.people]
        if things:
            thing = self.draws.one(things)
            holder = self.holder[thing]
            return self.pose([f"By now the {thing} was with", f"the {thing} now belonged to"], f"Who has the {thing}?", "It is with",
                             holder, holder.name, self.names)

    def what_has(self):
        carriers = [person for person in self.people if len(self.carried_by(person)) == 1]
        if carriers:
            person = self.draws.one(carriers)
            return self.pose([f"By now {person.name} had the", f"{person.name} now carried the"], f"What does {person.name} have?",
                             f"{capital(person.he)} has the", person, self.carried_by(person)[0], self.things)

    def who_is(self):
        person = self.draws.one(self.people)
        return self.pose([f"the one in the {person.garment} was", f"the {person.trade} was"], f"Who is the {person.trade}?",
                         "It is", person, person.name, self.names)

    def who_gave(self):
        things = [thing for thing in self.things if self.giver[thing]]
        if things:
            thing = self.draws.one(things)
            holder, giver = self.holder[thing], self.giver[thing]
            return self.pose([f"{holder.name} had the {thing} from"], f"Who gave {holder.name} the {thing}?", "It came from", giver,
                             giver.name, self.names)

    def how_many(self):
        owners = [person for person in self.people if person.count]
        if owners:
            person = self.draws.one(owners)
            number, fruit = counted(person.count, person.fruit).split()
            return self.pose([f"By now {person.name} had", f"{person.name} now had"],
                             f"How many {person.fruit}s does {person.name} have?", f"{capital(person.he)} has", person, number,
                             NUMBERS[1:7], " " + fruit)

    def why(self):
        moved = [person for person in self.people if person.cause]
        if moved:
            person = self.draws.one(moved)
            feeling, because, answer, choices = person.cause
            return self.pose([f"{person.name} was {feeling} because {because}"], f"Why is {person.name} {feeling}?",
                             f"Because {because}", person, answer, choices)

    KINDS = (where_person, where_lying, where_carried, who_has, what_has, who_is, who_gave, how_many, why)

    def ask(self, kind):
        """Asks and answers, with the answer in braces."""
        posed = kind(self)
        if posed:
            self.tell(None, f"{posed[0]} {{{posed[1]}}}{posed[2]}")


def tell_story(draws):
    """A story with questions answered on the way and at its end; answers stand in braces."""
    while True:
        story = Story(draws, 2 + draws.below(3), 2 + draws.below(3))
        length = FEWEST_WORDS + draws.below(80)
        while story.words() < length:
            story.happen()
            if draws.chance(0.45):
                story.ask(draws.one(Story.KINDS))
        for _ in range(1 + draws.below(4)):
            story.ask(draws.one(Story.KINDS))
        story.tell(None, *ENDINGS)
        if story.words() <= MOST_WORDS:
            return " ".join(story.told)


def tell_lesson(draws, people, things, most_events, questions):
    """A story that is over before the questions begin, and then has many."""
    story = Story(draws, people, things)
    for _ in range(1 + draws.below(most_events) if most_events else 0):
        story.happen()
    for _ in range(questions):
        story.ask(draws.one(Story.KINDS))
    return " ".join(story.told)
