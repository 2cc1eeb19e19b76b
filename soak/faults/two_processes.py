"""Several processes at work in one folder: they share the work, or all but one are refused."""

from __future__ import annotations

from soak.faults.children import Children, Ended, children
from soak.faults.commands import MEASURE, REPRODUCE, SURVEY, SWEEP, Command
from soak.faults.tally import Tally, Undisturbed, fresh, outcome, undisturbed
from soak.program import Effort, Outcome, Program

_HEADSTART = (0.0, 0.0, 0.05, 0.15, 0.3)  # seconds of the first before the others, one after the other


def _run(effort: Effort) -> Outcome:
    rounds, companies = (10, (2, 4)) if effort == "full" else (1, (2,))
    tallies = []
    with children() as processes:
        for command in (MEASURE, SURVEY, SWEEP, REPRODUCE) if effort == "full" else (MEASURE, SURVEY):
            reference = undisturbed(command, processes)
            for company in companies:
                shares = "they share the work" if command is SURVEY else "one works, the others are refused"
                tally = Tally(f"`{command.name}`, {company} processes", shares)
                for number in range(rounds):
                    _trial(reference, processes, tally, company, _HEADSTART[number % len(_HEADSTART)])
                tallies.append(tally)
    notes = [
        "All processes are given the same command at once, or some tenths of a second apart. Who is "
        "refused ends with one line and code 2, and does no work. Nothing is killed, so no work at all may "
        "be done twice. `reproduce` shows a result that is there already, and so may end well more than once."
    ]
    return outcome(tallies, notes)


def _trial(reference: Undisturbed, processes: Children, tally: Tally, company: int, headstart: float) -> None:
    command = reference.command
    folder = fresh(command, processes)
    orders = [(command.first, {"delay": headstart * place}) for place in range(company)]
    ended = processes.run_together(orders, folder)
    where = f"{company} processes {headstart:g} s apart"
    if wrong := _wrong(command, ended):
        tally.add(where, wrong)
        return
    finished = [process for process in ended if process.code == 0]
    reference.compare(tally, where, folder, finished[0], sum(process.work for process in ended))


def _wrong(command: Command, ended: list[Ended]) -> list[str]:
    finished = [process for process in ended if process.code == 0]
    wrong = [
        f"ended with {process.code} ({process.last_words})"
        for process in ended
        if process.code != 0 and not process.is_plain_error
    ]
    if command is SURVEY and len(finished) < len(ended):
        wrong += [f"refused ({process.last_words})" for process in ended if process.code != 0]
    elif command is REPRODUCE and not finished:
        wrong.append("expected one to finish at least, got none")
    elif command not in (SURVEY, REPRODUCE) and len(finished) != 1:
        wrong.append(f"expected one to finish, got {len(finished)}")
    return wrong


TWO_PROCESSES = Program(
    "two-processes",
    "Several processes in one folder",
    "Two and four processes are given the same command in the same folder. It is a failure if the result "
    "is not that of one process bit for bit, if work is done twice, or if one ends with a traceback.",
    _run,
)
