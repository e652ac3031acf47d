"""A comparison on disk: its jobs, which resume, and the report on them."""

import abc
import contextlib
import pathlib
import shlex
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any
from typing import ClassVar

from training.commands.command_line import command_of
from training.commands.command_line import run_until_stopped
from training.reports.markdown import print_markdown
from training.runs.directory_lock import LOCK
from training.runs.directory_lock import locked_directory
from training.runs.files import write_json
from training.runs.recipes import field_names
from training.runs.recipes import read_recipe
from training.runs.recipes import recipe_as_json
from training.runs.recipes import recipe_differences
from training.runs.recipes import recipe_from_json
from training.runs.user_error import UserError
from training.studies.jobs import Job
from training.studies.jobs import job_seconds
from training.studies.jobs import run_jobs
from training.studies.report import Report
from training.studies.report import write_report


class Study(abc.ABC):
    """A comparison in the directory `--out` of its recipe.

    - `NAME.json`: the recipe;
    - `logs/` and `seconds.json`: the output and the time of each job;
    - `report.md`, `report.html`, `report.json` and the plots.
    """

    name: ClassVar[str]
    recipe_type: ClassVar[type]
    # Flags that may change when a comparison is continued: the others would
    # invalidate what has been found.
    may_change: ClassVar[tuple[str, ...]]

    def __init__(self, recipe: Any):
        self.recipe = recipe
        self.root: pathlib.Path = recipe.out

    @classmethod
    def in_directory(cls, root: pathlib.Path) -> "Study":
        """Returns the study that was begun in a directory."""
        stored = read_recipe(root / f"{cls.name}.json", "--out")
        stored["out"] = root
        return cls(
            recipe_from_json(stored, cls.recipe_type, str(root), "--out")
        )

    @abc.abstractmethod
    def check_inputs(self) -> None:
        """Checks what the jobs will need, before any of them begins."""

    @abc.abstractmethod
    def jobs(self) -> list[Job]:
        """Returns all jobs, each behind those that it needs."""

    def do(self, name: str) -> None:
        """Does a job that `study_job` has described."""
        (job,) = (each for each in self.jobs() if each.name == name)
        job.result.parent.mkdir(exist_ok=True)
        write_json(job.result, job.find())

    @abc.abstractmethod
    def collect(self) -> dict:
        """Reads what all jobs have found."""

    @abc.abstractmethod
    def report(self, findings: dict) -> Report:
        """Returns the report on the findings."""

    def run_as(self, script: str, args: list[str]) -> int:
        """Runs it as a command that can be stopped; returns the exit code."""
        hint = f"\nTo resume: {command_of(script, args)}"
        return run_until_stopped(lambda signals: self.run(), hint)

    def run(self) -> dict:
        """Runs the jobs that are left, writes the report, returns findings."""
        self.recipe.check()
        with self.hold():
            self.check_inputs()
            self.write_recipe()
            jobs = self.jobs()
            run_jobs(jobs, self.root / "logs", self.recipe.at_once)
            findings = self.collect()
            self.write_report(findings)
        page = self.root / "report.md"
        print_markdown(page.read_text(encoding="utf-8"))
        print(f"The report is in {page} and {page.with_suffix('.html')}.")
        return findings

    def write_report(self, findings: dict) -> None:
        """Writes the report as pages, and the findings and tables as JSON."""
        jobs = self.jobs()
        commands = [
            shlex.join(["python", f"training/{job.script}", *job.args])
            for job in jobs
        ]
        report = self.report(findings)
        known = job_seconds(self.root)
        # Others may have been done for more seeds or candidates.
        if times := [known[job.name] for job in jobs if job.name in known]:
            of = "" if len(times) == len(jobs) else f" of {len(jobs)}"
            report.notes.append(
                f"{len(times)}{of} jobs took {sum(times) / 3600:.1f} hours in "
                "all, each since it was last started, at most "
                f"{self.recipe.at_once} at a time."
            )
        write_report(self.root, report, commands)
        tables = {
            table.title: {"columns": table.header, "rows": table.rows}
            for table in report.tables
        }
        write_json(self.root / "report.json", {**findings, "tables": tables})

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Locks the directory within this context, and checks its recipe."""
        path = self.root / f"{self.name}.json"
        # The started commands keep the lock, too, until the last of them has
        # ended, even if this process is killed.
        with locked_directory(self.root, "--out", inherited=True):
            if path.exists():
                begun = recipe_as_json(self.in_directory(self.root).recipe)
                names = field_names(self.recipe, but=self.may_change)
                if changed := recipe_differences(begun, self.recipe, names):
                    raise self._taken(f"another one ({'; '.join(changed)})")
            elif any(path.name != LOCK for path in self.root.iterdir()):
                raise self._taken("other files")
            yield

    def write_recipe(self) -> None:
        """Writes the recipe into the directory, which must be locked."""
        path = self.root / f"{self.name}.json"
        write_json(path, recipe_as_json(self.recipe))

    def study_job(
        self,
        title: str,
        name: str,
        result: pathlib.Path,
        find: Callable[[], dict],
        **others: Any,
    ) -> Job:
        """Returns a job that `do` does, in a process of its own."""
        args = ("--out", str(self.root), "--study", self.name, "--job", name)
        script = "study_job.py"
        return Job(title, name, script, args, result, find=find, **others)

    def _taken(self, what: str) -> UserError:
        return UserError(
            f"--out must be new, empty, or contain this comparison, but "
            f"'{self.root}' contains {what}: pass another one"
        )
