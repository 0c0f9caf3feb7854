import shutil
import subprocess
import unittest

from tests.tree import TreeTest

ROOMS = """
baton_room(base LIBS fmt::fmt)
baton_room(domain ROOMS base)
baton_room(ports ROOMS base domain)
baton_room(policy/batching ROOMS base domain)
baton_room(protocol/json ROOMS base LIBS simdjson::simdjson)  # not: baton_room(ghost)
baton_room(service/batching ROOMS base domain ports policy/batching
           TEST_ROOMS sim)
baton_room(adapters/http ROOMS base domain ports LIBS baton_boost)
if(BATON_GRPC)
  baton_room(adapters/grpc ROOMS base domain ports LIBS baton_proto_grpc ${CMAKE_DL_LIBS})
endif()
baton_room(sim ROOMS base domain ports policy/batching service/batching)
baton_room(app ROOMS base adapters/http sim)
"""
FILES = {
    "base/time.h": "#pragma once\n",
    "domain/model.h": '#include "base/time.h"\n',
    "ports/clock.h": '#include "base/time.h"\n',
    "ports/testing/fake_clock.h": '#include "ports/clock.h"\n',
    "policy/batching/close.h": '#include "domain/model.h"\n#include <vector>\n',
    "protocol/json/reader.h": '#include "base/time.h"\n',
    "protocol/json/reader.cc": '#include "protocol/json/reader.h"\n#include <simdjson.h>\n',
    "service/batching/dispatcher.h": '#include "policy/batching/close.h"\n',
    "service/batching/dispatcher_test.cc": '#include "sim/clock.h"\n'
    '#include "ports/testing/fake_clock.h"\n',
    "sim/clock.h": '#include "ports/clock.h"\n#include "ports/testing/fake_clock.h"\n',
    "adapters/http/server.cc": "#include <boost/asio/ip/tcp.hpp>\n",
    "app/main.cc": '#include "sim/clock.h"\n',
}
HEAVY = """# comment
simdjson protocol/json   reads bodies
asio     adapters/http   sockets
limit    asio 1          slow to compile
"""


class CheckLayers(TreeTest):
    tool = "check_layers"

    def setUp(self):
        super().setUp()
        self.write("src/CMakeLists.txt", ROOMS)
        self.write("tools/allow/heavy_headers.txt", HEAVY)
        for path, text in FILES.items():
            self.write(f"src/{path}", text)

    def room_list(self, old, new):
        self.assertIn(old, ROOMS)
        self.write("src/CMakeLists.txt", ROOMS.replace(old, new))

    def test_a_tree_that_keeps_the_rules_is_clean(self):
        self.assert_clean()

    def test_a_room_outside_the_link_list(self):
        self.write("src/policy/batching/close.cc", '\n#include "ports/clock.h"\n')
        self.assert_finding("src/policy/batching/close.cc:2: room-include: ports/clock.h is in ports")

    def test_a_list_is_not_transitive(self):
        self.write("src/app/serve.cc", '#include "domain/model.h"\n')
        self.assert_finding("src/app/serve.cc:1: room-include")

    def test_an_include_in_a_comment_does_not_count(self):
        self.write("src/policy/batching/close.cc", '// #include "ports/clock.h"\n')
        self.assert_clean()

    def test_test_rooms_are_for_tests(self):
        self.write("src/service/batching/dispatcher.cc", '#include "sim/clock.h"\n')
        self.assert_finding("src/service/batching/dispatcher.cc:1: room-include")

    def test_testing_headers_are_for_tests(self):
        self.write("src/adapters/http/fake.cc", '#include "ports/testing/fake_clock.h"\n')
        self.assert_finding("src/adapters/http/fake.cc:1: testing-header")

    def test_a_file_in_no_room(self):
        self.write("src/policy/scaling/grow.h", "\n")
        self.assert_finding("src/policy/scaling/grow.h:1: no-room")

    def test_a_path_relative_to_the_file(self):
        self.write("src/base/ids.h", '#include "time.h"\n')
        self.assert_finding("src/base/ids.h:1: include-path")

    def test_an_own_header_in_angle_brackets(self):
        self.write("src/domain/ids.h", "#include <base/time.h>\n")
        self.assert_finding("src/domain/ids.h:1: include-path")

    def test_a_source_file_is_not_included(self):
        self.write("src/protocol/json/all.cc", '#include "protocol/json/reader.cc"\n')
        self.assert_finding("src/protocol/json/all.cc:1: include-path")

    def test_layers_of_the_link_lists(self):
        for old, new in (
            ("policy/batching ROOMS base domain", "policy/batching ROOMS base domain ports"),
            ("ROOMS base LIBS simdjson", "ROOMS base ports LIBS simdjson"),
            ("baton_room(ports ROOMS base domain)", "baton_room(ports ROOMS base domain policy/batching)"),
            ("ports policy/batching\n", "ports policy/batching adapters/http\n"),
            ("adapters/http ROOMS base", "adapters/http ROOMS base adapters/grpc"),
            ("adapters/http ROOMS base", "adapters/http ROOMS base policy/batching"),
            ("policy/batching service/batching)", "policy/batching service/batching adapters/http)"),
            ("baton_room(domain ROOMS base)", "baton_room(domain ROOMS base protocol/json)"),
        ):
            with self.subTest(new):
                self.room_list(old, new)
                self.assert_finding("src/CMakeLists.txt:")
                self.assertIn(": layer: ", self.run_tool()[1])

    def test_protocols_share_json_only(self):
        self.room_list("baton_room(sim", "baton_room(protocol/oip ROOMS protocol/json)\nbaton_room(sim")
        self.assert_clean()
        self.room_list("ROOMS base LIBS simdjson::simdjson)", "ROOMS base)\nbaton_room(protocol/sse)\n"
                       "baton_room(protocol/oip ROOMS protocol/sse)")
        self.assert_finding("src/CMakeLists.txt:8: layer: protocol/oip may not use protocol/sse")

    def test_a_cycle(self):
        self.room_list(
            "baton_room(sim",
            "baton_room(service/a ROOMS service/b)\nbaton_room(service/b ROOMS service/a)\nbaton_room(sim",
        )
        self.assert_finding("src/CMakeLists.txt:13: cycle: rooms include each other: service/a ->")

    def test_unknown_and_doubled_rooms(self):
        self.room_list("baton_room(sim ROOMS base", "baton_room(sim ROOMS base policy/none")
        self.assert_finding("src/CMakeLists.txt:13: room-list: sim lists policy/none")
        self.room_list("baton_room(sim", "baton_room(base)\nbaton_room(sim")
        self.assert_finding("src/CMakeLists.txt:13: room-list: room base is declared twice")

    def test_a_room_in_no_layer(self):
        self.room_list("baton_room(sim", "baton_room(utils)\nbaton_room(sim")
        self.assert_finding("src/CMakeLists.txt:13: layer: utils is in no layer")

    def test_a_heavy_header_outside_its_rooms(self):
        for name in ("boost/beast/http.hpp", "grpcpp/grpcpp.h", "baton.pb.h", "google/protobuf/text.h",
                     "CLI/CLI.hpp", "yaml-cpp/yaml.h", "onnxruntime_c_api.h", "sqlite3.h"):
            with self.subTest(name):
                self.write("src/protocol/json/writer.cc", f"#include <{name}>\n")
                self.assert_finding("src/protocol/json/writer.cc:1: heavy-header")

    def test_a_heavy_header_in_a_header(self):
        self.write("src/protocol/json/document.h", "#include <simdjson.h>\n")
        self.assert_finding("src/protocol/json/document.h:1: heavy-header")

    def test_a_listed_header_may(self):
        self.write("src/protocol/json/document.h", "#include <simdjson.h>\n")
        self.write("tools/allow/heavy_headers.txt", HEAVY + "simdjson protocol/json/doc*.h one walk\n")
        self.assert_clean()

    def test_the_limit_counts_through_own_headers(self):
        self.write("src/adapters/http/loop.h", "#include <boost/asio.hpp>\n")
        self.write("src/adapters/http/loop.cc", '#include "adapters/http/loop.h"\n')
        self.write("tools/allow/heavy_headers.txt", HEAVY + "asio adapters/http/loop.h the loop\n")
        self.assert_finding("tools/allow/heavy_headers.txt:4: heavy-limit: asio reaches 2 .cc files")

    def test_stale_entries_and_entries_without_reason(self):
        self.write("tools/allow/heavy_headers.txt", HEAVY + "yaml app/config.cc baton.yaml\n")
        self.assert_finding("tools/allow/heavy_headers.txt:5: stale-allowlist")
        self.write("tools/allow/heavy_headers.txt", HEAVY + "yaml app\n")
        self.assert_finding("tools/allow/heavy_headers.txt:5: allowlist")
        self.write("tools/allow/heavy_headers.txt", HEAVY + "qt app windows\n")
        self.assert_finding("tools/allow/heavy_headers.txt:5: allowlist: no such family")
        self.write("tools/allow/heavy_headers.txt", HEAVY + "limit asio few files\n")
        self.assert_finding("tools/allow/heavy_headers.txt:5: allowlist: a limit is")


@unittest.skipUnless(shutil.which("cc") or shutil.which("clang-19"), "needs a C compiler")
class CheckObjects(TreeTest):
    tool = "check_layers"

    def setUp(self):
        super().setUp()
        self.write("src/CMakeLists.txt", "baton_room(base)\nbaton_room(policy/batching ROOMS base)\n")
        self.write("src/policy/batching/close.cc", "\n")

    def archive(self, code):
        self.write("close.c", code)
        compiler = shutil.which("cc") or "clang-19"
        folder = self.root / "build/release/src"
        folder.mkdir(parents=True, exist_ok=True)
        library = folder / "libbaton_policy_batching.a"
        library.unlink(missing_ok=True)
        subprocess.run([compiler, "-w", "-c", "close.c", "-o", "close.o"], cwd=self.root, check=True)
        subprocess.run(["ar", "rc", library, "close.o"], cwd=self.root, check=True)

    def check(self, start):
        self.assert_finding(start, "--objects", "build/release")

    def test_pure_code_is_clean(self):
        self.archive("int helper(void); int helper(void) { return 1; } int time_left(void) { return helper(); }")
        self.assert_clean("--objects", "build/release")

    def test_each_kind_of_banned_symbol(self):
        for kind, call in {
            "clock": "clock_gettime", "chance": "getrandom", "thread": "pthread_create",
            "socket": "connect", "file": "fopen", "sleep": "nanosleep", "lock": "pthread_mutex_lock",
            "dlopen": "dlsym",
        }.items():
            with self.subTest(call):
                self.archive(f"int {call}(); int f(void) {{ return {call}(); }}")
                self.check("src/CMakeLists.txt:2: symbol: policy/batching (close.o) uses "
                           f"{call}, a {kind} symbol")

    def test_mangled_names(self):
        for name in ("_ZNSt6chrono3_V212steady_clock3nowEv", "_ZNSt13random_device9_M_getvalEv",
                     "_ZNSt13basic_filebufIcSt11char_traitsIcEEC1Ev",
                     "_ZNSt10filesystem6statusERKNS_7__cxx114pathE",
                     "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE"):
            with self.subTest(name):
                self.archive(f"int {name}(); int f(void) {{ return {name}(); }}")
                self.check("src/CMakeLists.txt:2: symbol")

    def test_paths_without_files_are_fine(self):
        name = "_ZNSt10filesystem7__cxx114path14_M_split_cmptsEv"
        self.archive(f"int {name}(); int f(void) {{ return {name}(); }}")
        self.assert_clean("--objects", "build/release")

    def test_a_defined_symbol_is_not_needed_from_outside(self):
        self.archive("int connect(void) { return 1; } int f(void) { return connect(); }")
        self.assert_clean("--objects", "build/release")

    def test_the_allowlist(self):
        self.archive("int getenv(); int f(void) { return getenv(); }")
        self.write("tools/allow/symbols.txt", "policy/batching getenv an example\n")
        self.assert_clean("--objects", "build/release")
        self.archive("int f(void) { return 1; }")
        self.check("tools/allow/symbols.txt:1: stale-allowlist")

    def test_a_library_that_was_not_built(self):
        self.check("src/CMakeLists.txt:2: objects")


if __name__ == "__main__":
    unittest.main()
