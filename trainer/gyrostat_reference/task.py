"""The digits task: prompt ``[K, t, =]``, answer K digits that sum to t modulo 7, then the end token.

There are ``7 ** (K - 1)`` right answers to a prompt, so a perfect policy may keep about 0.65 nats a token:
entropy collapse is a choice of the optimiser, not of the task. K = 1 is easy, K = 3 is hard.
"""

import torch
from torch import Generator, Tensor

MODULUS = 7
LONGEST = 3  # most digits of an answer
END, EQUALS, FIRST_COUNT = MODULUS, MODULUS + 1, MODULUS + 2  # tokens; the digits are 0 to 6
_PLAIN = 0.6  # of the worked examples of three digits begin with 0
VOCABULARY = MODULUS + 2 + LONGEST
PROMPT_LENGTH = 3
ANSWER_LENGTH = LONGEST + 1
LENGTH = PROMPT_LENGTH + ANSWER_LENGTH


def draw_prompts(count: int, random: Generator) -> Tensor:
    """Random prompts, int64 of shape (count, PROMPT_LENGTH)."""
    digits = torch.randint(1, LONGEST + 1, (count,), generator=random)
    target = torch.randint(0, MODULUS, (count,), generator=random)
    return torch.stack([FIRST_COUNT + digits - 1, target, torch.full((count,), EQUALS)], 1)


def verify(sequences: Tensor) -> Tensor:
    """Reward of each sequence: 1.0 where it has exactly K digits, the end token and the right sum, else 0.0.

    ``sequences`` has shape (N, LENGTH); the result float32 of shape (N,).
    """
    answers = sequences[:, PROMPT_LENGTH:]
    count = digit_counts(sequences)
    asked = torch.arange(answers.shape[1]) < count[:, None]
    are_digits = ((answers < MODULUS) | ~asked).all(1)
    ends = answers.gather(1, count[:, None]).squeeze(1) == END
    sums = (answers * asked).sum(1) % MODULUS == sequences[:, 1]
    return (are_digits & ends & sums).float()


def answer_mask(sequences: Tensor) -> Tensor:
    """1.0 for each answer token up to and with the first end token, else 0.0; shape (N, ANSWER_LENGTH)."""
    is_end = (sequences[:, PROMPT_LENGTH:] == END).long()
    return (is_end.cumsum(1) - is_end == 0).float()


def digit_counts(sequences: Tensor) -> Tensor:
    """K, the number of digits that each prompt asks for; int64 of shape (N,)."""
    return sequences[:, 0] - FIRST_COUNT + 1


def worked_examples(count: int, wrong: float, random: Generator) -> Tensor:
    """Sequences to imitate, shape (count, LENGTH); in a share ``wrong`` of them the last digit is random.

    Six in ten answers of three digits begin with 0: by these a short warm-up can learn to add up to three digits,
    which uniform ones did not teach it in 700 steps, and RL then needed luck to find out.
    """
    prompts = draw_prompts(count, random)
    digits = digit_counts(prompts)
    answers = torch.randint(0, MODULUS, (count, ANSWER_LENGTH), generator=random)
    answers[(digits == LONGEST) & (torch.rand(count, generator=random) < _PLAIN), 0] = 0
    place = torch.arange(ANSWER_LENGTH)
    last = (prompts[:, 1] - (answers * (place < digits[:, None] - 1)).sum(1)) % MODULUS
    spoilt = torch.rand(count, generator=random) < wrong
    last = torch.where(spoilt, torch.randint(0, MODULUS, (count,), generator=random), last)
    answers.scatter_(1, (digits - 1)[:, None], last[:, None])
    answers[place >= digits[:, None]] = END
    return torch.cat([prompts, answers], 1)
