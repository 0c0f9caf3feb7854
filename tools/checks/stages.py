"""The stages of tools/ci: what each runs, when it is skipped, and how its tests are counted."""

import os
import pathlib
import re
import subprocess
import time
import xml.etree.ElementTree


class Failure(Exception):
    """One clear sentence about what failed."""


class Skip(Exception):
    """Why a stage has nothing to do."""


class Run:
    def __init__(self, root, jobs):
        self.root = pathlib.Path(root)
        self.jobs = jobs
        self.passed = 0
        self.failed = 0
        self.environment = dict(os.environ)
        tools = str(self.root / ".cache" / "bin")
        self.environment["PATH"] = f"{tools}:{self.environment.get('PATH', '')}"
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def all(self, names):
        for number, name in enumerate(names, 1):
            print(f"== stage {number}/{len(names)} {name}: {STAGES[name].__doc__}", flush=True)
            started = time.monotonic()
            try:
                STAGES[name](self)
                verdict = "passed"
            except Skip as reason:
                verdict = f"skipped: {reason}"
            except (Failure, FileNotFoundError) as reason:
                print(f"== stage {number}/{len(names)} {name} failed "
                      f"({time.monotonic() - started:.0f} s): {reason}", flush=True)
                self.failed = max(self.failed, 1)
                return 1
            print(f"== stage {number}/{len(names)} {name} {verdict} "
                  f"({time.monotonic() - started:.0f} s)", flush=True)
        return 0

    def command(self, *words, sentence, **extra):
        """Runs a command with its output shown; fails with the sentence."""
        environment = self.environment | extra
        words = [str(word) for word in words]
        if subprocess.run(words, cwd=self.root, env=environment, check=False).returncode != 0:
            raise Failure(sentence)

    def tap(self, *words, **extra):
        """Runs a command with its output shown and returned: (status, output)."""
        words = [str(word) for word in words]
        process = subprocess.Popen(words, cwd=self.root, env=self.environment | extra, text=True,
                                   errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines = []
        try:
            for line in process.stdout:
                print(line, end="", flush=True)
                lines.append(line)
            return process.wait(), "".join(lines)
        finally:
            if process.poll() is None:
                process.terminate()

    def count(self, passed, failed):
        self.passed += passed
        self.failed += failed

    def build(self, preset, *targets):
        self.command("tools/build", preset, *targets, "--jobs", self.jobs,
                     sentence=f"the {preset} preset does not build")


    def ctest(self, preset, *labels):
        report = self.root / "build" / preset / "ctest.xml"
        report.unlink(missing_ok=True)
        words = ["ctest", "--test-dir", self.root / "build" / preset, "--output-on-failure",
                 "--no-tests=ignore", "--test-output-size-passed", 1000000,
                 "--parallel", self.jobs, "--output-junit", report]
        for label in labels:
            words += ["--label-regex", label]
        status, _ = self.tap(*words)
        passed, failed = count_ctest(report)
        self.count(passed, failed)
        if status != 0:
            raise Failure(f"tests of the {preset} build failed; their output is above")
        if passed == 0:
            raise Skip(f"the {preset} build has no tests yet")


def count_ctest(report):
    """(passed, failed), counting googletest's cases where a program printed them."""
    if not report.exists():
        return 0, 0
    passed = failed = 0
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        output = "".join(part.text or "" for part in case.iter("system-out"))
        gtest_passed = [int(n) for n in re.findall(r"\[  PASSED  \] (\d+) tests?", output)]
        gtest_failed = [int(n) for n in re.findall(r"\[  FAILED  \] (\d+) tests?, listed", output)]
        passed += sum(gtest_passed)
        failed += sum(gtest_failed)
        if case.get("status") == "fail" and not gtest_failed:
            failed += 1
        elif case.get("status") == "run" and not gtest_passed:
            passed += 1
    return passed, failed


def count_python(output):
    """(passed, failed) of unittest's or pytest's closing lines."""
    ran = re.search(r"^Ran (\d+) tests?", output, re.MULTILINE)
    if ran:
        bad = sum(int(n) for n in re.findall(r"(?:failures|errors)=(\d+)", output))
        skipped = sum(int(n) for n in re.findall(r"skipped=(\d+)", output))
        return int(ran.group(1)) - bad - skipped, bad
    closing = [line for line in output.splitlines() if re.search(r" in [\d.]+s\b", line)]
    line = closing[-1] if closing else ""
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|errors?)\b", line)}
    return counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)


def stage_format(run):
    """every C++ file is as clang-format wants it"""
    run.command("tools/format", sentence="some files are not formatted; `make format` rewrites them")


def stage_style(run):
    """sizes, names, banned calls, READMEs"""
    run.command("tools/check_style", sentence="check_style has findings (above)")


def stage_layers(run):
    """who includes whom"""
    run.command("tools/check_layers", sentence="check_layers has findings (above)")


def stage_tools(run):
    """the checkers' own tests"""
    status, output = run.tap("python3", "-m", "unittest", "discover", "-q", "-s", "tools/tests", "-t", "tools")
    run.count(*count_python(output))
    if status != 0:
        raise Failure("the tools' own tests failed (above)")


def stage_unit(run):
    """unit tests of the release build"""
    run.build("release")
    run.ctest("release", "fast")


def stage_tidy(run):
    """clang-tidy over the sources that differ from main"""
    status, output = run.tap("tools/tidy", "--quick", "--jobs", run.jobs)
    if status != 0:
        raise Failure("clang-tidy has findings (above)")
    if "no source differs" in output:
        raise Skip("no source differs from main")


def stage_release(run):
    """all ctest tests of the release build"""
    run.build("release")
    run.ctest("release")


def stage_symbols(run):
    """the pure rooms need no clock, thread, socket, file or sleep"""
    run.command("tools/check_layers", "--objects", "build/release",
                sentence="check_layers has findings in the compiled rooms (above)")


def stage_quickstart(run):
    """real models, real clients, answers checked"""
    if not (run.root / "build/release/baton").exists():
        raise Skip("build/release/baton does not exist yet")
    status, output = run.tap("tools/quickstart", "--once", "--http-port", 0, "--grpc-port", 0, "--metrics-port", 0)
    passed = len(re.findall(r"^\s*✓", output, re.MULTILINE))
    failed = len(re.findall(r"^\s*✗", output, re.MULTILINE))
    run.count(passed, failed)
    if status != 0:
        raise Failure("the quickstart's answers are not as they should be (above)")


def stage_pytest(run):
    """acceptance and integration tests against the release build"""
    folders = [name for name in ("tests/acceptance", "tests/integration", "tests/soak")
               if any((run.root / name).rglob("test_*.py"))]
    if not folders:
        raise Skip("no acceptance tests yet")
    status, output = run.tap(run.root / ".cache/venv-test/bin/python", "-m", "pytest", "-q", "-ra",
                             "-p", "no:cacheprovider", *folders)
    run.count(*count_python(output))
    if status not in (0, 5):
        raise Failure("acceptance or integration tests failed (above)")


def stage_soak(run):
    """everything at once for SOAK_SECONDS: answers, memory, descriptors"""
    run.build("release", "baton")
    seconds = os.environ.get("SOAK_SECONDS", "120")
    status, output = run.tap(run.root / ".cache/venv-test/bin/python", "tests/soak/soak.py", SOAK_SECONDS=seconds)
    closing = re.search(r"^(\d+) passed, (\d+) failed$", output, re.MULTILINE)
    if closing:
        run.count(int(closing.group(1)), int(closing.group(2)))
    if status != 0 or not closing:
        raise Failure("the soak found something (above)")


def stage_asan(run):
    """all ctest tests with address and undefined-behaviour sanitizers"""
    run.build("asan")
    run.ctest("asan")


def stage_tsan(run):
    """ctest tests of what has threads, with the thread sanitizer"""
    run.build("tsan")
    run.ctest("tsan")


def programs(folder, suffix):
    """Executables below a folder whose names end in a suffix, sorted."""
    found = folder.rglob(f"*{suffix}") if folder.is_dir() else []
    return sorted(path for path in found if path.is_file() and os.access(path, os.X_OK))


def stage_fuzz(run):
    """each fuzz target for a while"""
    run.build("asan")
    targets = programs(run.root / "build/asan/fuzz", "_fuzz")
    if not targets:
        raise Skip("no fuzz targets yet")
    seconds = int(os.environ.get("FUZZ_SECONDS", "30"))
    for target in targets:
        found = run.root / "build/asan/fuzz/found" / target.name
        found.mkdir(parents=True, exist_ok=True)
        seeds = run.root / "fuzz/corpus" / target.name.removesuffix("_fuzz")
        corpus = [found] + ([seeds] if seeds.is_dir() else [])
        print(f"   {target.name}: {seconds} s, {len(list(seeds.glob('*')))} seeds", flush=True)
        log = found.parent / f"{target.name}.log"
        words = [target, f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048",
                 f"-artifact_prefix={found.parent}/{target.name}-", "-print_final_stats=1", *corpus]
        with open(log, "w", encoding="utf-8") as output:
            status = subprocess.run(words, cwd=run.root, env=run.environment, stdout=output, stderr=output,
                                    check=False).returncode
        if status != 0:
            print("".join(log.read_text(errors="replace").splitlines(keepends=True)[-60:]))
            run.count(0, 1)
            raise Failure(f"{target.name} found an input that breaks it; it is kept below build/asan/fuzz/found")
        run.count(1, 0)


def stage_bench_smoke(run):
    """each benchmark once, so that it cannot rot"""
    run.build("release")
    targets = programs(run.root / "build/release/bench", "_bench")
    if not targets:
        raise Skip("no benchmarks yet")
    python = run.root / ".cache/venv-test/bin/python"
    commands = [(target.name, [target, "--benchmark_min_time=0.001"]) for target in targets]
    commands += [(script.name, [python, script]) for script in sorted(run.root.glob("bench/*_bench.py"))]
    for name, words in commands:
        print(f"   {name}", flush=True)
        run.command(*words, BATON_BENCH_SMOKE="1", sentence=f"the benchmark {name} failed (above)")
        run.count(1, 0)


def stage_bench(run):
    """the benchmarks in full"""
    run.build("release")
    if (run.root / "bench/report").exists():
        run.command("bench/report", sentence="the benchmark report failed (above)")
        return
    targets = programs(run.root / "build/release/bench", "_bench")
    if not targets:
        raise Skip("no benchmarks yet")
    for target in targets:
        run.command(target, sentence=f"the benchmark {target.name} failed (above)")


STAGES = {
    "format": stage_format,
    "style": stage_style,
    "layers": stage_layers,
    "tools": stage_tools,
    "unit": stage_unit,
    "tidy": stage_tidy,
    "release": stage_release,
    "symbols": stage_symbols,
    "quickstart": stage_quickstart,
    "pytest": stage_pytest,
    "soak": stage_soak,
    "asan": stage_asan,
    "tsan": stage_tsan,
    "fuzz": stage_fuzz,
    "bench-smoke": stage_bench_smoke,
    "bench": stage_bench,
}
_FAST = ["format", "style", "layers", "tools"]
_TEST = _FAST + ["release", "symbols", "quickstart", "pytest"]
SUITES = {
    "fast": _FAST + ["unit"],
    "test": _TEST,
    "ci": _TEST + ["soak", "tidy", "asan", "tsan", "fuzz", "bench-smoke"],
    "bench": ["bench"],
    "fuzz": ["fuzz"],
    "soak": ["soak"],
}
