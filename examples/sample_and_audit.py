"""Draw N answers to each prompt with a local model, score them, judge them, and audit the score.

    pip install . transformers torch
    python examples/sample_and_audit.py --model path/or/name/of/a/causal/model
    python examples/sample_and_audit.py --random-weights   # no download: it knows nothing

The score is the mean log-probability of the answer's tokens, which best-of-N by likelihood
maximizes; the value is whether the answer is the larger of two digits. Put your prompts, your
reward model and your check in their place. A model with random weights answers in digits, and is
right now and then by chance: its likelihood cannot choose, and the audit says so.
"""

from __future__ import annotations

import argparse
import random
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

import toptail


def random_model() -> tuple[Any, Any]:
    """A tiny model that knows nothing, with a tokenizer of the letters of prompts."""
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    letters = "0123456789max(,)= "
    words = Tokenizer(models.BPE({letter: at for at, letter in enumerate(letters)}, []))
    words.decoder = decoders.Fuse()
    small = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}
    config = GPT2Config(vocab_size=len(letters), bos_token_id=0, eos_token_id=0, **small)
    return GPT2LMHeadModel(config), PreTrainedTokenizerFast(tokenizer_object=words)


@torch.no_grad()
def answers(model: Any, tokenizer: Any, prompt: str, n: int) -> list[tuple[str, float]]:
    """``n`` answers with the mean log-probability of their tokens."""
    asked = tokenizer(prompt, return_tensors="pt")["input_ids"]
    drawn = model.generate(
        asked,
        attention_mask=torch.ones_like(asked),
        do_sample=True,
        num_return_sequences=n,
        max_new_tokens=2,
        pad_token_id=model.config.eos_token_id,
    )
    scores = model(drawn).logits[:, :-1].log_softmax(-1).gather(-1, drawn[:, 1:, None])[..., 0]
    fresh = slice(asked.shape[1] - 1, None)
    texts = tokenizer.batch_decode(drawn[:, asked.shape[1] :], skip_special_tokens=True)
    return list(zip(texts, scores[:, fresh].mean(-1).tolist(), strict=True))


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--model", help="path or name of a causal language model")
    flags.add_argument("--random-weights", action="store_true")
    flags.add_argument("--prompts", type=int, default=400)
    flags.add_argument("-n", type=int, default=16, help="answers to each prompt")
    flags.add_argument("--out", default="toptail-audit")
    given = flags.parse_args()
    if bool(given.model) == given.random_weights:
        flags.error("give --model, or --random-weights")
    random.seed(0)
    torch.manual_seed(0)
    if given.random_weights:
        model, tokenizer = random_model()
    else:
        tokenizer = AutoTokenizer.from_pretrained(given.model)
        model = AutoModelForCausalLM.from_pretrained(given.model)
    rows = []
    for _ in range(given.prompts):
        a, b = random.randrange(10), random.randrange(10)
        for text, likelihood in answers(model, tokenizer, f"max({a}, {b}) =", given.n):
            right = text.strip().startswith(str(max(a, b)))
            row = {"prompt": f"max({a}, {b})", "draw": len(rows), "answer": text.strip()[:8]}
            rows.append({**row, "mean_log_probability": likelihood, "correct": right})
    for at, row in enumerate(rows):
        row["pool"] = at // given.n  # the same prompt may be asked twice
    result = toptail.audit(rows, query="pool", scores="mean_log_probability", cluster="prompt")
    print(result.summary())
    print(f"\nReport: {result.write(given.out)}")


if __name__ == "__main__":
    main()
