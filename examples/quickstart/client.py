#!/usr/bin/env python3
"""Sends real requests to a running baton and checks the answers.

    client.py --http HOST:PORT --grpc HOST:PORT --metrics HOST:PORT --models DIR --out DIR

The client library is tritonclient, written by others for another server. Exit status 0 means that
every answer was right.
"""

import argparse
import pathlib
import sys
import urllib.request

import checks
import transport


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("http", "grpc", "metrics"):
        parser.add_argument(f"--{name}", required=True, metavar="HOST:PORT")
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    def read_metrics():
        with urllib.request.urlopen(f"http://{arguments.metrics}/metrics", timeout=10) as page:
            return page.read().decode()

    samples = pathlib.Path(__file__).resolve().parent / "samples"
    over_http = transport.Http(arguments.http)
    over_grpc = transport.Grpc(arguments.grpc)
    report = checks.Report()
    report.section("Speech: Silero VAD, frame by frame")
    report.guard(checks.check_speech, over_http, over_grpc, arguments.out)
    report.section("File types: magika")
    report.guard(checks.check_files, over_http, over_grpc, samples, arguments.models / "magika/labels.txt")
    report.section("Text in a picture: PP-OCRv4, three models in a row")
    folders = (arguments.models, arguments.out)
    report.guard(checks.check_ocr, over_http, over_grpc, read_metrics, folders)
    report.section("Batching: an MLP of 9.5 million parameters, 64 requests at once")
    report.guard(checks.check_batching, over_http, over_grpc, read_metrics)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
