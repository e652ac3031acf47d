"""Runs a comparison of teaching methods, and reports on it."""

from training.commands.run_jobs import run_jobs
from training.forgetting.directory import ForgettingDirectory
from training.forgetting.findings import collect_findings
from training.forgetting.plan import plan_jobs
from training.forgetting.recipe import ForgettingRecipe
from training.forgetting.report import write_report
from training.forgetting.settings import check_setting
from training.reports.markdown import print_markdown


def compare(recipe: ForgettingRecipe) -> dict:
    """Runs the remaining jobs of a comparison, and returns its findings."""
    recipe.check()
    directory = ForgettingDirectory(recipe.out)
    with directory.hold(recipe):
        check_setting(recipe)
        directory.write_recipe(recipe)
        run_jobs(plan_jobs(recipe), directory.logs, recipe.at_once)
        findings = collect_findings(recipe)
        write_report(recipe, findings)
    print_markdown(directory.table.read_text(encoding="utf-8"))
    print(f"The report is in {directory.table}.")
    return findings
