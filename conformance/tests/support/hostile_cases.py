"""The hostile backends of `hostile/`, and the verdict that each must end in."""

from dataclasses import dataclass

from attentest.results.run import BackendRun
from attentest.results.verdict import Verdict

STATE = "model.global-state-untouched"
ATTENTION = ("attention.shapes", "attention.formula", "attention.deterministic", STATE)
PARAMETERS = "multi_head_attention.parameters-round-trip"
PROJECTIONS = ("multi_head_attention.formula", PARAMETERS)

UNLOADED = {
    "raises_at_import": "RuntimeError: no luck today",
    "exits_at_import": "SystemExit: 4",
    "dies_at_import": "the process ended with exit code 5",
    "hangs_at_import": "no answer within 3600 seconds",
    "needs_a_package": "No module named 'nowhere_to_be_found'",
    "no_python": "SyntaxError",
    "name_raises": "could not be described: ZeroDivisionError",
}
"""Targets that cannot be loaded, and words of the reason."""


@dataclass(frozen=True)
class Case:
    """The statuses of the judged clauses in their order, and words in the first that is bad."""

    statuses: str
    words: str

    def agrees(self, result: BackendRun) -> None:
        found = [one.status for one in result.verdicts]
        assert found == self.statuses.split(), [one.message for one in result.verdicts]
        if self.words:
            assert self.words in first_bad(result).message


def first_bad(result: BackendRun) -> Verdict:
    return next(one for one in result.verdicts if one.status not in ("pass", "absent"))


CRASHES = "crash crash crash crash"
ERRORS = "error error error error"
VIOLATIONS = "violation violation violation violation"
WRONG = "violation violation violation pass"
RUDE = "pass pass pass violation"
SOUND = "pass pass pass pass"

ANSWERS = {
    "raises_in_constructor": Case(ERRORS, "building attention raised RuntimeError: nothing is"),
    "raises_in_call": Case(ERRORS, "calling attention raised RuntimeError: out of luck"),
    "raises_ten_thousand_lines": Case(ERRORS, "raised ValueError: line 0 of the message line 1"),
    "raises_what_cannot_be_told": Case(ERRORS, "Untold: (its message cannot be read)"),
    "raises_escapes": Case(ERRORS, r"ValueError: \x1b[2J\x1b]0;owned\x07[bold]red[/bold] \u202e"),
    "exits_in_call": Case(ERRORS, "calling attention raised SystemExit: 7"),
    "reads_standard_input": Case(ERRORS, "EOFError"),
    "declares_nonsense": Case(ERRORS, "its declaration is not well formed"),
    "dies_in_call": Case(CRASHES, "the process ended with exit code 3"),
    "segfaults": Case(CRASHES, "the process ended with SIGSEGV"),
    "forks": Case(CRASHES, "the process ended with exit code 8"),
    "leaves_a_child_behind": Case(CRASHES, "the process ended with exit code 6"),
    "writes_to_every_pipe": Case(CRASHES, "something else than the suite wrote"),
    "prints_verdicts": Case(SOUND, ""),
    "spoils_what_it_finds_at_import": Case(SOUND, ""),
    "answers_a_list": Case(VIOLATIONS, "calling attention returned a list, not an array"),
    "answers_nothing": Case(VIOLATIONS, "calling attention returned nothing"),
    "answers_an_infinite_object": Case(VIOLATIONS, "returned a Endless, not an array"),
    "answers_another_shape": Case(WRONG, "The output has the shape"),
    "answers_another_precision": Case("violation violation pass pass", "The output is float32"),
    "answers_on_another_device": Case(ERRORS, "The output lies on meta, and the inputs on cpu"),
    "answers_nan": Case(WRONG, "not finite"),
    "answers_zeros": Case(WRONG, "do not give larger outputs"),
    "answers_its_input": Case(WRONG, "do not give larger outputs"),
    "answers_at_random": Case(WRONG, "do not give larger outputs"),
    "writes_into_its_inputs": Case(VIOLATIONS, "attention wrote into its input number 0"),
    "counts_its_calls": Case(WRONG, "results are not repeatable"),
    "changes_warnings_filter": Case(RUDE, "changes the warnings filters"),
    "changes_sys_path": Case(RUDE, "changes the sys.path"),
    "changes_directory": Case(RUDE, "changes the working directory"),
    "changes_signal_handlers": Case(RUDE, "changes the signal handlers"),
    "sets_an_alarm": Case(RUDE, "changes the alarm"),
    "changes_numpy_seed": Case(RUDE, "changes the random state of NumPy"),
    "changes_numpy_errors": Case(RUDE, "changes the NumPy error handling"),
    "changes_streams": Case(RUDE, "changes the standard streams"),
    "changes_default_dtype": Case(RUDE, "changes the default dtype"),
    "changes_seed": Case(RUDE, "changes the random state"),
    "changes_thread_count": Case(RUDE, "changes the threads"),
    "changes_grad_mode": Case(RUDE, "changes the grad mode"),
    "patches_functions": Case(RUDE, "the function torch.softmax"),
    "name_with_markup": Case(SOUND, ""),
    "name_with_separators": Case(SOUND, ""),
    "name_of_a_megabyte": Case(SOUND, ""),
    "name_of_another": Case(SOUND, ""),
}
"""BackendRun by the clauses of ATTENTION."""

HANGING = {
    "hangs_in_constructor": "no answer within 3600 seconds",
    "hangs_in_call": "no answer within 3600 seconds",
    "hangs_in_native_code": "no answer within 3600 seconds",
    "hangs_and_catches_everything": "no answer within 3600 seconds",
    "prints_without_end": "no answer within 3600 seconds",
    "closes_every_pipe": "closed the pipe to its parent",
}
MEASURED = {
    "hangs_while_measured": "not finished: no answer within 3600 seconds",
    "dies_while_measured": "not finished: the process ended with exit code 9",
}
"""Mishaps while measuring, after the last clause."""

MAPS = {
    "map_lacks_one": Case("error error", "The parameter map has no entry for 'value.weight'"),
    "map_to_nothing": Case("error error", "sends value.weight to values.weight, which the module"),
    "map_to_another_shape": Case("error error", "wide.weight has room for"),
    "map_twice_the_same": Case("violation violation", "The output differs by"),
    "map_exports_more": Case("pass violation", "'gate'"),
}
"""BackendRun by the clauses of PROJECTIONS."""
