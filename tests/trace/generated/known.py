"""Attentions that failed once, each with its cause, and must not fail again."""

from __future__ import annotations

from tests.trace.generated.spec import Spec

KNOWN: dict[str, Spec] = {
    "talking heads under autocast: a step below autograd gets two dtypes": Spec(
        softmax="talking before", autocast=True, gradient="inference_mode", seed=829718830
    ),
    "heads in modules of their own, called by forward(), for a single sequence": Spec(
        layout="one module per head",
        softmax="sdpa",
        scale="none",
        batch=1,
        call="forward",
        seed=316398977,
    ),
    "float64: a row that is hidden by a finite number alone": Spec(
        pattern="causal + left padding", hidden_by="−1e9", dtype="float64", seed=62484229
    ),
    "float64: a row that is hidden by different minima": Spec(
        pattern="blind rows", hidden_by="mixed", dtype="float64", sizes="equal", seed=5812423
    ),
    "a ring buffer: a query may attend to a slot behind its own": Spec(
        pattern="causal", mask_step="assign scores", cache="ring", seed=987108365
    ),
    "a ring buffer under sdpa: slots are taken for positions": Spec(
        softmax="sdpa", pattern="causal", mask_axes=3, scale="none", cache="ring", seed=616974352
    ),
    "a cropped cache: the first row of another continuation": Spec(
        softmax="clamp", pattern="causal", cache="crop", seed=399930349
    ),
    "scores in the hundreds: the proof's tolerance is that of usual ones": Spec(
        softmax="nn.MultiheadAttention",
        projection="fused",
        pattern="causal",
        scale="none",
        scores="large",
        declares="nothing",
        layers="two",
        seed=654833278,
    ),
    "scores in the hundreds: a weight is off by more than 1e-6": Spec(
        softmax="sdpa",
        pattern="causal",
        scale="none",
        cache="cat",
        batch=3,
        value_width="other",
        scores="large",
        layers="two",
        seed=688668525,
    ),
    "float64: a blind row, hidden by a finite number, in windows": Spec(
        layout="windows",
        pattern="blind rows",
        hidden_by="−1e9",
        dtype="float64",
        batch=3,
        sizes="equal",
        seed=409128146,
    ),
    "queries or keys of a fused call are written over before they are kept": Spec(
        softmax="sdpa", scale="none", later="query zeroed", seed=16634596
    ),
    "a blind row whose output is NaN: nothing is compared with a mask that shows it a key": Spec(
        pattern="right padding", sizes="equal", seed=478772949
    ),
    "weights kept as they came, of 0 where nothing is hidden: taken for an empty cache": Spec(
        softmax="talking before",
        pattern="causal",
        cache="index, whole",
        scores="large",
        layers="one, twice",
        seed=254975736,
    ),
    "tangents of zero have no memory: a kernel that read one ended the process": Spec(
        layout="b (n h) d", product="baddbmm", gradient="grad", transform="jvp"
    ),
    "mixed precision: a temperature widens the scores before a finite number hides a row": Spec(
        softmax="temperature",
        pattern="causal + left padding",
        hidden_by="mixed",
        autocast=True,
        seed=236846068,
    ),
    "the same in windows, with a layer that is called twice": Spec(
        layout="windows",
        softmax="temperature",
        pattern="causal + left padding",
        hidden_by="mixed",
        scale="scores /",
        autocast=True,
        gradient="grad",
        batch=3,
        class_="MHSA",
        layers="one, twice",
        values=True,
        seed=236846068,
    ),
    "weights kept as they came in one run only: scores of 2,000 are rounded, and dropped out": Spec(
        layout="b n h d",
        product="einsum",
        softmax="temperature",
        pattern="causal",
        hidden_by="finfo.min",
        mask_step="assign scores",
        mask_axes=3,
        scale="scores /",
        cache="cat",
        mode="train, dropout",
        gradient="inference_mode",
        value_width="other",
        scores="large",
        declares="n_head",
        call="forward",
        layers="two",
        seed=111822783,
    ),
    "a step after a prompt whose weights are kept as they came: it had another scale": Spec(
        softmax="exp2/sum",
        pattern="causal + left padding",
        hidden_by="finfo.min",
        cache="cat",
        seed=745505657,
    ),
    "mixed precision: the kernel of a whole layer calls others, which are cast unwatched": Spec(
        softmax="nn.TransformerEncoderLayer",
        projection="bias",
        pattern="right padding",
        hidden_by="bool",
        scale="none",
        autocast=True,
        gradient="inference_mode",
        sizes="equal",
        declares="nothing",
        layers="two",
        seed=609183698,
    ),
    "a blind row, hidden by −65504: a product's last digit decides over 1/256 of a score": Spec(
        layout="b n h d → h b",
        product="einsum",
        softmax="nn.Softmax",
        pattern="causal + left padding",
        hidden_by="−65504",
        scale="none",
        gradient="inference_mode",
        class_="MHSA",
        declares="n_head",
        layers="two",
        later="key scaled",
        values=True,
        seed=309952571,
    ),
}
"""By cause, the simplest attention that had it."""
