"""The tasks of a plan as a table: episodes, seeds, step limit and instruction of each."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from robotrials.cli import draw
from robotrials.cli.grid import Grid, Line, Section
from robotrials.plan.plan import Plan


def plan_table(plan: Plan, console: Console) -> list[Text]:
    """A line for each task, under its suite where that has another name. Instructions stand beside them unless they
    repeat the tasks' names or there is no room for them."""
    seeds: dict[tuple[str, str], list[int]] = {}
    for episode in plan:
        seeds.setdefault((episode.suite, episode.task), []).append(episode.seed)
    told = _grid(plan, seeds, draw.glyphs(console), with_instructions=True)
    if _say_more(plan) and told.room_for_names(console.width) >= told.longest_name(full=False):
        return told.render(console)
    return _grid(plan, seeds, draw.glyphs(console), with_instructions=False).render(console)


def _grid(plan: Plan, seeds: dict[tuple[str, str], list[int]], marks: draw.Glyphs, with_instructions: bool) -> Grid:
    titles = ["Task", "Episodes", "Seeds", "Steps", *(["Instruction"] if with_instructions else [])]
    alone: list[Line] = []
    suites: dict[str, list[Line]] = {}
    for task in plan.tasks:
        own = seeds[task.key]
        span = str(own[0]) if len(own) == 1 else f"{own[0]}{marks.interval}{own[-1]}"
        cells = [Text(cell) for cell in (str(len(own)), span, str(task.max_steps))]
        cells += [Text(task.instruction)] if with_instructions else []
        line = Line(task.name, cells, task.id)
        if task.suite == task.name:
            alone.append(line)
        else:
            suites.setdefault(task.suite, []).append(line)
    sections = [Section(alone)] if alone else []
    sections += [Section(lines, Line(suite, style="bold")) for suite, lines in suites.items()]
    return Grid(titles, "lrrr" + "l" * with_instructions, sections, words=4 if with_instructions else None)


def _say_more(plan: Plan) -> bool:
    """Whether any instruction says what the task's name does not."""
    return any(_letters(task.instruction) not in ("", _letters(task.name)) for task in plan.tasks)


def _letters(words: str) -> str:
    return "".join(letter for letter in words.lower() if letter.isalnum())
