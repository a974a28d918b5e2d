"""corpusmill: query logs and text corpora into structured models, on Apache Spark."""

__version__ = "0.1.0"
