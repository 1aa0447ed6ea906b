from __future__ import annotations

import pytest

from clearhead.errors import CheckpointError
from clearhead.models.families.common_fields import HARMLESS, REFUSED, family_rules
from clearhead.models.families.family import FAMILIES, family_named


def test_no_field_has_two_rules() -> None:
    assert not set(HARMLESS) & set(REFUSED)


def test_the_familys_own_rules_win() -> None:
    rules = family_rules({"eos_token_id": 2}, {"is_causal": "it is an encoder"})
    assert "eos_token_id" not in rules.harmless
    assert rules.completed({"is_causal": False})["eos_token_id"] == 2
    assert "quantization_config" in rules.refused


@pytest.mark.parametrize("method", ["bitsandbytes", "gptq", "awq", "fp8", "compressed-tensors"])
def test_packed_weights_are_refused_by_every_family(method: str) -> None:
    for name in FAMILIES:
        for model_type in family_named(name).rules:
            fields = {"model_type": model_type, "quantization_config": {"quant_method": method}}
            with pytest.raises(CheckpointError, match=rf"quantization_config is .*{method}"):
                family_named(name).read(fields)
