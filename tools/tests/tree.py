"""Tiny fake trees for the tests of the checkers."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent


class TreeTest(unittest.TestCase):
    tool = None

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def run_tool(self, *arguments):
        command = [sys.executable, TOOLS / self.tool, "--root", self.root, *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(result.stderr, "")
        return result.returncode, result.stdout

    def assert_clean(self, *arguments):
        status, output = self.run_tool(*arguments)
        self.assertEqual((status, "no findings" in output), (0, True), output)

    def assert_finding(self, start, *arguments):
        """The one and only finding starts with `path:line: rule`."""
        status, output = self.run_tool(*arguments)
        lines = output.splitlines()
        self.assertEqual(status, 1, output)
        self.assertEqual(len(lines), 2, output)
        self.assertTrue(lines[0].startswith(start), f"expected {start}\n{output}")
        self.assertIn("1 finding in", lines[1])
