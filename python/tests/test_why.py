"""Questions."""

import pytest

import freehold


def test_the_rule_that_makes_the_difference_is_named(recordings: object) -> None:
    loop = freehold.Recording(f"{recordings}/python-loop-128m.rec")
    policy = "linux-6.11+pcp_batch_scale_max"
    answer = freehold.why(
        loop, from_=policy, set={"vm.pcp_batch_scale_max": [5, 0]}, goal="refill.mean_ns", machine="epyc-7w83", copies=4
    )
    (cause,) = answer.causes.to_pyarrow().to_pylist()
    assert cause["cause"] == "vm.pcp_batch_scale_max" and (cause["from"], cause["to"]) == ("5", "0")
    goal = answer.to_dict()["why"]["goals"][0]
    assert cause["share"] == pytest.approx(goal["after"] - goal["before"]) and cause["share"] < 0
    assert "vm.pcp_batch_scale_max" in answer.verdict()


def test_what_is_no_question_is_said(recordings: object) -> None:
    loop = freehold.Recording(f"{recordings}/python-loop-128m.rec")
    with pytest.raises(freehold.FreeholdError, match="both sides are linux-6.18"):
        freehold.why(loop, machine="epyc-7w83")
    with pytest.raises(freehold.FreeholdError, match="machine= says"):
        freehold.why(loop, to="linux-6.1")
    with pytest.raises(freehold.FreeholdError, match="has no variant"):
        freehold.why(freehold.Experiment("pcp-batch"), variant="no-such", to="linux-6.1")
    with pytest.raises(TypeError, match="a Recording or an Experiment"):
        freehold.why("pcp-batch", to="linux-6.1")  # type: ignore[arg-type]
