import unittest

from tests.tree import TreeTest

HEADER = """#pragma once
#include <vector>

namespace baton {

// Says when a batch closes. `hackathon` and "obvious" are fine words.
class Closer {
 public:
  explicit Closer(int size) : size_{size}, limits_{{1, 2}, {3, 4}} {}
  [[nodiscard]] bool closes(int now, int deadline, int items, int bytes, int rank) const;
  bool operator()(int a) const { return a < size_; }

 private:
  int size_;
  std::vector<std::pair<int, int>> limits_;
};

}  // namespace baton
"""
# What trips naive brace counters: lambdas, initializers, raw strings, digit separators, templates.
REALISTIC = r"""#include "policy/batching/closer.h"

namespace baton {
namespace {

constexpr std::array<Row, 2> kRows{{{"a{", 1'000}, {"b\"}", '}'}}};
const auto kTable = [] { return std::map<int, int>{{1, 2}}; }();
constexpr char kText[] = R"json({"a": [1, 2}, ", // not a comment)json";
template <typename T>
  requires std::integral<T>
T twice(T value) noexcept(noexcept(value + value)) {
  return value + value;
}
enum class Kind : int { kOne, kTwo };
struct Pair final : Base<int(int)> {
  int a{0};
  std::function<void(int, int)> call{[](int x, int y) { use(x, y); }};
};

}  // namespace

Closer::Closer(Options options)
    : options_(std::move(options)), map_{{1, 2}}, call_([this](int x) { return x + 1; }) {
  for (const auto& [key, value] : map_) {
    switch (value) {
      case kOne: {
        if (key > 1'000'000) {
          run([&](auto item) -> Result<int> { return Result<int>{item}; }, {.size = 1});
        } else if (key < 0) {
          stop();
        } else {
          wait();
        }
        break;
      }
      default:
        break;
    }
  }
}

auto Closer::closes(int now, int deadline, int items, int bytes, int rank) const -> Result<bool> {
  static_assert(sizeof(int) == 4);
  if (auto found = find({now, deadline}); found) return Result<bool>{true};
  do {
    --items;
  } while (items > 0 && bytes < rank);
  return std::unexpected(Error{.code = 1, .text = "throw } sleep_for( // TODO"});
}

#if defined(BATON_FAST)
void fast(int a) {
#else
void slow(int a) {
#endif
  use(a);
}

}  // namespace baton
"""


def function(lines, head="void f()"):
    return f"{head} {{\n" + "  g();\n" * (lines - 2) + "}\n"


class CheckStyle(TreeTest):
    tool = "check_style"

    def setUp(self):
        super().setUp()
        self.write("src/CMakeLists.txt", "baton_room(policy/batching)\nbaton_room(adapters/onnx)\n")
        for room in ("policy/batching", "adapters/onnx"):
            self.write(f"src/{room}/README.md", f"# {room}\nPurpose.\nInvariants.\nThreads.\n")
        self.write("src/policy/batching/closer.h", HEADER)
        self.write("src/policy/batching/closer.cc", REALISTIC)

    def adds(self, text, start=None, path="src/policy/batching/more.cc"):
        self.write(path, text)
        if start is None:
            self.assert_clean()
        else:
            self.assert_finding(f"{path}:{start}")

    def test_realistic_code_is_clean(self):
        self.assert_clean()

    def test_function_length(self):
        self.adds(function(70))
        self.adds("\n" + function(71), "2: function-length: f has 71 lines")
        self.adds(function(71, "TEST(Closer, Closes)"), "1: function-length: Closer.Closes has 71")
        self.adds(function(71, "template <class T>\nT Box<T>::get() const"), "1: function-length: Box::get")
        self.adds("const auto kF = [](int a) {\n" + "  g();\n" * 70 + "};\n", "1: function-length: lambda")
        self.adds("struct A {\n" + function(71, "  A() : a_{1}, b_(2)") + "};\n", "2: function-length: A has")

    def test_many_short_functions_are_fine(self):
        self.adds("namespace baton {\nclass A {\n" + function(20) * 10 + "};\n}\n")

    def test_file_length(self):
        self.adds("int a;\n" * 800)
        self.adds("int a;\n" * 801, "801: file-length")
        self.adds("")
        self.write("src/policy/batching/closer.h", "int a;\n" * 301)
        self.assert_finding("src/policy/batching/closer.h:301: file-length")

    def test_line_length(self):
        self.adds("// " + "x" * 97 + "\n")
        self.adds("\n// " + "x" * 98 + "\n", "2: line-length")
        self.adds("\n", None)
        self.write("tools/check_more", "#!/usr/bin/env python3\n# " + "x" * 119 + "\n")
        self.assert_finding("tools/check_more:2: line-length")

    def test_nesting(self):
        three = "void f() {\n  for (;;) {\n    if (a) {\n      while (b) {\n%s\n      }\n    }\n  }\n}\n"
        self.adds(three % "call([](int x) { return S{x}; });")
        self.adds(three % "if (c) {\n}", "5: nesting: f nests deeper than 3")
        self.adds(three % "{\n{\n}\n}")
        self.adds(three % "call([] {\n if (c) {\n}\n});", "6: nesting")

    def test_parameters(self):
        self.adds("void f(std::map<int, int> a, int b = g(1, 2), int c, int d, S e = {1, 2});\n")
        self.adds("void f(int a, int b, int c, int d, int e, int g);\n", "1: parameters: f has 6")
        self.adds("int A::f(int a, int b, int c, int d, int e, int g) const {\n}\n", "1: parameters: A::f")
        self.adds("void f() {\n  g([](int a, int b, int c, int d, int e, int h) {});\n}\n", "2: parameters")
        self.adds("void f() {\n  g(1, 2, 3, 4, 5, 6);\n}\nINSTANTIATE(A, B, C, D, E, F);\n")

    def test_file_names(self):
        self.adds("int a;\n", "1: file-name", "src/policy/batching/MoreThings.cc")

    def test_bans_in_pure_rooms(self):
        for rule, code in {
            "sleep": "std::this_thread::sleep_for(x);",
            "thread": "std::jthread t;",
            "clock": "auto t = std::chrono::steady_clock::now();",
            "assert": "assert(x);",
            "random": "std::mt19937 r;",
            "print": 'std::cout << "x";',
            "throw": "throw Error();",
            "regex": "std::regex r;",
            "raw-memory": "auto p = reinterpret_cast<char*>(x);",
            "lock": "std::mutex m;",
            "io-header": "#include <fstream>",
        }.items():
            with self.subTest(rule):
                self.adds(f"\n{code}\n", f"2: {rule}: ")
                self.assertIn("instead: ", self.run_tool()[1])

    def test_lookalikes_are_fine(self):
        self.adds("static_assert(a); model.time(0); x.sleep(1); std::thread::id i; printf_like(1);\n"
                  "// throw, assert(x), steady_clock::now\nauto s = \"std::cout\"; rethrow(); snprintf(b);\n")

    def test_bans_by_layer(self):
        path = "src/adapters/onnx/session.cc"
        self.adds("std::thread t; std::mutex m;\n#include <fstream>\n", None, path)
        self.adds("auto t = std::chrono::steady_clock::now();\n", "1: clock", path)
        self.adds("", None, path)
        self.adds("auto t = std::chrono::steady_clock::now();\n", None, "src/adapters/onnx/real_clock.cc")

    def test_tests_may_print_and_throw_but_not_sleep(self):
        path = "src/policy/batching/closer_test.cc"
        self.adds("throw 1; std::cout << 1; std::thread t;\n", None, path)
        self.adds("std::this_thread::sleep_for(x);\n", "1: sleep", path)

    def test_readmes(self):
        self.write("src/adapters/onnx/README.md", "# adapters/onnx\n\n\n")
        self.assert_finding("src/adapters/onnx/README.md:1: readme: too short")
        (self.root / "src/adapters/onnx/README.md").unlink()
        self.assert_finding("src/adapters/onnx/README.md:1: readme: missing")
        (self.root / "src/adapters/onnx").rmdir()
        self.assert_finding("src/CMakeLists.txt:2: room-folder")

    def test_a_readme_begins_with_its_room(self):
        for heading in ("#adapters / onnx", "# onnx", "# adapters/onnx is"):
            self.write("src/adapters/onnx/README.md", f"{heading}\nPurpose.\nInvariants.\nThreads.\n")
            self.assert_finding("src/adapters/onnx/README.md:1: readme: begins with the line `# adapters/onnx`")

    def test_dead_files(self):
        self.adds("#pragma once\n", "1: dead-file", "src/policy/batching/unused.h")
        self.write("tests/user.cc", '#include "policy/batching/unused.h"\n')
        self.assert_clean()
        self.adds("int a;\n", "1: dead-file: in no room", "src/policy/lost.cc")

    def test_a_header_that_only_includes_itself_is_dead(self):
        self.adds('#include "policy/batching/own.h"\n', "1: dead-file", "src/policy/batching/own.h")

    def test_todo(self):
        self.adds("// TODO(#12): more\n")
        self.adds("int a;  // TODO: more\n", "1: todo")
        self.adds("/*\n * FIXME(me)\n */\n", "2: todo")

    def test_comment_words(self):
        for word in ("a hack", "Obviously", "simply", "now we", "Previously", "of course"):
            with self.subTest(word):
                self.adds(f"int a;\n// {word} it works\n", "2: comment-word")
        self.adds('auto s = "simply";\n')

    def test_machine_paths(self):
        path = "/" + "home/me/baton"
        self.write("docs/page.md", f"Look.\nSee `{path}`.\n")
        self.assert_finding("docs/page.md:2: machine-path")
        self.write("docs/page.md", f"https://example.org{path} $ROOT{path} /usr/bin/python3\n")
        self.assert_clean()

    def test_unbalanced_braces_are_said(self):
        self.adds("void f() {\n", "1: braces")

    def test_allowlist(self):
        self.write("src/policy/batching/more.cc", function(71) + "throw 1;\n")
        self.write("tools/allow/style.txt", "# list\nfunction-length src/policy/batching/more.cc#f a table\n"
                   "throw src/policy/ an example\n")
        self.assert_clean()
        self.write("src/policy/batching/more.cc", function(71))
        self.assert_finding("tools/allow/style.txt:3: stale-allowlist")
        self.write("tools/allow/style.txt", "function-length src/policy/batching/more.cc\n")
        status, output = self.run_tool()
        self.assertEqual(status, 1)
        self.assertIn("tools/allow/style.txt:1: allowlist", output)


if __name__ == "__main__":
    unittest.main()
