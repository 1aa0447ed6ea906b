"""Chapter 9: blocks; the Transformer of 2017 to scale."""

from clearhead.views.course.chapter import Chapter, Exercise, Figure

CHAPTER = Chapter(
    id="blocks",
    title="Blocks: the whole Transformer",
    question="What else is in a Transformer, and where do its millions of numbers sit?",
    text=(
        "Attention moves information between words. After it comes a **feed-forward layer**, which "
        "works on each word alone: a matrix W₁ makes the vector wider, negative numbers become 0, "
        "and a matrix W₂ makes it narrow again. Attention and feed-forward together are a "
        "**block**. Blocks are stacked: the result of one is the input of the next.",
        "Two helpers make tall stacks possible. The **residual**: a layer does not replace x, it "
        "adds to it: x + layer(x). So nothing gets lost on the way up. The **normalisation**: "
        "subtract the mean of the vector, divide by its spread (the root of its variance, which is "
        "the mean of the squared distances from the mean). So numbers neither explode nor vanish.",
        "The drawing shows the Transformer of 2017 to scale: the area of each part is the count of "
        "its numbers. Click a part.",
    ),
    figure=Figure(
        kind="blocks",
        title="Residual and normalisation; the Transformer to scale",
        data={"x": [1, 2, 3, 6], "layer": [0, 1, -1, 2]},
        same=(("normed", "norm"), ("count", "total")),
    ),
    after=(
        "The feed-forward layers have more numbers than attention. The embedding is used "
        "twice: at the bottom for words that come in, at the top for words that come out.",
    ),
    code="""import torch
import clearhead as ch
from clearhead.models.presets import preset

x, layer = torch.tensor([[1, 2, 3, 6], [0, 1, -1, 2]], dtype=torch.float64)
normed = torch.nn.functional.layer_norm(x + layer, (4,))
with torch.device("meta"):  # shapes only, no memory
    base = ch.EncoderDecoder(preset("transformer-base"))
count = sum(part.numel() for part in base.parameters())
count  # → 63045632""",
    exercise=Exercise(
        question="The feed-forward layer of the base model has W₁ of 512 × 2048 with 2048 biases, "
        "and W₂ of 2048 × 512 with 512 biases. (A bias is a number that is added at the end.) How "
        "many numbers is that?",
        answer=(2099712.0,),
        python="2 * 512 * 2048 + 2048 + 512",
        explanation="2·512·2048 = 2,097,152, plus 2,560 biases: 2,099,712. Attention has "
        "4·512·512 = 1,048,576: half as many.",
    ),
    next="At the top of the stack stands a vector. How does it become a word?",
)
