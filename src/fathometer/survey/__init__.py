"""Many soundings from one plan: resumable, on one machine or on a Ray cluster."""

from fathometer.survey.atlas import atlas
from fathometer.survey.paper import paper_plan
from fathometer.survey.plan import Family, Plan, parse_plan, read_plan
from fathometer.survey.run import Event, Outcome, run_survey
from fathometer.survey.settings import RunOptions, Settings
from fathometer.survey.store import Failure, Store
from fathometer.survey.tasks import Task, tasks_of

__all__ = [
    "Event",
    "Failure",
    "Family",
    "Outcome",
    "Plan",
    "RunOptions",
    "Settings",
    "Store",
    "Task",
    "atlas",
    "paper_plan",
    "parse_plan",
    "read_plan",
    "run_survey",
    "tasks_of",
]
