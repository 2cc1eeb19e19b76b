"""All rules, in the order in which their findings are listed: causes before what follows from them."""

from __future__ import annotations

from fathometer.checking import network_rules as network
from fathometer.checking import site_rules as sites
from fathometer.checking.evidence import Evidence, evidence_of
from fathometer.checking.rule import Rule, apply_rules
from fathometer.results.checkup import Checkup
from fathometer.results.provenance import Provenance
from fathometer.results.sounding import Sounding

RULES: tuple[Rule, ...] = (
    network.NONFINITE,
    network.PARTLY_LOADED,
    network.BATCHNORM_RESET,
    network.INPUTS,
    sites.DEAD_LAYER,
    sites.SCALE,
    network.BATCHNORM_STALE,
    network.PERPLEXITY,
    network.CHANCE,
    sites.SATURATED,
    sites.DEAD_CHANNELS,
    sites.RANK,
    sites.DUPLICATES,
    network.PRECISION,
    network.TRAINING_MODE,
    network.UNTRAINED,
    sites.DOMINANT_SAMPLES,
    network.MASSIVE_ACTIVATIONS,
    sites.LINEAR,
    sites.REFERENCE,
)


def check_evidence(evidence: Evidence, provenance: Provenance) -> Checkup:
    """Apply all rules."""
    findings, skipped = apply_rules(RULES, evidence)
    return Checkup(findings, skipped, tuple(rule.name for rule in RULES), provenance)


def check_sounding(sounding: Sounding) -> Checkup:
    """Apply the rules to what a sounding knows; those about the network itself are skipped."""
    return check_evidence(evidence_of(sounding), sounding.provenance)
