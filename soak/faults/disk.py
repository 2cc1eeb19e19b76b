"""A disk that is full, and a folder that cannot be written."""

from __future__ import annotations

from soak.faults.children import Children, Ended, children
from soak.faults.commands import COMMANDS, MEASURE, REPORT, REPRODUCE, SURVEY, Command
from soak.faults.disks import Disk, small_disk
from soak.faults.tally import Tally, Undisturbed, outcome, spread, undisturbed
from soak.program import Effort, Outcome, Program

_PAGE = 4096


def _run(effort: Effort) -> Outcome:
    commands = (*COMMANDS, REPORT, REPRODUCE) if effort == "full" else (MEASURE, SURVEY)
    tallies, mounted = [], False
    with children() as processes:
        for command in commands:
            reference = undisturbed(command, processes)
            full = Tally(f"`{command.name}`, a full disk")
            sufficed = Tally(f"`{command.name}`, a disk with space for it")
            sealed = Tally(f"`{command.name}`, a read-only folder")
            needed = _pages(reference, processes)
            for free in (*spread(needed, 10 if effort == "full" else 2), 2 * needed):
                with small_disk(processes.new_folder()) as disk:
                    mounted = disk.is_mounted
                    _full(reference, processes, (full, sufficed), disk, (free - 1) * _PAGE)
            points = spread(reference.ended.files, 4 if effort == "full" else 1)
            for point in points:
                with small_disk(processes.new_folder()) as disk:
                    _sealed(reference, processes, sealed, disk, point)
            tallies += [full, sufficed, sealed]
    way = "a `tmpfs` of 8 MB, filled, or mounted read-only"
    if not mounted:  # as in a container
        way = "nothing can be mounted here, so files were limited in size, and folders had no permission"
    notes = [
        f"The disk: {way}. Free were from nothing to twice what the result needs. The command must "
        "end in one line, what was there before must be readable, and once there is space the command goes "
        "on to the result of an undisturbed run; done again is no more than the batch, or the segment of "
        "each network, that could not be written. Where nothing can be written, no work may be done; a "
        "result that is there already may be shown."
    ]
    return outcome(tallies, notes)


def _pages(reference: Undisturbed, processes: Children) -> int:
    """How many pages of a disk the result takes, and some more."""
    folder = processes.new_folder()
    reference.command.prepare(folder)
    before = set(folder.rglob("*"))
    processes.run(reference.command.first, folder)
    fresh = [path for path in folder.rglob("*") if path.is_file() and path not in before]
    return sum(-(-path.stat().st_size // _PAGE) for path in fresh) + 6


def _full(
    reference: Undisturbed, processes: Children, tallies: tuple[Tally, Tally], disk: Disk, free: int
) -> None:
    """Whether the disk was full, or had space enough, is seen from how the command ends."""
    command, (tally, sufficed) = reference.command, tallies
    command.prepare(disk.path)
    where = f"{free} bytes free"
    with disk.nearly_full(free) as limits:
        ended = processes.run(command.first, disk.path, **limits)
    wrong = _wrong(command, disk, ended)
    if ended.code == 0 and not wrong:
        reference.compare(sufficed, where, disk.path, ended, ended.work)
        return
    if free == 0 and disk.is_mounted and ended.work:
        wrong.append(f"{ended.work} units of work before it was noticed")
    if wrong:
        tally.add(where, wrong)
        return
    again = processes.run(command.again, disk.path)
    work = ended.work + again.work
    reference.compare(tally, where, disk.path, again, work, may_repeat=command.unwritten)


def _sealed(reference: Undisturbed, processes: Children, tally: Tally, disk: Disk, point: int) -> None:
    """At first, and again with what a killed process left."""
    command = reference.command
    command.prepare(disk.path)
    killed = None if point == 1 else processes.run(command.first, disk.path, kill_before=point)
    where = "from the beginning" if killed is None else f"after a kill at {point}"
    if killed is not None and not killed.was_killed:
        tally.add(where, ["did not happen: it was not killed"])
        return
    is_done = killed is not None and reference.is_there(disk.path)
    with disk.read_only() as limits:
        ended = processes.run(command.first if killed is None else command.again, disk.path, **limits)
    wrong = _wrong(command, disk, ended)
    if ended.work:
        wrong.append(f"{ended.work} units of work before it was noticed")
    if ended.code == 0 and not is_done:  # with nothing to write there is nothing to notice
        wrong.append("it did not notice")
    if wrong:
        tally.add(where, wrong)
        return
    again = processes.run(command.first if killed is None else command.again, disk.path)
    work, repeated = (0, 0) if killed is None else (killed.work, command.may_repeat)
    reference.compare(tally, where, disk.path, again, work + again.work, may_repeat=repeated)


def _wrong(command: Command, disk: Disk, ended: Ended) -> list[str]:
    wrong = []
    if ended.code != 0 and not ended.is_plain_error:
        wrong.append(f"ended with {ended.code} ({ended.last_words})")
    if not command.is_intact(disk.path):
        wrong.append("what was there before is not readable")
    return wrong


DISK = Program(
    "disk",
    "A full disk, a read-only folder",
    "Every command that writes is given a disk with too little space, and one that cannot be written. It "
    "is a failure if it ends in a traceback, spoils what was there, works before it notices that nothing "
    "can be written, or does not go on to the undisturbed result once there is space.",
    _run,
)
