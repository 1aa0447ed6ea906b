"""Chapter 8: encoder, decoder, cross-attention."""

from clearhead.views.course.chapter import Chapter, Exercise, Figure

CHAPTER = Chapter(
    id="cross-attention",
    title="Encoder, decoder, cross-attention",
    question="How does a model that writes look at what another part has read?",
    text=(
        "A translator has two halves. The **encoder** reads the whole text; every letter may look "
        "at every other. The **decoder** writes the answer, sign by sign, with the mask of chapter "
        "6. Between them is **cross-attention**: the query comes from the decoder, the keys and "
        "values from the encoder. So the table has the written signs as rows and the read signs as "
        "columns. It need not be square.",
        "The figure is a whole Transformer, called `dates`. It has 121,409 *parameters*: numbers "
        "that training found. It reads a date in English and writes it as year-month-day. "
        "It runs in this page, at every key that you press.",
    ),
    figure=Figure(
        kind="dates",
        title="Type a date. Where does the decoder look?",
        data={
            "dates": [
                "3rd of March 2021",
                "12 July 1999",
                "August 24, 1979",
                "Jan 5 2030",
                "2 October 1869",
            ]
        },
        numbers="dates",
        waits=True,
    ),
    after=(
        "To write the year, it looks at the year, although the year stands last. To write *03*, it "
        "looks at the letters of *March*. Nobody told it to: training found that.",
    ),
    code="""import clearhead as ch

look = ch.look("dates", "3rd of March 2021")
look.text  # → 2021-03-03
look.word("2021").sources[0].mark.text  # → 2021
look.proof.exact  # → True""",
    exercise=Exercise(
        question="The encoder read 17 characters. The decoder wrote 10 characters and an end sign. "
        "How many attention weights does one head of cross-attention have?",
        answer=(187.0,),
        python="11 * 17",
        explanation="11 queries, one for each sign that was written, times 17 keys: 187.",
    ),
    next="Attention is one part of a Transformer. Here are the others.",
)
