"""The features of a row: a mention and what it may be. No Spark.

`FEATURES` is the table of all of them; `feature_matrix` computes them for a batch. In what follows
m is the mention, e the entity of the row, c the links counted in the lexicon, by kind
(`knowledge_names.LINK_KINDS`), k the kinds of names (`NAME_KINDS` there). Features of m are the
same in all its rows; those of e are 0 in the row of Nil.

Source: Yang and Chang 2015, section 4.2, name their sorts (base statistics, capitalisation rate,
popularity, context capitalisation, entity type, NER type); the formulas are ours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpusmill.corpora.knowledge_names import LINK_KINDS, NAME_KINDS, TYPES
from corpusmill.evaluation.linking import NIL
from corpusmill.linking import kernels
from corpusmill.linking.candidates import Mentions
from corpusmill.linking.folding import DIGIT, LETTER, LOWER, UPPER
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.lexicon import has_name, written_as
from corpusmill.linking.tokens import CLITIC, HASHTAG, USER
from corpusmill.linking.units import LONGEST, Units
from corpusmill.linking.words import BACKGROUNDS
from corpusmill.types import AnyArray, Flags, Floats

_SMALL = 0.1
"""Added to counts before they are divided, so that what was never seen is no 0 / 0."""


class Feature(NamedTuple):
    """A line of the table.

    Attributes
    ----------
    name : str
        Its name in a model.
    sort : str
        The paper's sort of feature, or "ours".
    formula : str
        What it is; [..] is 1 where it holds, else 0.
    """

    name: str
    sort: str
    formula: str


_WORDS = [
    (f"{name}_{background}", sort, f"{formula} in the {background}")
    for background in BACKGROUNDS
    for name, sort, formula in (
        ("rarest_word", "base", "log(1 + least count of the words of m)"),
        ("commonest_word", "base", "log(1 + largest count of the words of m)"),
        ("lowest_capital_rate", "capitalisation rate", "least rate of a capital of the words of m"),
        ("mean_capital_rate", "capitalisation rate", "mean rate of a capital of the words of m"),
        ("count", "base", "log(1 + count of m)"),
        ("capital_rate", "capitalisation rate", "rate of a capital first of m"),
        ("link_rate", "base", "links of m / (links of m + count of m + 1)"),
    )
]
_INSIDE = [
    ("has_first_name", "NER type", "[first word of m is a first name]"),
    ("has_last_name", "NER type", "[last word of m is a last name]"),
    *(
        (f"has_{name}", "NER type", f"[a word of m is in the list {name}]")
        for name in ("date", "organization", "location", "event", "product")
    ),
]
_BEFORE = ("rank", "place_preposition", "other_preposition", "agent_preposition")
_BESIDE = [
    *(
        (f"after_{name}", "ours", f"[the word before m is in the list {name}]")
        for name in (*_BEFORE, "determiner", "retweet")
    ),
    ("before_type_word", "NER type", "[word after m: list organization, location, event, product]"),
    ("possessive", "ours", "[a possessive follows m]"),
]
_TABLE = [
    ("characters", "base", "characters of m"),
    ("words", "base", "units of m"),
    *((f"links_{kind}", "base", f"log(1 + c_{kind}(m)), all entities") for kind in LINK_KINDS),
    ("candidates", "base", "candidates of m in the lexicon, 1,000 at most"),
    ("largest_share", "base", "max over e of p_text(e | m)"),
    ("entropy", "base", "-sum p log p, p proportional to p_text(e | m) of the rows' entities"),
    *_WORDS,
    ("common", "base", "[m is in the dictionary]"),
    ("all_common", "base", "[every word of m is in the dictionary]"),
    ("capital_first", "capitalisation", "[m begins with a capital]"),
    ("capitals_all", "capitalisation", "[every word of m begins with a capital or no letter]"),
    ("upper", "capitalisation", "[m has capitals and no small letter]"),
    ("digits", "capitalisation", "digits of m / characters of m"),
    ("written_alike", "capitalisation", "share of the links of m that are written as m is"),
    ("text_capitals", "context capitalisation", "share of the text's units with a capital first"),
    ("text_upper", "context capitalisation", "share of the text's units with capitals only"),
    ("before_capital", "context capitalisation", "[unit before: capital first], -1 without one"),
    ("after_capital", "context capitalisation", "[unit after: capital first], -1 without one"),
    ("initial", "context capitalisation", "[m may begin a sentence]"),
    ("hashtag", "NER type", "[m is in a hashtag]"),
    ("user", "NER type", "[m is in a user name]"),
    ("whole_name", "NER type", "[m is a hashtag or user name as a whole]"),
    *_INSIDE,
    *_BESIDE,
    ("position", "ours", "units before m / units of the text"),
    ("units", "ours", "units of the text"),
    ("containing", "ours", "mention candidates that contain m"),
    ("overlapping", "ours", "mention candidates that share a unit with m"),
    ("cut", "ours", '[an "s" was taken off]'),
    ("nil", "base", "[e is Nil]"),
    ("rank", "base", "place of e by prior, from 1"),
    ("behind", "base", "prior of the first candidate - prior(e)"),
    ("prior", "base", "prior(m, e), see the lexicon"),
    ("share_text", "base", "p_text(e | m) = (c_text(m, e) + 0.1) / (c_text(m) + 1)"),
    ("share_short", "base", "p_short(e | m), likewise"),
    *((f"pair_{kind}", "base", f"log(1 + c_{kind}(m, e))") for kind in LINK_KINDS),
    ("sources", "base", "kinds of rows that have (m, e)"),
    *((f"by_{kind}", "base", f"[{kind} in k(m, e)]") for kind in NAME_KINDS),
    ("in_links", "popularity", "log(1 + links to e in all of Wikipedia), where known"),
    ("out_links", "popularity", "log(1 + links from e), where known"),
    ("popularity", "popularity", "popularity of e, where known"),
    ("in_links_share", "popularity", "in_links of e / (1 + sum over the rows of m), unlogged"),
    ("popularity_share", "popularity", "exp(popularity) of e / sum over the rows of m"),
    ("popular", "popularity", "[e is in a list of widely read articles]"),
    ("fame", "popularity", "a person's index of fame"),
    ("views", "popularity", "log(1 + views), where known"),
    ("in_degree", "popularity", "log(1 + in-links of e in the link tables)"),
    ("entity_links", "popularity", "log(1 + c_text(e) + 3 c_short(e)), all surfaces"),
    *((f"is_{name}", "entity type", f"[e is of the type {name}]") for name in TYPES),
    ("distance", "ours", "Levenshtein(m, title of e) / longer of both, keys without (...)"),
    ("same", "ours", "[key of m = key of the title of e]"),
    ("beginning", "ours", "common beginning of m and the title of e / |m|"),
    ("initials", "ours", "[m = first letters of the title's words]"),
    ("title_characters", "ours", "characters of the title of e, folded, without (...)"),
    ("longer_title", "ours", "[the title of e has a (...)]"),
]
FEATURES = tuple(Feature(*line) for line in _TABLE)
"""All features, in the order of the matrix."""
FEATURE_NAMES = tuple(feature.name for feature in FEATURES)


def feature_matrix(units: Units, mentions: Mentions, knowledge: Knowledge) -> Floats:
    """Compute all features of all rows.

    Parameters
    ----------
    units
        Of the texts.
    mentions
        Their candidates.
    knowledge
        The same as `mentions` was made with.

    Returns
    -------
    Floats, shape (rows, features)

    Notes
    -----
    O(rows * features), and O(|m| |title|) a row for the edit distance.
    """
    of_mention = {
        **_counts(mentions, knowledge),
        **_background(units, mentions, knowledge),
        **_writing(units, mentions, knowledge),
        **_context(units, mentions, knowledge),
        **_lists(units, mentions, knowledge),
    }
    of_row = {**_pairs(mentions, knowledge), **_entities(units, mentions, knowledge)}
    # Needs what stands in the rows: shares of the candidates.
    of_mention |= _spread(mentions, of_row["share_text"])
    matrix = np.empty((len(mentions.candidates), len(FEATURES)))
    for place, name in enumerate(FEATURE_NAMES):
        known = name in of_mention
        matrix[:, place] = of_mention[name][mentions.owners] if known else of_row[name]
    return matrix


Columns = dict[str, AnyArray]


def _counts(mentions: Mentions, knowledge: Knowledge) -> Columns:
    links = knowledge.lexicon.links[mentions.surfaces].astype(np.float64)
    offsets = knowledge.lexicon.offsets
    size = offsets[mentions.surfaces + 1] - offsets[mentions.surfaces]
    found: Columns = {f"links_{kind}": np.log1p(links[:, i]) for i, kind in enumerate(LINK_KINDS)}
    return {
        **found,
        "characters": mentions.ends - mentions.begins,
        "words": mentions.lasts - mentions.firsts + 1,
        "candidates": np.minimum(size, 1000),
        "cut": mentions.cut,
    }


def _members(mentions: Mentions) -> tuple[AnyArray, Flags]:
    """Give the units of each mention, and which of the places hold one; (mentions, LONGEST)."""
    places = mentions.firsts[:, None].astype(np.int64) + np.arange(LONGEST)
    inside = places <= mentions.lasts[:, None]
    return np.where(inside, places, mentions.firsts[:, None]), inside


def _background(units: Units, mentions: Mentions, knowledge: Knowledge) -> Columns:
    words = knowledge.words
    found: Columns = {}
    members, inside = _members(mentions)
    inside = inside & ~units.inner[members]
    of_unit = words.find(units.keys)[members]
    of_mention = words.find(knowledge.lexicon.surfaces.hashes[mentions.surfaces])
    links = knowledge.lexicon.links[mentions.surfaces].astype(np.float64)
    size = inside.sum(axis=1)
    for background, kind in zip(BACKGROUNDS, ("short", "text"), strict=True):
        count, rate = words.seen(of_unit, background), words.capital_rate(of_unit, background)
        linked, seen = links[:, LINK_KINDS.index(kind)], words.seen(of_mention, background)
        found |= {
            f"rarest_word_{background}": np.log1p(np.where(inside, count, np.inf).min(axis=1)),
            f"commonest_word_{background}": np.log1p(np.where(inside, count, 0.0).max(axis=1)),
            f"lowest_capital_rate_{background}": np.where(inside, rate, 1.0).min(axis=1),
            f"mean_capital_rate_{background}": (rate * inside).sum(axis=1) / size,
            f"count_{background}": np.log1p(seen),
            f"capital_rate_{background}": words.capital_rate(of_mention, background),
            f"link_rate_{background}": linked / (linked + seen + 1.0),
        }
    return found


def _writing(units: Units, mentions: Mentions, knowledge: Knowledge) -> Columns:
    upper, lower = units.characters.before(UPPER), units.characters.before(LOWER)
    digits = units.characters.before(DIGIT)
    begins, ends = mentions.begins, mentions.ends
    first = units.characters.classes[units.begins]
    as_name = np.concatenate(([0], np.cumsum(((first & UPPER) != 0) | ((first & LETTER) == 0))))
    pattern = written_as(upper, lower, begins, ends)
    written = knowledge.lexicon.written[mentions.surfaces].astype(np.float64)
    alike = written[np.arange(len(pattern)), pattern]
    size = mentions.lasts - mentions.firsts + 1
    return {
        "capital_first": (units.characters.classes[begins] & UPPER) != 0,
        "capitals_all": as_name[mentions.lasts + 1] - as_name[mentions.firsts] == size,
        "upper": (upper[ends] > upper[begins]) & (lower[ends] == lower[begins]),
        "digits": (digits[ends] - digits[begins]) / (ends - begins),
        "written_alike": (alike + 0.3) / (written.sum(axis=1) + 1.0),
    }


def _context(units: Units, mentions: Mentions, knowledge: Knowledge) -> Columns:
    upper, lower = units.characters.before(UPPER), units.characters.before(LOWER)
    capital = (units.characters.classes[units.begins] & UPPER) != 0
    only = (upper[units.ends] > upper[units.begins]) & (lower[units.ends] == lower[units.begins])
    size = np.maximum(np.diff(units.offsets), 1)
    text = units.text_of()
    of_text = text[mentions.firsts]
    shares = (np.bincount(text, flags, len(size)) / size for flags in (capital, only))
    before, after, has_before, has_after = _neighbours(units, mentions)
    containing, overlapping = kernels.count_overlaps(mentions.firsts, mentions.lasts)
    kinds = units.kinds[mentions.firsts]
    named = (kinds == HASHTAG) | (kinds == USER)
    alone = ~has_before | (units.tokens[before] != units.tokens[mentions.firsts])
    alone &= ~has_after | (units.tokens[after] != units.tokens[mentions.lasts])
    alone &= units.tokens[mentions.firsts] == units.tokens[mentions.lasts]
    columns = dict(zip(("text_capitals", "text_upper"), shares, strict=True))
    return {
        **{name: share[of_text] for name, share in columns.items()},
        "before_capital": np.where(has_before, capital[before], -1),
        "after_capital": np.where(has_after, capital[after], -1),
        "initial": units.initial[mentions.firsts],
        "hashtag": kinds == HASHTAG,
        "user": kinds == USER,
        "whole_name": named & alone,
        "position": (mentions.firsts - units.offsets[of_text]) / size[of_text],
        "units": size[of_text],
        "containing": containing,
        "overlapping": overlapping,
    }


def _neighbours(units: Units, mentions: Mentions) -> tuple[AnyArray, AnyArray, Flags, Flags]:
    """Give the units before and after each mention in its text, and whether there are such."""
    bounds = units.offsets
    of_text = units.text_of()[mentions.firsts]
    has_before = mentions.firsts > bounds[of_text]
    has_after = mentions.lasts + 1 < bounds[of_text + 1]
    before = np.where(has_before, mentions.firsts - 1, mentions.firsts)
    return before, np.where(has_after, mentions.lasts + 1, mentions.lasts), has_before, has_after


def _lists(units: Units, mentions: Mentions, knowledge: Knowledge) -> Columns:
    words = knowledge.words
    of_unit = words.find(units.keys)
    members, inside = _members(mentions)
    before, after, has_before, has_after = _neighbours(units, mentions)
    of_mention = words.find(knowledge.lexicon.surfaces.hashes[mentions.surfaces])
    kinds = ("date", "organization", "location", "event", "product")
    in_list = {name: words.has(of_unit, name) for name in kinds}
    type_word = np.logical_or.reduce([in_list[name] for name in kinds[1:]])
    common = words.has(of_unit, "common") | units.inner
    found: Columns = {
        f"has_{name}": np.any(flags[members] & inside, axis=1) for name, flags in in_list.items()
    }
    for name in (*_BEFORE, "determiner", "retweet"):
        found[f"after_{name}"] = has_before & words.has(of_unit[before], name)
    return {
        **found,
        "common": words.has(of_mention, "common"),
        "all_common": np.all(common[members] | ~inside, axis=1),
        "has_first_name": words.has(of_unit[mentions.firsts], "first_name"),
        "has_last_name": words.has(of_unit[mentions.lasts], "last_name"),
        "before_type_word": has_after & type_word[after],
        "possessive": has_after & (units.kinds[after] == CLITIC),
    }


def _sums(values: Floats, mentions: Mentions) -> Floats:
    """Sum over the rows of each mention; none is without rows."""
    return np.add.reduceat(values, mentions.rows[:-1]) if len(values) else np.zeros(0)


def _spread(mentions: Mentions, share: Floats) -> Columns:
    total = _sums(share, mentions)
    p = share / np.maximum(total, 1e-300)[mentions.owners]
    p = np.where(p > 0.0, p, 1.0)
    largest = np.maximum.reduceat(share, mentions.rows[:-1]) if len(share) else np.zeros(0)
    # Nil's share of 0 adds nothing, as its p is set to 1.
    return {"entropy": -_sums(p * np.log(p), mentions), "largest_share": largest}


def _pairs(mentions: Mentions, knowledge: Knowledge) -> Columns:
    lexicon = knowledge.lexicon
    candidate = mentions.candidates
    linked = candidate != NIL
    rank = np.arange(len(candidate)) - mentions.rows[mentions.owners]
    links = knowledge.lexicon.links[mentions.surfaces].astype(np.float64)[mentions.owners]
    counts = lexicon.counts[candidate].astype(np.float64) * linked[:, None]
    names = lexicon.names[candidate] * linked
    prior = lexicon.prior[candidate].astype(np.float64) * linked
    best = lexicon.prior[lexicon.offsets[mentions.surfaces]].astype(np.float64)
    text, short = LINK_KINDS.index("text"), LINK_KINDS.index("short")
    shares = {
        f"share_{LINK_KINDS[kind]}": linked * (counts[:, kind] + _SMALL) / (links[:, kind] + 1.0)
        for kind in (text, short)
    }
    by_name = {f"by_{name}": has_name(names, name) for name in NAME_KINDS}
    sources = (counts > 0).sum(axis=1) + np.sum(list(by_name.values()), axis=0)
    return {
        "nil": ~linked,
        "rank": rank,
        "behind": linked * (best[mentions.owners] - prior),
        "prior": prior,
        **shares,
        **{f"pair_{kind}": np.log1p(counts[:, i]) for i, kind in enumerate(LINK_KINDS)},
        "sources": sources,
        **by_name,
    }


def _entities(units: Units, mentions: Mentions, knowledge: Knowledge) -> Columns:
    entities, lexicon = knowledge.entities, knowledge.lexicon
    entity = mentions.entities(lexicon)
    linked = entity != NIL
    # Nil's row looks at some entity and takes nothing from it.
    entity = np.where(linked, entity, 0)
    types = entities.types[entity] * linked
    names = ("in_links", "out_links", "popularity", "popular", "fame", "views")
    found: Columns = {name: linked * entities.attribute(name, entity) for name in names}
    weights = {
        "in_links_share": linked * np.expm1(found["in_links"]),
        "popularity_share": linked * np.exp(found["popularity"]),
    }
    for name, weight in weights.items():
        total = _sums(weight, mentions) + (name == "in_links_share")
        found[name] = weight / np.maximum(total, 1e-300)[mentions.owners]
    found |= {
        "in_degree": linked * entities.in_degrees(entity),
        "entity_links": np.log1p(linked * lexicon.entity_links[entity].astype(np.float64)),
        **{f"is_{name}": (types >> bit) & 1 for bit, name in enumerate(TYPES)},
    }
    return found | _titles(units, mentions, knowledge, entity, linked)


def _titles(
    units: Units, mentions: Mentions, knowledge: Knowledge, entity: AnyArray, linked: Flags
) -> Columns:
    entities = knowledge.entities
    folds, bounds = units.characters.folds, entities.title_bounds
    distance, beginning = np.zeros(len(entity)), np.zeros(len(entity))
    distance[linked], beginning[linked] = kernels.compare(
        units.characters.folded, folds[mentions.begins], folds[mentions.ends] - mentions.cut,
        entities.titles, bounds, mentions.owners[linked], entity[linked],
    )  # fmt: skip
    key = knowledge.lexicon.surfaces.hashes[mentions.surfaces][mentions.owners]
    return {
        "distance": distance,
        "beginning": beginning,
        "same": linked & (entities.title_keys[entity] == key),
        "initials": linked & (entities.initials[entity] == key),
        "title_characters": linked * (bounds[entity + 1] - bounds[entity]),
        "longer_title": linked & entities.has_suffix[entity],
    }
