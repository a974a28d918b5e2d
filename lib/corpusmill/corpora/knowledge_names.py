"""What the rows of LEXICON and ENTITIES may be called. No Spark."""

from __future__ import annotations

LINK_KINDS = ("text", "short", "query")
"""Kinds of LEXICON rows that count links: in edited text, in tweets and the like, in queries."""

NAME_KINDS = ("title", "alias", "redirect", "hashtag", "comma", "last_name", "candidate")
"""Kinds of LEXICON rows that only say that the entity is called so."""

ATTRIBUTES = ("in_links", "out_links", "popularity", "popular", "fame", "views")
"""What ENTITIES may say of an entity beside its types; of several values the largest counts."""

TYPES = ("person", "location", "organization", "product", "event", "character", "brand", "name")
"""Types of entities; "name" is a page about a name and not about its bearer."""

TYPE_PREFIX = "type:"
"""ENTITIES has ``type:person`` as an attribute of value 1."""
