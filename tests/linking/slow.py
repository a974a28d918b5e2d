"""Candidates and features the slow way: strings, dictionaries and loops."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa

from corpusmill.corpora.knowledge_names import LINK_KINDS, NAME_KINDS, TYPES
from corpusmill.corpora.text import fold
from corpusmill.linking.tokens import tokenize
from corpusmill.linking.words import LISTS
from tests.linking.invented import COMMON, LINKS, NEWS, PAIRS, TWEETS, VALUES

WORD, URL, EMAIL, REFERENCE, HASHTAG, USER, EMOTICON, EMOJI, NUMBER, CLITIC = range(10)


def key(text: str) -> str:
    return "".join(c for c in fold(pa.array([text]))[0].as_py() if c.isalnum())


REDIRECTS = {key(s): key(e) for s, e, kind, _ in PAIRS if kind == "redirect"}


def entity_key(title: str) -> str:
    found = key(title)
    return REDIRECTS.get(found, found)


TITLES = {
    entity_key(t): t
    for t in [
        *(e for _, e, _, _ in PAIRS),
        *(e for e, _, _ in VALUES if e != "rome (band)"),
        *(page for link in LINKS for page in link),
    ]
    if key(t) not in REDIRECTS and key(t)
}
ATTRIBUTES: dict[str, dict[str, float]] = defaultdict(dict)
for _entity, _name, _value in VALUES:
    if not math.isnan(_value):
        _known = ATTRIBUTES[entity_key(_entity)]
        _known[_name] = max(_known.get(_name, 0.0), _value)
IN_LINKS = defaultdict(set)
for _source, _target in LINKS:
    if entity_key(_source) != entity_key(_target):
        IN_LINKS[entity_key(_target)].add(entity_key(_source))


def base_of(title: str) -> str:
    return re.sub(r"[_ ]*\([^()]*\)$", "", title)


def is_person(entity: str) -> bool:
    return "type:person" in ATTRIBUTES[entity]


def title_forms(entity: str) -> set[tuple[str, str]]:
    title = TITLES[entity].replace("_", " ")
    base = base_of(title)
    plain = re.sub(r"^[Tt]he |,? (A?\.?F\.?C\.?|Inc\.?|Ltd\.?)$", "", base)
    forms = {("title", title), ("title", base), ("title", plain)}
    if ", " in base:
        forms.add(("comma", base.split(", ")[0]))
    if is_person(entity) and " " in base:
        forms.add(("last_name", base.split(" ")[-1]))
    return forms


def written(surface: str) -> str:
    letters = [c for c in surface if c.isupper() or c.islower()]
    if letters and all(c.isupper() for c in letters):
        return "upper"
    return "first" if surface[:1].isupper() else "other"


# surface -> entity -> kind -> count
LEXICON: dict[str, dict[str, Counter]] = defaultdict(lambda: defaultdict(Counter))
WRITTEN: dict[str, Counter] = defaultdict(Counter)
for _surface, _entity, _kind, _count in PAIRS:
    if key(_surface) and key(_entity):
        LEXICON[key(_surface)][entity_key(_entity)][_kind] += _count
        if _kind in LINK_KINDS:
            WRITTEN[key(_surface)][written(_surface)] += _count
for _entity in TITLES:
    for _kind, _form in title_forms(_entity):
        LEXICON[key(_form)][_entity][_kind] += 1


def popularity(entity: str) -> float:
    known = ATTRIBUTES[entity]
    return (
        math.log1p(known.get("in_links", 0.0))
        + 3.0 * known.get("popular", 0.0)
        + 4.0 * (known.get("fame", 0.0) > 0)
        + math.log1p(len(IN_LINKS[entity]))
    )


def prior(surface: str, entity: str) -> float:
    kinds = LEXICON[surface][entity]
    names = {kind for kind in kinds if kind in NAME_KINDS}
    links = kinds["text"] + 3 * kinds["short"] + kinds["query"]
    value = 4 * math.log1p(links) + 0.5 * popularity(entity)
    value += 2 * ("title" in names) + 1.5 * ("alias" in names) + 0.7 * ("candidate" in names)
    value += 1.5 * bool(names & {"redirect", "hashtag"})
    if not links:
        value -= (names == {"last_name"}) + 0.5 * (names == {"comma"})
    return value


def candidates(surface: str) -> list[str]:
    return sorted(LEXICON[surface], key=lambda entity: -prior(surface, entity))


def sort_of(letter: str) -> str:
    if letter.isdecimal():
        return "digit"
    if letter < "\u2000" and letter.isupper():
        return "capital"
    if unicodedata.category(letter).startswith("M"):
        return "mark"
    return "other" if letter.isalnum() else "none"


def inner_words(name: str) -> list[tuple[int, int]]:
    """Divide a name at capitals, digits and underscores: NYTimes2012 is NY, Times and 2012."""
    words: list[tuple[int, int]] = []
    before = ""
    for place, letter in enumerate(name):
        sort = sort_of(letter)
        if sort == "mark" and before in ("capital", "other"):
            words[-1] = (words[-1][0], place + 1)
        elif sort in ("none", "mark"):
            before = ""
        elif sort == before:
            words[-1] = (words[-1][0], place + 1)
        elif sort == "other" and before == "capital":
            # The last capital of several is the first letter of the next word.
            start, end = words.pop()
            last = max(n for n in range(start, end) if sort_of(name[n]) == "capital")
            words += [(start, last)] if last > start else []
            words.append((last, place + 1))
            before = sort
        else:
            words.append((place, place + 1))
            before = sort
    return words


def units(text: str) -> list[dict]:
    found: list[dict[str, Any]] = []
    tokens = tokenize(text)
    for number, (start, end, kind) in enumerate(zip(*tokens, strict=True)):
        parts = inner_words(text[start:end]) if kind in (HASHTAG, USER) else []
        spans = [(start + a, start + b) for a, b in parts] if len(parts) > 1 else [(start, end)]
        found += [
            {"start": int(a), "end": int(b), "kind": int(kind), "token": number} for a, b in spans
        ]
    segment = 0
    before: tuple | None = None
    for place, unit in enumerate(found):
        unit["string"] = text[unit["start"] : unit["end"]]
        gap = text[found[place - 1]["end"] : unit["start"]] if place else ""
        unit["initial"] = place == 0 or any(c in '.!?:;|"“”–—…' for c in gap)
        apart = unit["kind"] in (URL, EMAIL, REFERENCE, EMOTICON, EMOJI)
        sort = {USER: ("user", unit["token"]), HASHTAG: ("tag",)}.get(unit["kind"], ("text",))
        segment += before is None or apart or before != sort
        before = None if apart else sort
        unit["segment"] = None if apart else segment
    return found


def mentions(found: list[dict]) -> list[dict]:
    spans = []
    for first in range(len(found)):
        for last in range(first, min(first + 6, len(found))):
            run = found[first : last + 1]
            if run[0]["segment"] is None or any(u["segment"] != run[0]["segment"] for u in run):
                continue
            if run[0]["kind"] == CLITIC or run[-1]["kind"] == CLITIC or not key(run[-1]["string"]):
                continue
            name = "".join(key(u["string"]) for u in run)
            cut = name not in LEXICON and len(name) >= 4 and name[-1] == "s"
            surface = name[:-1] if cut else name
            if surface in LEXICON:
                spans.append({"first": first, "last": last, "surface": surface, "cut": cut})
    return spans


def count_background(texts: list[str]) -> tuple[Counter, Counter]:
    seen: Counter[str] = Counter()
    capitals: Counter[str] = Counter()
    for text in texts:
        found = units(text)
        single = [
            (u, key(u["string"])) for u in found if u["segment"] is not None and u["kind"] != CLITIC
        ]
        longer = [
            (found[m["first"]], m["surface"]) for m in mentions(found) if m["last"] > m["first"]
        ]
        for unit, name in single + longer:
            if name and not unit["initial"]:
                seen[name] += 1
                capitals[name] += unit["string"][0].isupper()
    return seen, capitals


BACKGROUND = {"texts": count_background(TWEETS), "edited": count_background(NEWS)}
PEOPLE = [base_of(TITLES[e]) for e in TITLES if is_person(e) and "_" in base_of(TITLES[e])]
IN_LIST = {name: {key(word) for word in words.split()} for name, words in LISTS.items()}
IN_LIST["first_name"] = {key(name.split("_")[0]) for name in PEOPLE}
IN_LIST["last_name"] = {key(name.split("_")[-1]) for name in PEOPLE}
IN_LIST["common"] = {key(word) for word in COMMON}


def levenshtein(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        new = [i + 1]
        for j, y in enumerate(b):
            new.append(min(row[j] + (x != y), row[j + 1] + 1, new[j] + 1))
        row = new
    return row[-1]


def is_upper(text: str) -> bool:
    return any(c.isupper() for c in text) and not any(c.islower() for c in text)


def mention_features(text: str, found: list[dict], spans: list[dict], m: dict) -> dict:
    first, last, surface = m["first"], m["last"], m["surface"]
    start, end = found[first]["start"], found[last]["end"]
    string, run = text[start:end], found[first : last + 1]
    kinds = LEXICON[surface].values()
    words = [key(u["string"]) for u in run if u["kind"] != CLITIC]
    before = found[first - 1] if first else None
    after = found[last + 1] if last + 1 < len(found) else None
    links = {kind: sum(each[kind] for each in kinds) for kind in LINK_KINDS}
    others = [(o["first"], o["last"]) for o in spans if o is not m]
    alike = WRITTEN[surface]
    features = {
        "characters": len(string),
        "words": len(run),
        **{f"links_{kind}": math.log1p(links[kind]) for kind in LINK_KINDS},
        "candidates": len(LEXICON[surface]),
        "common": surface in IN_LIST["common"],
        "all_common": all(word in IN_LIST["common"] for word in words),
        "capital_first": string[0].isupper(),
        "capitals_all": all(u["string"][0].isupper() or not u["string"][0].isalpha() for u in run),
        "upper": is_upper(string),
        "digits": sum(c.isdigit() for c in string) / len(string),
        "written_alike": (alike[written(string)] + 0.3) / (alike.total() + 1.0),
        "text_capitals": sum(u["string"][0].isupper() for u in found) / len(found),
        "text_upper": sum(is_upper(u["string"]) for u in found) / len(found),
        "before_capital": before["string"][0].isupper() if before else -1,
        "after_capital": after["string"][0].isupper() if after else -1,
        "initial": found[first]["initial"],
        "hashtag": found[first]["kind"] == HASHTAG,
        "user": found[first]["kind"] == USER,
        "whole_name": found[first]["kind"] in (HASHTAG, USER)
        and [u for u in found if u["token"] == found[first]["token"]] == run,
        "has_first_name": words[0] in IN_LIST["first_name"],
        "has_last_name": words[-1] in IN_LIST["last_name"],
        **{
            f"has_{name}": any(word in IN_LIST[name] for word in words)
            for name in ("date", "organization", "location", "event", "product")
        },
        **{
            f"after_{name}": before is not None and key(before["string"]) in IN_LIST[name]
            for name in LISTS
            if name not in ("date", "organization", "location", "event", "product")
        },
        "before_type_word": after is not None
        and any(
            key(after["string"]) in IN_LIST[name]
            for name in ("organization", "location", "event", "product")
        ),
        "possessive": after is not None and after["kind"] == CLITIC,
        "position": first / len(found),
        "units": len(found),
        "containing": sum(a <= first and last <= b for a, b in others),
        "overlapping": sum(a <= last and first <= b for a, b in others),
        "cut": m["cut"],
    }
    for background, kind in (("texts", "short"), ("edited", "text")):
        seen, capitals = BACKGROUND[background]
        rates = [(capitals[word] + 0.5) / (seen[word] + 1) for word in words]
        features |= {
            f"rarest_word_{background}": math.log1p(min(seen[word] for word in words)),
            f"commonest_word_{background}": math.log1p(max(seen[word] for word in words)),
            f"lowest_capital_rate_{background}": min(rates),
            f"mean_capital_rate_{background}": sum(rates) / len(rates),
            f"count_{background}": math.log1p(seen[surface]),
            f"capital_rate_{background}": (capitals[surface] + 0.5) / (seen[surface] + 1),
            f"link_rate_{background}": links[kind] / (links[kind] + seen[surface] + 1),
        }
    return features


def row_features(surface: str, shown: list[str], entity: str | None) -> dict:
    if entity is None:
        return {"nil": 1}
    kinds, known = LEXICON[surface][entity], ATTRIBUTES[entity]
    all_kinds = LEXICON[surface].values()
    base = base_of(TITLES[entity])
    title = key(base)
    same = 0
    while same < min(len(title), len(surface)) and title[same] == surface[same]:
        same += 1

    def share(kind: str) -> float:
        return (kinds[kind] + 0.1) / (sum(each[kind] for each in all_kinds) + 1)

    def weight(name: str, e: str) -> float:
        value = ATTRIBUTES[e].get(name, 0.0)
        return value if name == "in_links" else math.exp(value)

    return {
        "rank": shown.index(entity) + 1,
        "behind": prior(surface, shown[0]) - prior(surface, entity),
        "prior": prior(surface, entity),
        "share_text": share("text"),
        "share_short": share("short"),
        **{f"pair_{kind}": math.log1p(kinds[kind]) for kind in LINK_KINDS},
        "sources": len(+kinds),
        **{f"by_{kind}": kinds[kind] > 0 for kind in NAME_KINDS},
        **{name: math.log1p(known.get(name, 0.0)) for name in ("in_links", "out_links", "views")},
        **{name: known.get(name, 0.0) for name in ("popularity", "popular", "fame")},
        "in_links_share": weight("in_links", entity)
        / (1 + sum(weight("in_links", e) for e in shown)),
        "popularity_share": weight("popularity", entity)
        / sum(weight("popularity", e) for e in shown),
        "in_degree": math.log1p(len(IN_LINKS[entity])),
        "entity_links": math.log1p(
            sum(
                each[entity]["text"] + 3 * each[entity]["short"]
                for each in LEXICON.values()
                if entity in each
            )
        ),
        **{f"is_{name}": f"type:{name}" in known for name in TYPES},
        "distance": levenshtein(surface, title) / max(len(surface), len(title)),
        "same": title == surface,
        "beginning": same / len(surface),
        "initials": key(re.sub(r"([^\s_-])[^\s_-]*", r"\1", base)) == surface,
        "title_characters": len(title),
        "longer_title": base != TITLES[entity],
    }


def rows(text: str, most: int) -> list[dict]:
    """Give all rows of a text: span in characters, entity (None for Nil), features."""
    found = units(text)
    spans = mentions(found)
    result = []
    for m in spans:
        shown = candidates(m["surface"])[:most]
        about = mention_features(text, found, spans, m)
        each = [row_features(m["surface"], shown, entity) for entity in [None, *shown]]
        shares = [row["share_text"] for row in each[1:]]
        total = sum(shares)
        about["largest_share"] = max(shares)
        about["entropy"] = -sum(p / total * math.log(p / total) for p in shares)
        for entity, row in zip([None, *shown], each, strict=True):
            result.append(
                {
                    "span": (found[m["first"]]["start"], found[m["last"]]["end"]),
                    "units": (m["first"], m["last"] + 1),
                    "entity": entity,
                    "features": about | row,
                }
            )
    return result
