"""MoE: how evenly experts are used, by layer and loop, and which are the fullest."""

from board import Board, Row
from panel import heat, lines, number
from query import Query, of, told, values

_ROW = "layer {{layer}} loop {{loop}}"


def _fullest(what: str) -> str:
    return of("gyrostat_expert_fullest", what=what)


BOARD = Board(
    "gyrostat-moe",
    "Gyrostat: MoE",
    "Experts of trainer rank 0. Of many rows a layer's loops are added up (loop: pool); single ones are the fullest.",
    (
        Row(
            "Balance",
            (
                number(
                    "Least in use",
                    "percentunit",
                    "rho_eff of the least balanced layer and loop: the rules look below 0.5.",
                    Query(f"min({of('gyrostat_expert_rho_eff')})"),
                    width=6,
                    low=0,
                    high=1,
                    runbook="experts",
                ),
                number(
                    "Most dead",
                    "percentunit",
                    "Highest share of experts that get next to nothing, of any layer and loop.",
                    Query(f"max({of('gyrostat_expert_dead_share')})"),
                    width=6,
                    steps=((0.1, "orange"), (0.2, "red")),
                    low=0,
                    high=1,
                    runbook="experts",
                ),
                number(
                    "Fullest expert",
                    "none",
                    "Times an even share of its layer's assignments.",
                    Query(f"max({_fullest('load')})"),
                    width=6,
                    low=0,
                    runbook="experts",
                ),
                number(
                    "Experts not shown one by one",
                    "none",
                    "They are in the shares by layer and loop.",
                    Query(f"max({of('gyrostat_experts_hidden')})"),
                    width=6,
                ),
            ),
        ),
        Row(
            "By layer and loop",
            (
                heat(
                    "Out of use",
                    "percentunit",
                    "1 - rho_eff: red is few experts for everything. The rules look above 0.5.",
                    Query(f"1 - {of('gyrostat_expert_rho_eff')}", _ROW),
                    low=0,
                    high=1,
                    runbook="experts",
                ),
                heat(
                    "Dead experts",
                    "percentunit",
                    "Share of experts that get less than a tenth of an even load: red is many.",
                    Query(of("gyrostat_expert_dead_share"), _ROW),
                    low=0,
                    high=0.5,
                    runbook="experts",
                ),
            ),
        ),
        Row(
            "The fullest",
            (
                lines(
                    "Load",
                    "none",
                    "The eight fullest experts, by place; 1 is an even share.",
                    Query(_fullest("load"), "place {{place}}"),
                    low=0,
                    runbook="experts",
                ),
                lines(
                    "Layer",
                    "none",
                    "The layer that each of them is in.",
                    Query(_fullest("layer"), "place {{place}}"),
                    low=0,
                ),
                lines(
                    "Expert",
                    "none",
                    "Its number in that layer. The same for long: a favourite.",
                    Query(_fullest("expert"), "place {{place}}"),
                    low=0,
                ),
            ),
        ),
        Row(
            "Router",
            (
                lines(
                    "Balance loss",
                    "none",
                    "The auxiliary loss that keeps experts even, where it is told.",
                    values(told("balance_loss", "aux_loss", "load_balancing_loss", "router_aux_loss")),
                    runbook="experts",
                ),
                lines(
                    "Size of scores",
                    "none",
                    "Root mean square of the router's scores, or its z loss.",
                    values(told("router_logit_rms", "z_loss", "router_z_loss")),
                    low=0,
                    runbook="experts",
                ),
                lines(
                    "Confidence",
                    "percentunit",
                    "Probability of the router's first choice.",
                    values(told("router_confidence", "routing_confidence")),
                    low=0,
                    high=1,
                    runbook="experts",
                ),
                lines(
                    "Loops alike",
                    "percentunit",
                    "Share of a token's experts that are those of the loop before.",
                    values(told("route_overlap")),
                    low=0,
                    high=1,
                    runbook="experts",
                ),
                lines(
                    "Change by loop",
                    "none",
                    "How much each loop changes of what it is given.",
                    values("loop_update_[0-9]+"),
                    low=0,
                    runbook="experts",
                ),
                lines(
                    "Tokens dropped",
                    "percentunit",
                    "Tokens that found no room at their expert.",
                    values(told("dropped_tokens_fraction", "dropped_fraction", "drop_rate", "token_drop_rate")),
                    low=0,
                    runbook="experts",
                ),
            ),
        ),
    ),
)
