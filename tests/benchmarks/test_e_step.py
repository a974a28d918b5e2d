import pytest

from benchmarks._corpus import generate
from benchmarks.e_step import SOFT, check_reference, warm_parameters
from corpusmill.alignment.learning import inference


def test_plain_python_agrees_with_the_kernel_and_would_tell_if_not():
    corpus = generate(20, words=100)
    parameters = warm_parameters(corpus, SOFT)
    how = inference(SOFT)
    check_reference(corpus.patterns, parameters, how)
    with pytest.raises(SystemExit, match="disagree"):
        check_reference(corpus.patterns, parameters, how._replace(quadratic=False))
