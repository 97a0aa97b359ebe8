"""The paper's theory, checked by running it.

Each claim is one function. Its docstring states the claim, its arguments are what the claim
speaks about (a critic's embeddings, a proposal, a pool of values), and it returns a
`TheoryCheck`: what was measured, what the claim says it must be, and whether it held. A check
whose premise is broken comes back with `holds=False`.

Everything here is NumPy. A trained critic enters as two functions, phi(states, actions) and
psi(goals), so the same checks serve the study and any critic a person brings.
"""

from toptail.lab.studies.controlled.theory.battery import check_theory
from toptail.lab.studies.controlled.theory.check import TheoryCheck, bilinear_scores, binary_nce
from toptail.lab.studies.controlled.theory.selection import (
    TwoSetWorld,
    adversarial_within_epsilon,
    boundedness_is_not_calibration,
    good_ranker_bad_objective,
    pick_in_bad_probability,
    pick_regret,
    regret_lower_bound,
    two_epsilon_bound,
    two_epsilon_is_tight,
    within_epsilon,
)
from toptail.lab.studies.controlled.theory.support import (
    BadRegion,
    StateActions,
    finite_inflation,
    inflate,
    off_support_nonidentifiability,
    positives_left_unordered,
    region_of_samples,
    region_outside_disk,
)

__all__ = [
    "BadRegion",
    "StateActions",
    "TheoryCheck",
    "TwoSetWorld",
    "adversarial_within_epsilon",
    "bilinear_scores",
    "binary_nce",
    "boundedness_is_not_calibration",
    "check_theory",
    "finite_inflation",
    "good_ranker_bad_objective",
    "inflate",
    "off_support_nonidentifiability",
    "pick_in_bad_probability",
    "pick_regret",
    "positives_left_unordered",
    "region_of_samples",
    "region_outside_disk",
    "regret_lower_bound",
    "two_epsilon_bound",
    "two_epsilon_is_tight",
    "within_epsilon",
]
