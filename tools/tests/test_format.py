import shutil
import subprocess
import unittest

from tests.tree import TOOLS, TreeTest

README = "# base\nWords without a domain: result, time, ids.\n\n- No clock is read here: `Instant` is a number.\n"


@unittest.skipUnless(shutil.which("clang-format-19"), "clang-format-19 is not installed")
class Format(TreeTest):
    def setUp(self):
        super().setUp()
        for path in ("tools/format", ".clang-format", ".clang-format-ignore"):
            self.write(path, (TOOLS.parent / path).read_text(encoding="utf-8"))
        self.write("src/base/README.md", README)
        self.write("src/base/a.cc", "int  a ;\n")

    def read(self, path):
        return (self.root / path).read_text(encoding="utf-8")

    def test_it_writes_cpp_files_alone(self):
        subprocess.run(["bash", self.root / "tools/format", "--write"], check=True, capture_output=True)
        self.assertEqual(self.read("src/base/a.cc"), "int a;\n")
        self.assertEqual(self.read("src/base/README.md"), README)

    def test_prose_survives_a_formatter_run_by_hand(self):
        subprocess.run(["clang-format-19", "-i", "src/base/README.md"], check=True, cwd=self.root)
        self.assertEqual(self.read("src/base/README.md"), README)


if __name__ == "__main__":
    unittest.main()
