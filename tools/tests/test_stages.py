import contextlib
import io
import pathlib
import tempfile
import unittest
from unittest import mock

from checks import stages

JUNIT = """<?xml version="1.0"?><testsuite>
<testcase name="base" status="run"><system-out>[==========] 12 tests ran.
[  PASSED  ] 12 tests.</system-out></testcase>
<testcase name="domain" status="fail"><failure message=""/><system-out>[  PASSED  ] 3 tests.
[  FAILED  ] 2 tests, listed below:</system-out></testcase>
<testcase name="script" status="run"><system-out>fine</system-out></testcase>
<testcase name="crash" status="fail"><failure message=""/><system-out></system-out></testcase>
</testsuite>"""


class Counting(unittest.TestCase):
    def test_ctest_counts_googletest_cases_and_plain_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            report = pathlib.Path(folder, "ctest.xml")
            report.write_text(JUNIT, encoding="utf-8")
            self.assertEqual(stages.count_ctest(report), (12 + 3 + 1, 2 + 1))
            self.assertEqual(stages.count_ctest(report.with_name("none.xml")), (0, 0))

    def test_closing_lines_of_python_runners(self):
        self.assertEqual(stages.count_python("Ran 9 tests in 1s\n\nFAILED (failures=1, errors=2)"), (6, 3))
        self.assertEqual(stages.count_python("Ran 9 tests in 1s\n\nOK (skipped=2)"), (7, 0))
        self.assertEqual(stages.count_python("1 failed, 21 passed, 1 error in 3.21s"), (21, 2))
        self.assertEqual(stages.count_python("21 passed, 2 skipped in 63.21s (0:01:03)"), (21, 0))
        self.assertEqual(stages.count_python("no tests ran in 0.01s"), (0, 0))


class Stages(unittest.TestCase):
    def run_stages(self, **functions):
        output = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(stages, "STAGES", functions):
            run = stages.Run(folder, 1)
            with contextlib.redirect_stdout(output):
                status = run.all(list(functions))
        return run, status, output.getvalue()

    def test_a_failure_stops_with_one_sentence(self):
        def good(run):
            """first"""
            run.count(3, 0)

        def bad(run):
            """second"""
            raise stages.Failure("it is broken")

        def never(run):
            """third"""
            raise AssertionError

        run, status, output = self.run_stages(good=good, bad=bad, never=never)
        self.assertEqual((status, run.passed, run.failed), (1, 3, 1))
        self.assertIn("== stage 1/3 good: first\n== stage 1/3 good passed", output)
        self.assertRegex(output, r"== stage 2/3 bad failed \(\d+ s\): it is broken\n$")

    def test_a_stage_without_work_says_so(self):
        def empty(run):
            """nothing"""
            raise stages.Skip("no fuzz targets yet")

        run, status, output = self.run_stages(empty=empty)
        self.assertEqual((status, run.passed, run.failed), (0, 0, 0))
        self.assertIn("skipped: no fuzz targets yet", output)

    def test_every_stage_of_every_suite_exists(self):
        for names in stages.SUITES.values():
            for name in names:
                self.assertIn(name, stages.STAGES)
                self.assertTrue(stages.STAGES[name].__doc__)


if __name__ == "__main__":
    unittest.main()
